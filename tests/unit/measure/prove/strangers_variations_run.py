# SPDX-License-Identifier: Apache-2.0
"""Harmless variations of networks and runs: {name: edit of a case}."""

from dataclasses import replace
from datetime import timedelta

from tests.unit.measure import guests
from tests.unit.measure.prove import sound
from tests.unit.measure.prove.strangers_edits import (
    HOSTS,
    VMS,
    class_with,
    figures,
    generator,
    guest_commands,
    in_guests,
    in_xml,
    links,
    noted,
    on_host,
    pid,
    received,
    run_again,
    steps,
    task,
    times,
    together,
    with_disk,
)
from tests.unit.measure.prove.strangers_variations_machine import pages

NET = "/sys/class/net"
NIC = "<driver name='vhost' queues='20'/>"
_OFTEN = (
    *("rx_packets", "tx_packets", "rx_dropped", "tx_dropped", "rx_errors"),
    *("tx_errors", "rx_fifo_errors", "rx_missed_errors"),
)


def _new_nic(name, text="", numa="0", speed="25000", driver="mlx5_core"):
    """Return an edit that adds a NIC to the host."""
    files = {
        f"{NET}/{name}/operstate": "up\n",
        f"{NET}/{name}/mtu": "1500\n",
        f"{NET}/{name}/speed": f"{speed}\n",
        f"{NET}/{name}/device/numa_node": f"{numa}\n",
        **{f"{NET}/{name}/statistics/{counter}": "0\n" for counter in _OFTEN},
    }
    return together(
        on_host(files),
        _counted(files),
        links(
            {
                f"{NET}/{name}": f"../../devices/pci0000:20/0000:20:01.0/net/{name}",
                f"{NET}/{name}/device": "../../../0000:20:01.0",
                f"{NET}/{name}/device/driver": f"../../../../bus/pci/drivers/{driver}",
            }
        ),
    )


def _counted(files):
    """Return an edit that lets the host's counters stand at the second look, too."""

    def edit(case):
        counters = {p: t for p, t in files.items() if "/statistics/" in p}
        case.host = replace(case.host, later={**case.host.later, **counters})

    return edit


def _virtual_nic(name):
    """Return an edit that adds a device of the host without hardware."""
    files = {
        f"{NET}/{name}/operstate": "up\n",
        f"{NET}/{name}/mtu": "1500\n",
        **{f"{NET}/{name}/statistics/{counter}": "0\n" for counter in _OFTEN},
    }
    return together(
        on_host(files),
        _counted(files),
        links({f"{NET}/{name}": f"../../devices/virtual/net/{name}"}),
    )


def _dpdk(case):
    """Let VMs have vhost-user interfaces of OVS-DPDK, and pages that it can map."""
    pages(1048576, "1GB")(case)
    in_xml(
        ("<interface type='bridge'>", "<interface type='vhostuser'>"),
        (
            "      <target dev='tap{n}'/>",
            (
                "      <source type='unix' path='/var/lib/vhost_sockets/vhu{n}' "
                "mode='server'/>\n      <target dev='vhu{n}'/>"
            ),
        ),
        (NIC, "<driver queues='20' rx_queue_size='1024' tx_queue_size='1024'/>"),
        (
            "<hugepages>",
            (
                "<source type='file'/><access mode='shared'/><allocation "
                "mode='immediate'/>"
                "<hugepages>"
            ),
        ),
    )(case)
    gone = [
        path
        for path, text in case.host.files.items()
        if path.endswith("/comm") and text.startswith("vhost-")
    ]
    dropped = tuple(path.removesuffix("comm") for path in gone)
    taps = (f"{NET}/tap1/", f"{NET}/tap2/")
    case.host = replace(
        case.host,
        files={
            p: t for p, t in case.host.files.items() if not p.startswith(dropped + taps)
        },
        later={
            p: t for p, t in case.host.later.items() if not p.startswith(dropped + taps)
        },
    )


def _passed_through(case):
    """Give each VM a virtual function of the NIC, which its own driver has."""
    in_xml(
        (
            "<interface type='bridge'>",
            "<interface type='hostdev' managed='yes'>",
        ),
        (
            (
                "      <target dev='tap{n}'/>\n      <model type='virtio'/>\n"
                f"      {NIC}\n"
            ),
            (
                "      <driver name='vfio'/>\n      <source><address type='pci' "
                "domain='0x0000' bus='0x3b' slot='0x0{n}' function='0x1'/></source>\n"
                "      <vlan><tag id='101'/></vlan>\n"
            ),
        ),
    )(case)
    for number, one in enumerate(case.guests):
        rows = [("mlx5_async0@pci:0000:00:05.0", {0: 9})]
        looks = []
        for more in (0, 30000):
            rows = [("mlx5_async0@pci:0000:00:05.0", {0: 9})] + [
                (f"mlx5_comp{queue}@pci:0000:00:05.0", {queue: 1000 + more})
                for queue in range(20)
            ]
            looks.append(guests.interrupts(rows, 20))
        irqs = {
            f"/proc/irq/{25 + queue}/{kind}_affinity_list": f"{queue}\n"
            for queue in range(20)
            for kind in ("effective", "smp")
        }
        files = {p: t for p, t in one.files.items() if not p.startswith("/proc/irq/")}
        case.guests[number] = replace(
            one,
            files={
                **files,
                **irqs,
                "/proc/interrupts": looks[0],
                f"{NET}/eth0/device/msi_irqs": "".join(
                    f"{24 + n}\n" for n in range(21)
                ),
            },
            later={
                **{
                    p: t for p, t in one.later.items() if not p.startswith("/proc/irq/")
                },
                "/proc/interrupts": looks[1],
            },
            links={
                **one.links,
                NET + "/eth0": "../../devices/pci0000:00/0000:00:05.0/net/eth0",
                NET + "/eth0/device": "../../../0000:00:05.0",
                NET + "/eth0/device/driver": "../../../../bus/pci/drivers/mlx5_core",
            },
        )
    _without_vhost(case)


def _without_vhost(case):
    dropped = tuple(
        path.removesuffix("comm")
        for path, text in case.host.files.items()
        if path.endswith("/comm") and text.startswith("vhost-")
    )
    taps = (f"{NET}/tap1/", f"{NET}/tap2/")
    case.host = replace(
        case.host,
        **{
            part: {
                p: t
                for p, t in getattr(case.host, part).items()
                if not p.startswith(dropped + taps)
            }
            for part in ("files", "later")
        },
    )


def _more_rounds(case):
    """Measure 24 rounds within the hour."""
    run_again(case, replace(sound.scenario(case.policy), repeats=24), apart_s=12.3)


def _longer(case):
    """Measure runs of 11 seconds."""
    built = sound.scenario(case.policy)
    tools = {
        name: replace(tool, seconds=11) for name, tool in built.tools.used().items()
    }
    run_again(
        case,
        replace(built, tools=replace(built.tools, **tools)),
        apart_s=13.3,
        took_s=13,
    )


def _by_ipv6(case):
    run_again(case, sound.scenario(case.policy, address="2001:db8::30"))


def _by_name(case):
    run_again(case, sound.scenario(case.policy, address="gen-1.example.org"))


def _earlier(case):
    """Move all to another day, in another zone."""
    case.run["sessions"][0]["started_at"] = "2026-11-22T09:59:00.000+01:00"


def _second_nic(case):
    """Give each guest a management NIC with a queue for each vCPU."""
    in_xml(
        (
            "    <memballoon",
            (
                "    <interface type='bridge'>\n      <mac "
                "address='fa:16:3e:00:01:0{n}'/>\n"
                "      <target dev='tap1{n}'/>\n      <model type='virtio'/>\n"
                "      <driver name='vhost' queues='20'/>\n    "
                "</interface>\n    <memballoon"
            ),
        )
    )(case)
    for number in (1, 2):
        files = {f"{NET}/tap1{number}/statistics/{name}": "0\n" for name in _OFTEN}
        on_host({f"{NET}/tap1{number}/operstate": "up\n", **files})(case)
        _counted(files)(case)
        for look in ("files", "later"):
            old = getattr(case.host, look)
            first = f"{task(number, 'vhost')}/"
            more = {
                f"/proc/{pid(number)}/task/{pid(number) + 60 + queue}/{name}": text
                for queue in range(20)
                for path, text in old.items()
                if path.startswith(first)
                for name in (path.removeprefix(first),)
            }
            case.host = replace(case.host, **{look: {**old, **more}})


def _in_step(change):
    """Return an edit of what was seen of targets before the run."""

    def edit(case):
        for who in (*HOSTS, *VMS):
            change(case.run["sessions"][0]["targets"][who], who)

    return edit


def _noise(factor):
    """Return an edit that spreads figures of CPU and bandwidth."""

    def edit(case):
        draw = sound.random.Random(11)
        figures(
            times(lambda _: draw.lognormvariate(0, factor)),
            metric="memory.bandwidth",
            who=(*HOSTS, *VMS),
        )(case)

    return edit


def _collected_later(case):
    for one in (case.host, *case.guests):
        at = sound.datetime.fromisoformat(one.taken_at) + timedelta(minutes=3)
        moved = replace(one, taken_at=at.isoformat())
        if one is case.host:
            case.host = moved
        else:
            case.guests[case.guests.index(one)] = moved


NETWORKS = {
    "OVS-DPDK": _dpdk,
    "SR-IOV": _passed_through,
    "a host's NIC of another driver, without a link": together(
        _new_nic("eno1", driver="ixgbe", speed="-1"),
        on_host({f"{NET}/eno1/operstate": "down\n"}),
    ),
    "a management NIC of 1 Gbit/s beside": _new_nic("eno2", driver="tg3", speed="1000"),
    "a NIC of 100 Gbit/s beside": _new_nic("ens2f0np0", speed="100000", numa="1"),
    "a NIC of no NUMA node": _new_nic("enp1s0", numa="-1"),
    "a bridge of OVS": _virtual_nic("br-int"),
    "a bond of both NICs": together(
        _virtual_nic("bond0"), on_host({f"{NET}/bond0/speed": "50000\n"})
    ),
    "a VXLAN of OVN": _virtual_nic("genev_sys_6081"),
    "Docker's bridge without a link": together(
        _virtual_nic("docker0"), on_host({f"{NET}/docker0/operstate": "down\n"})
    ),
    "links of 25 Gbit/s of 1500 bytes, as the guests'": together(
        on_host({f"{NET}/eth{n}/speed": "25000\n" for n in (0, 1)}),
        on_host({f"{NET}/eth{n}/mtu": "1500\n" for n in (0, 1)}),
        in_guests({f"{NET}/eth0/mtu": "1500\n"}),
    ),
    "guests of 1442 bytes, as Geneve leaves": together(
        on_host({f"{NET}/eth{n}/mtu": "1500\n" for n in (0, 1)}),
        in_guests({f"{NET}/eth0/mtu": "1442\n"}),
    ),
    "jumbo frames on both sides": together(
        on_host({f"{NET}/eth{n}/mtu": "9000\n" for n in (0, 1)}),
        in_guests({f"{NET}/eth0/mtu": "8950\n"}),
    ),
    "virtio's speed is unknown": in_guests({f"{NET}/eth0/speed": "-1\n"}),
    "a second NIC of 20 queues that is down in the guest": _second_nic,
    "names of interrupts of an older kernel": lambda case: [
        in_guests(
            {
                "/proc/interrupts": lambda text: text.replace(
                    "PCI-MSIX-0000:00:03.0 ", "PCI-MSI "
                )
            }
        )(case)
    ],
    "ethtool of RHEL 8": guest_commands(
        {"ethtool -l eth0": lambda text: text.replace("n/a", "0")}
    ),
    "a few packets dropped before the run": together(
        on_host({f"{NET}/eth0/statistics/rx_dropped": "48211\n"}),
        in_guests({f"{NET}/eth0/statistics/rx_dropped": "9120\n"}),
    ),
}
RUNS = {
    "both directions of the network": received(),
    "a generator of its own": together(received(), generator()),
    "a generator by IPv6": _by_ipv6,
    "a generator by its name": _by_name,
    "24 rounds": _more_rounds,
    "runs of 11 seconds": _longer,
    "a disk, too": with_disk(),
    "a disk, of which I/O is promised": with_disk(read_iops=25000, write_iops=25000),
    "a disk of a volume that is mounted elsewhere": with_disk("/mnt/данные"),
    "times in another zone": _earlier,
    "noise of 5 %": _noise(0.05),
    "noise of 8 %": _noise(0.08),
    "VMs as fast as the host": figures(times(1.04), metric="cpu.events"),
    "VMs a little faster than the host": figures(
        times(1.03), metric="memory.bandwidth"
    ),
    "clocks of all machines are ten seconds off": together(
        _in_step(lambda seen, _: seen["clock"].update(offset_s=10.2)),
        steps(lambda one, _: one.update(ahead_s=dict.fromkeys(one["targets"], 10.201))),
    ),
    "clocks of other uncertainty": _in_step(
        lambda seen, _: seen["clock"].update(uncertainty_s=0.02)
    ),
    "clock of a VM lags by a hundredth of a second": noted(
        started_apart_s=0.02, having="/vms/"
    ),
    "one slow round of twenty": figures(
        times(lambda m: 0.5 if m.round == 11 else 1), metric="cpu.events", who=("vm2",)
    ),
    "a burst of lateness in two rounds": figures(
        times(lambda m: 0.4 if m.round in {3, 14} else 1), metric="scheduling."
    ),
    "VMs did a little beside": noted(
        having="/hosts/",
        beside={
            who: {"vms": 2, "cpu_s": 0.7, "most_s": 0.45, "seconds": 10.2}
            for who in HOSTS
        },
    ),
    "collected three minutes later": _collected_later,
    "policy of another placement": class_with(managed_hosts="labelled"),
    "class of isolated threads": class_with(cpu_thread_policy="isolate"),
    "class of required traits of the host": class_with(host_traits=("HW_NIC_SRIOV",)),
}


VARIATIONS = NETWORKS | RUNS

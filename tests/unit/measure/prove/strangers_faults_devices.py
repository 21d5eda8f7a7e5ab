# SPDX-License-Identifier: Apache-2.0
"""Faults of disks and networks: {name: edit of a case}."""

from tests.unit.measure import guests, hosts
from tests.unit.measure.prove import sound
from tests.unit.measure.prove.strangers_edits import (
    HOSTS,
    VMS,
    figures,
    guest_commands,
    in_guests,
    in_xml,
    on_host,
    received,
    scenario,
    scope,
    times,
    together,
    with_disk,
)

NET = "/sys/class/net"
DRIVER = "<driver name='qemu' type='raw' cache='none' io='native'/>"
DISK = (
    "<disk type='block' device='disk'>\n"
    f"      {DRIVER}\n      <source dev='/dev/nvme1n1' index='1'/>"
)
NIC = "<driver name='vhost' queues='20'/>"
_SCSI = ("dev='vda' bus='virtio'", "dev='sda' bus='scsi'")
# Of which each VM has more, in all rounds.
_PROMISE = {"read_iops": 25000, "write_iops": 25000}


def _disk(*changes, vms=(1, 2)):
    """Return an edit of domains to which I/O is promised, and was measured."""
    return together(with_disk(**_PROMISE), in_xml(*changes, vms=vms))


def _own(*changes, vms=(1, 2)):
    """Return an edit to disks of Nova's own, which have no volume's ID."""
    serial = "\n      <serial>0a1b2c3d-4e5f-6789-abcd-ef000000000{n}</serial>"
    return in_xml(*changes, (serial, ""), vms=vms)


def _own_disk(*changes, vms=(1, 2)):
    """Return an edit to such disks, to which I/O is promised, and was measured."""
    return together(with_disk(**_PROMISE), _own(*changes, vms=vms))


def _controller(model, driver=""):
    return (
        "    <memballoon",
        (
            f"    <controller type='scsi' index='0' model='{model}'>\n{driver}"
            "    </controller>\n    <memballoon"
        ),
    )


def _guest(vms=(1, 2), **changes):
    """Return an edit of VMs: guests.guest(...)."""

    def edit(case):
        for number in vms:
            case.guests[number - 1] = sound.guest(number, **changes)

    return edit


def _lost(nic, counter, lost, **when):
    """Return an edit of what a NIC of the host lost, of 1,000,000 packets."""
    path = f"{NET}/{nic}/statistics/{counter}"
    return on_host({path: f"{lost}\n"}, before=False, **when)


def _speeds(*speeds):
    return on_host({f"{NET}/eth{n}/speed": f"{s}\n" for n, s in enumerate(speeds)})


DISKS = {
    "writes in the host's page cache": _disk(("cache='none'", "cache='writeback'")),
    "flushes ignored": _disk(("cache='none'", "cache='unsafe'")),
    "reads in the host's page cache": _disk(("cache='none'", "cache='writethrough'")),
    "no cache mode, which is QEMU's writeback": _disk(("cache='none' ", ""), vms=(2,)),
    "a LUN whose flushes are ignored": _disk(
        ("device='disk'", "device='lun'"),
        ("cache='none'", "cache='unsafe'"),
        _SCSI,
        _controller("virtio-scsi", "      <driver queues='20'/>\n"),
    ),
    "Cinder's RBD, written to librbd's cache": _disk(
        (
            DISK,
            (
                "<disk type='network' device='disk'>\n"
                "      <driver name='qemu' type='raw' cache='writeback' "
                "discard='unmap'/>\n"
                "      <source protocol='rbd' name='volumes/volume-0{n}' index='1'>"
                "<host name='192.0.2.41' port='6789'/></source>"
            ),
        ),
    ),
    "disk behind LSI Logic's": _disk(_SCSI, _controller("lsilogic")),
    "disk of IDE": _disk(("dev='vda' bus='virtio'", "dev='hda' bus='ide'")),
    "disk of SATA": _disk(("dev='vda' bus='virtio'", "dev='sda' bus='sata'")),
    "disk of USB": _disk(("dev='vda' bus='virtio'", "dev='sda' bus='usb'")),
    "one VM's disk of SATA": _disk(
        ("dev='vda' bus='virtio'", "dev='sda' bus='sata'"), vms=(2,)
    ),
    "Nova's own qcow2 on the host": _own_disk(
        (
            DISK,
            (
                "<disk type='file' device='disk'>\n"
                "      <driver name='qemu' type='qcow2' cache='none'/>\n"
                "      <source file='/var/lib/nova/instances/u/disk' index='1'/>"
            ),
        )
    ),
    "Nova's own qcow2 on the host, no disk measured": _own(
        (
            DISK,
            (
                "<disk type='file' device='disk'>\n"
                "      <driver name='qemu' type='qcow2' cache='none'/>\n"
                "      <source file='/var/lib/nova/instances/u/disk' index='1'/>"
            ),
        )
    ),
    "Nova's own image in RBD": _own_disk(
        (
            DISK,
            (
                "<disk type='network' device='disk'>\n"
                "      <driver name='qemu' type='raw' cache='none' discard='unmap'/>\n"
                f"      <source protocol='rbd' "
                f"name='vms/{hosts.UUIDS[0]}_disk' index='1'>"
                "<host name='192.0.2.41' port='6789'/></source>"
            ),
        ),
        vms=(1,),
    ),
    "Nova's own LVM": _own_disk(
        (
            "<source dev='/dev/nvme1n1' index='1'/>",
            f"<source dev='/dev/nova-vg/{hosts.UUIDS[0]}_disk' index='1'/>",
        ),
        vms=(1,),
    ),
    "ephemeral disk of a qcow2 over a base": in_xml(
        (
            "<backingStore/>",
            (
                "<backingStore type='file' index='2'><format type='raw'/>"
                "<source file='/var/lib/nova/instances/_base/20aa'/><backingStore/>"
                "</backingStore>"
            ),
        )
    ),
    "disk of a snapshot's chain, copied on read": _disk(
        ("io='native'", "io='native' copy_on_read='on'")
    ),
    "limit of I/O by Cinder's front-end QoS": _disk(
        (
            "<target dev='vda' bus='virtio'/>",
            (
                "<target dev='vda' bus='virtio'/>\n      <iotune>"
                "<total_iops_sec>500</total_iops_sec></iotune>"
            ),
        )
    ),
    "limit of bytes by the flavor's quota": _disk(
        (
            "<target dev='vda' bus='virtio'/>",
            (
                "<target dev='vda' bus='virtio'/>\n      <iotune>"
                "<read_bytes_sec>10485760</read_bytes_sec></iotune>"
            ),
        ),
        vms=(1,),
    ),
    "cgroup limits a VM's I/O": together(
        with_disk(**_PROMISE),
        on_host(
            {
                f"{scope(2).removesuffix('/libvirt')}/io.max": (
                    "259:1 rbps=max wbps=max riops=500 wiops=500\n"
                )
            }
        ),
    ),
    "disk without ioeventfd": _disk(("io='native'", "io='native' ioeventfd='off'")),
    "disk in tmpfs": with_disk("/dev/shm", **_PROMISE),
    "disk in a tmpfs of systemd": with_disk("/run/bench", **_PROMISE),
    "disk at half its share": with_disk(ratios=(0.93, 0.5), read_iops=9000),
    "volume type of no promise, reads promised and not measured": lambda case: setattr(
        case,
        "policy",
        sound.policy_document(disk=sound.replace(sound.rules.HP.disk, read_iops=20000)),
    ),
    "promise of reads missed by one VM": together(
        with_disk(read_iops=35000),
        figures(times(0.85), metric="disk.read.read_iops", who=("vm2",)),
    ),
    "promise of reads missed by both, as by the host": with_disk(read_iops=90000),
    "promise of writes missed by both, as by the host": with_disk(write_iops=90000),
    "promise of writes kept by reads alone": together(
        with_disk(write_iops=35000),
        figures(times(0.8), metric="disk.write.write_iops"),
    ),
    "promise of reads kept in each third round": together(
        with_disk(read_iops=35000),
        figures(
            times(lambda m: 1 if m.round % 3 == 0 else 0.86),
            metric="disk.read.read_iops",
        ),
    ),
    "files of 1 MiB": together(
        with_disk(**_PROMISE), scenario("tools", "fio", "size", value="1m")
    ),
    "one I/O at a time": together(
        with_disk(**_PROMISE), scenario("tools", "fio", "iodepth", value=1)
    ),
    "large blocks": together(
        with_disk(**_PROMISE), scenario("tools", "fio", "block_size", value="1m")
    ),
    "host's disk elsewhere than the VMs'": together(
        with_disk(**_PROMISE),
        *(scenario("targets", who, "fio_directory", value="/var/tmp") for who in HOSTS),
    ),
    "figures of the job of writes left out": together(
        with_disk(**_PROMISE),
        figures(lambda m: None, metric="disk.write", who=(*HOSTS, *VMS)),
    ),
    "a VM's disk faster than what all of the host did": together(
        with_disk(**_PROMISE), figures(times(3), metric="disk.", who=VMS)
    ),
}
NETWORK = {
    "one queue for a VM": in_xml(("queues='20'", "queues='1'"), vms=(2,)),
    "no queues for a VM": in_xml((NIC, "<driver name='vhost'/>"), vms=(1,)),
    "four queues": in_xml(("queues='20'", "queues='4'")),
    "half of the queues": in_xml(("queues='20'", "queues='10'"), vms=(2,)),
    "e1000": in_xml(("<model type='virtio'/>", "<model type='e1000'/>"), vms=(1,)),
    "e1000e without a driver": in_xml(
        ("<model type='virtio'/>", "<model type='e1000e'/>"),
        (f"      {NIC}\n", ""),
    ),
    "rtl8139": in_xml(("<model type='virtio'/>", "<model type='rtl8139'/>")),
    "virtio in QEMU, without vhost": in_xml(("name='vhost'", "name='qemu'")),
    "limit of bandwidth by Neutron's QoS": in_xml(
        (
            "<model type='virtio'/>",
            (
                "<model type='virtio'/>\n      <bandwidth><inbound average='125000' "
                "peak='125000'/><outbound average='125000'/></bandwidth>"
            ),
        )
    ),
    "limit of bandwidth of one VM": in_xml(
        (
            "<model type='virtio'/>",
            (
                "<model type='virtio'/>\n      <bandwidth>"
                "<outbound average='625000'/></bandwidth>"
            ),
        ),
        vms=(2,),
    ),
    "vhost without ioeventfd": in_xml(
        (NIC, "<driver name='vhost' queues='20' ioeventfd='off' event_idx='off'/>")
    ),
    "a queue of the guest enabled": _guest(enabled=1),
    "half of the queues enabled": _guest(vms=(2,), enabled=10),
    "guest has four queues for 20": _guest(present=4),
    "all queues interrupt CPU 0": _guest(place=lambda queue: 0),
    "queues interrupt four CPUs": _guest(place=lambda queue: queue % 4),
    "all packets over one queue": _guest(fired=[640000, *[0] * 19]),
    "packets over two queues": _guest(fired=[320000, 320000, *[0] * 18]),
    "nothing came over the NIC while it was collected": _guest(fired=[0] * 20),
    "RPS moves packets to CPU 0": in_guests(
        {f"{NET}/eth0/queues/rx-{n}/rps_cpus": guests.mask([0]) for n in range(20)}
    ),
    "all CPUs send over one queue": in_guests(
        {f"{NET}/eth0/queues/tx-{n}/xps_cpus": guests.mask([]) for n in range(1, 20)}
        | {f"{NET}/eth0/queues/tx-0/xps_cpus": guests.mask(range(20))}
    ),
    "guest's NIC is e1000": together(
        lambda case: [
            case.guests.__setitem__(
                n,
                guests.having(
                    one,
                    links={
                        f"{NET}/eth0/device/driver": "../../../../bus/pci/drivers/e1000"
                    },
                ),
            )
            for n, one in enumerate(case.guests)
        ],
        guest_commands({"ethtool -l eth0": "netlink error: Operation not supported\n"}),
    ),
    "packets lost on the host's NIC in the hour": together(
        _lost("eth0", "rx_missed_errors", 5000000),
    ),
    "packets lost on the host's NIC while it was collected": _lost(
        "eth1", "rx_missed_errors", 60000, look="later"
    ),
    "packets dropped towards a VM in the hour": _lost("tap1", "tx_dropped", 40000000),
    "packets dropped towards a VM while it was collected": _lost(
        "tap2", "tx_dropped", 50000, look="later"
    ),
    "errors of the host's NIC in the hour": _lost("eth0", "rx_errors", 900000),
    "packets dropped in a VM in the hour": in_guests(
        {f"{NET}/eth0/statistics/rx_dropped": "80000012\n"}, vms=(1,), before=False
    ),
    "packets dropped in a VM while it was collected": in_guests(
        {f"{NET}/eth0/statistics/rx_dropped": "60012\n"},
        vms=(2,),
        before=False,
        look="later",
    ),
    "softnet of the host drops": on_host(
        {"/proc/net/softnet_stat": hosts.softnet(40, 91000, 6000)},
        before=False,
        look="later",
    ),
    "softnet of a guest drops": in_guests(
        {
            "/proc/net/softnet_stat": "".join(
                f"{90000:08x} {5000:08x} 0 {'00000000 ' * 9}{cpu:08x} 0 0\n"
                for cpu in range(20)
            )
        },
        before=False,
        look="later",
    ),
    "baseline over 1500 bytes, VMs over 9000": together(
        on_host({f"{NET}/eth{n}/mtu": "1500\n" for n in (0, 1)}),
        on_host({f"{NET}/tap{n}/mtu": "9000\n" for n in (1, 2)}),
        in_guests({f"{NET}/eth0/mtu": "9000\n"}),
    ),
    "interrupts of the NIC all on one vCPU's CPU": on_host(
        {"/proc/stat": hosts.stat(40, 1000, at={0: 700})}, before=False, look="later"
    ),
    "VMs faster than the host's network": together(
        received(), figures(times(1.4), metric="network.", who=VMS)
    ),
    "flavor without multiqueue": in_xml(
        (
            '<nova:extraSpec name="hw:vif_multiqueue_enabled">true<',
            '<nova:extraSpec name="hw:vif_multiqueue_enabled">false<',
        ),
        ("queues='20'", "queues='1'"),
    ),
    "a second NIC of one queue": in_xml(
        (
            "    <memballoon",
            (
                "    <interface type='bridge'>\n      <mac "
                "address='fa:16:3e:00:01:0{n}'/>\n"
                "      <target dev='tap1{n}'/>\n      <model type='virtio'/>\n"
                "      <driver name='vhost' queues='1'/>\n    </interface>\n "
                "   <memballoon"
            ),
        )
    ),
}
FAULTS = DISKS | NETWORK

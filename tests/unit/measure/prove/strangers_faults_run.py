# SPDX-License-Identifier: Apache-2.0
"""Faults of baseline, scenario, figures and their order: {name: edit of a case}."""

from dataclasses import replace
from datetime import timedelta

from tests.unit.measure import hosts
from tests.unit.measure.prove import sound
from tests.unit.measure.prove import strangers_edits as edits
from tests.unit.measure.prove.strangers_edits import (
    HOSTS,
    VMS,
    attribute,
    changed,
    figures,
    generator,
    in_guests,
    later_by,
    noted,
    on_host,
    received,
    scenario,
    steps,
    times,
    together,
)

CPU, NODE = hosts.CPU, hosts.NODE
_OTHER_BOOT = "77777777-0000-4000-8000-000000000000\n"


def _none(_one, _number=0):
    return []


def _gone(_one):
    return None


def _slow(rounds, by=0.5, who=("vm2",), metric="cpu.events"):
    """Return an edit that makes rounds of a VM slow."""
    return figures(
        times(lambda one: by if one.round in rounds else 1), who=who, metric=metric
    )


def _hosts_first(case):
    """Let the host be measured wholly before its VMs, at the same times."""
    done = case.run["steps"]
    when = [one["started_at"] for one in done]
    done.sort(key=lambda one: "/hosts/" not in one["key"])
    for at, one in zip(when, done, strict=True):
        one["started_at"] = at


def _second_session(seconds, files=None, hostname=None, half=126):
    """Return an edit that goes on with the run in a session of its own.

    :param files: of the host, seen in the first session, that are otherwise
    """

    def edit(case):
        sessions = case.run["sessions"]
        first = sound.run()["sessions"][0]
        sessions.append(first)
        for who in HOSTS:
            sessions[0]["targets"][who]["collected"]["files"].update(files or {})
            if hostname:
                sessions[0]["targets"][who]["hostname"] = hostname
        done = case.run["steps"]
        for number, one in enumerate(done):
            if number < half:
                later_by(-seconds)(one, number)
        early = sound.datetime.fromisoformat(sessions[0]["started_at"])
        sessions[0]["started_at"] = (early - timedelta(seconds=seconds)).isoformat()
        sessions[1]["started_at"] = (
            sound.datetime.fromisoformat(done[half]["started_at"])
            - timedelta(seconds=12)
        ).isoformat()

    return edit


def _one_node(case):
    """Bind both runs of the host to node 0."""
    case.run["scenario"]["targets"]["node1"]["node"] = 0
    figures(attribute(node=0), who=HOSTS)(case)


def _unbound(case):
    for who in HOSTS:
        case.run["scenario"]["targets"][who]["node"] = None
    figures(attribute(node=None), who=HOSTS)(case)


def _busy(step, **values):
    """Return an edit of what VMs did beside the host in steps."""

    def change(one, _number):
        for who in one["beside"]:
            one["beside"][who] |= values

    return steps(change, having=step)


def _copied(case):
    """Give the second VM the figures of the first."""
    of_first = {
        (m.metric, m.threads, m.round): m.value for m in case.measured if m.who == "vm1"
    }
    figures(
        lambda m: replace(m, value=of_first[m.metric, m.threads, m.round]),
        who=("vm2",),
    )(case)


def _collected(hours, *, host=True, guests=True):
    """Return an edit of when it was collected after the run."""

    def edit(case):
        at = sound.datetime.fromisoformat(case.host.taken_at) + timedelta(hours=hours)
        if host:
            case.host = replace(case.host, taken_at=at.isoformat())
        if guests:
            case.guests = [replace(g, taken_at=at.isoformat()) for g in case.guests]

    return edit


def _once(case):
    case.host = replace(case.host, interval_s=0.0, later={})
    case.guests = [replace(g, interval_s=0.0, later={}) for g in case.guests]


def _failed(case):
    """Note a step that failed in a VM, and drop what it left."""
    key = "7/vms/memory bandwidth/20"
    steps(_none, having=key)(case)
    figures(lambda m: None if m.round == 7 else m, metric="memory.bandwidth", who=VMS)(
        case
    )
    case.run["failures"].append(
        {"where": key, "who": "vm2", "reason": "no connection", "stderr": ""}
    )


def _seen(who, **changes):
    """Return an edit of what was seen of targets before the run."""

    def edit(case):
        for one in who:
            case.run["sessions"][0]["targets"][one] |= changes

    return edit


BASELINE = {
    "host collected is another of the rack": lambda case: setattr(
        case, "host", replace(case.host, hostname="compute2")
    ),
    "host collected after a reboot": on_host({sound.BOOT: _OTHER_BOOT}, before=False),
    "baseline of another CPU model": together(
        on_host({"/proc/cpuinfo": changed(sound.CPU, "Xeon Silver 4214")}, after=False),
        figures(attribute(cpu_model="Xeon Silver 4214"), who=HOSTS),
    ),
    "baseline under an older kernel": figures(attribute(kernel="5.15.0"), who=HOSTS),
    "baseline under powersave": together(
        on_host({f"{CPU}/cpu*/cpufreq/scaling_governor": "powersave\n"}, after=False),
        figures(attribute(governor="powersave"), who=HOSTS),
    ),
    "governor of node 1 alone is powersave": together(
        *(
            on_host({f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": "powersave\n"})
            for cpu in range(20, 40)
        ),
        figures(attribute(governor="performance powersave"), who=HOSTS),
    ),
    "baseline without turbo": on_host(
        {f"{CPU}/intel_pstate/no_turbo": "1\n"}, after=False
    ),
    "baseline with clocks capped to 60 %": on_host(
        {f"{CPU}/intel_pstate/max_perf_pct": "60\n"}, after=False
    ),
    "baseline with node 0 at 1.2 GHz": on_host(
        {f"{CPU}/cpu{n}/cpufreq/scaling_max_freq": "1200000\n" for n in range(20)},
        after=False,
    ),
    "CPUs of the host throttled in the hour": on_host(
        {f"{CPU}/cpu*/thermal_throttle/core_throttle_count": "9184\n"}, before=False
    ),
    "a package throttled while it was collected": on_host(
        {f"{CPU}/cpu*/thermal_throttle/core_throttle_count": "9184\n"},
        before=False,
        look="later",
    ),
    "baseline unbound": _unbound,
    "baseline on node 0 alone": _one_node,
    "baseline of ten threads": figures(attribute(threads=10), who=HOSTS),
    "VMs busy beside the baseline": _busy(
        "/hosts/", cpu_s=180.0, most_s=92.0, seconds=10.2
    ),
    "a VM's cron job beside one step": _busy(
        "9/hosts/memory bandwidth", cpu_s=8.0, most_s=7.9
    ),
    "a third VM beside the baseline": _busy("/hosts/", vms=3),
    "what VMs did was seen for half a second": _busy("/hosts/", seconds=0.5),
    "what VMs did is not known of a step": steps(
        lambda one, _: one["beside"].update(node0=None), having="3/hosts/cyclictest"
    ),
    "what VMs did was not looked at": steps(
        lambda one, _: one.pop("beside") and None, having="/hosts/"
    ),
    "baseline of the day before": steps(later_by(-86400), having="/hosts/"),
    "baseline wholly before the VMs": _hosts_first,
    "baseline faster than the NIC's link": together(
        generator(), on_host({f"/sys/class/net/eth{n}/speed": "1000\n" for n in (0, 1)})
    ),
    "baseline over 1 Gbit/s beside 25 Gbit/s": together(
        on_host(
            {
                "/sys/class/net/eth0/speed": "1000\n",
                "/sys/class/net/eth1/speed": "25000\n",
            }
        ),
        figures(times(0.047), metric="network.bits", who=(*HOSTS, *VMS)),
    ),
    "host is a VM itself": together(
        on_host({"/proc/cpuinfo": changed("flags\t\t: ", "flags\t\t: hypervisor ")}),
        on_host(
            {
                "/sys/class/dmi/id/sys_vendor": "QEMU\n",
                "/sys/class/dmi/id/product_name": "Standard PC (Q35 + ICH9, 2009)\n",
            }
        ),
    ),
    "host is a VM whose DMI data was passed through": on_host(
        {"/proc/cpuinfo": changed("flags\t\t: ", "flags\t\t: hypervisor ")}
    ),
    "correctable memory errors in the hour": on_host(
        {"/sys/devices/system/edac/mc/mc0/ce_count": "41227\n"}, before=False
    ),
    "microcode was loaded in the hour": on_host(
        {"/proc/cpuinfo": changed("0x5003707", "0x5003801")}, before=False
    ),
    "mitigations of the host alone while it was measured": on_host(
        {"/proc/cmdline": changed("quiet", "quiet mitigations=auto,nosmt")},
        after=False,
    ),
    "THP of the baseline never, of VMs always": together(
        on_host(
            {"/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n"}
        ),
        in_guests(
            {"/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"}
        ),
    ),
    "THP of the baseline madvise, of VMs always": in_guests(
        {"/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"}
    ),
    "host's tools of another version": figures(
        attribute(tool_version="1.0.11"), metric="cpu.", who=HOSTS
    ),
    "host's iperf3 of one thread, VMs' of many": figures(
        attribute(tool_version="3.17.1"), metric="network.", who=VMS
    ),
    "host of old cyclictest": figures(
        attribute(tool_version="1.0"), metric="scheduling.", who=HOSTS
    ),
}
SCENARIO = {
    "runs of three seconds": together(
        *(
            scenario("tools", tool, "seconds", value=3)
            for tool in (
                *("sysbench_cpu", "memory_bandwidth", "memory_latency"),
                *("cyclictest", "iperf3"),
            )
        )
    ),
    "runs of memory of nine seconds": scenario(
        "tools", "memory_bandwidth", "seconds", value=9
    ),
    "five rounds": together(
        scenario("repeats", value=5),
        figures(lambda m: m if m.round <= 5 else None, who=(*HOSTS, *VMS)),
        steps(lambda one, _: None if int(one["key"].split("/")[0]) <= 5 else []),
    ),
    "nothing warmed up": together(
        scenario("warm_up", value=0),
        steps(_none, having="0/vms"),
        lambda case: case.run.update(
            steps=[one for one in case.run["steps"] if not one["warm_up"]]
        ),
    ),
    "nineteen of twenty rounds": together(
        lambda case: case.run.update(
            steps=[s for s in case.run["steps"] if not s["key"].startswith("20/")]
        ),
        figures(lambda m: m if m.round < 20 else None, who=(*HOSTS, *VMS)),
    ),
    "VMs began eight seconds apart": noted(started_apart_s=8.0, having="/vms/"),
    "clock of a VM runs fast by a percent": steps(
        lambda one, number: one["ahead_s"].update(
            {who: 0.2 + 0.13 * number for who in one["targets"] if who == "vm2"}
        )
    ),
    "clock of a VM was set in the hour": steps(
        lambda one, number: one["ahead_s"].update(
            {who: 95.0 for who in one["targets"] if who == "vm1" and number > 120}
        )
    ),
    "nobody knows the clocks": noted(ahead_s={}),
    "one direction": scenario("tools", "iperf3", "directions", value=["send"]),
    "one connection": scenario("tools", "iperf3", "connections", value=[1]),
    "small packets left out for large": scenario(
        "tools", "iperf3", "protocols", value=["udp"]
    ),
    "cyclictest unloaded": scenario("tools", "cyclictest", "loaded", value=False),
    "cyclictest each 10 ms": scenario(
        "tools", "cyclictest", "interval_us", value=10000
    ),
    "cyclictest at priority 1": scenario("tools", "cyclictest", "priority", value=1),
    "memory within the caches, as declared": scenario("working_set_mb", value=16),
    "memory within the caches": lambda case: case.run.update(working_set_mb=16),
    "memory within the caches of two sockets": together(
        _seen(HOSTS, last_level_cache_bytes=2 * 384 * 2**20)
    ),
    "VMs' tools run with priority": together(
        *(scenario("targets", who, "prefix", value=["chrt", "-f", "50"]) for who in VMS)
    ),
    "host's tools run in a cpuset": scenario(
        "targets",
        "node0",
        "prefix",
        value=["systemd-run", "--scope", "-p", "AllowedCPUs=0-9"],
    ),
    "one VM measured of two": together(
        figures(_gone, who=("vm2",)),
    ),
    "a step failed": _failed,
    "a tool left out": together(
        scenario("tools", "cyclictest", value=None),
        figures(_gone, metric="scheduling.", who=(*HOSTS, *VMS)),
        lambda case: case.run.update(
            steps=[s for s in case.run["steps"] if "cyclictest" not in s["key"]]
        ),
    ),
    "no network": together(
        scenario("tools", "iperf3", value=None),
        lambda case: case.run["scenario"]["targets"].pop("generator"),
        figures(_gone, metric="network.", who=(*HOSTS, *VMS)),
        lambda case: case.run.update(
            steps=[s for s in case.run["steps"] if "iperf3" not in s["key"]]
        ),
    ),
    "resumed after the host's reboot": _second_session(
        3600 * 3, {sound.BOOT: _OTHER_BOOT}
    ),
    "resumed with another command line": _second_session(
        1800, {"/proc/cmdline": "BOOT_IMAGE=/vmlinuz mitigations=off\n"}
    ),
    "resumed a day later": _second_session(86400),
    "begun on another host": _second_session(1200, hostname="compute9"),
    "collected before it was measured": _collected(-3),
    "guests collected the day before": _collected(-24, host=False),
    "collected five hours later": _collected(5),
    "counters looked at once": _once,
    "VM live-migrated meanwhile: QEMU began in the hour": on_host(
        {
            f"/proc/{edits.pid(2)}/stat": hosts.process_stat(
                edits.pid(2), "qemu-system-x86", 2 * 86400 - 1800
            )
        },
        before=False,
    ),
}
STATISTICS = {
    "one VM has 0.6 of its CPU": figures(
        times(0.63), metric="cpu.events", who=("vm2",)
    ),
    "both have 0.69 of bandwidth": figures(times(0.766), metric="memory.bandwidth"),
    "one VM has remote latency": figures(
        times(0.6), metric="memory.random", who=("vm1",)
    ),
    "one VM at half speed in 5 of 20 rounds": _slow({2, 6, 11, 15, 19}),
    "one VM at half speed in 3 of 20 rounds": _slow({2, 11, 19}),
    "both VMs at half speed in every fourth round": together(
        _slow({4, 8, 12, 16, 20}, who=VMS)
    ),
    "memory at a third in the last five rounds": _slow(
        range(16, 21), 0.35, metric="memory.bandwidth"
    ),
    "one VM drifts to a half": figures(
        times(lambda m: 1 - 0.025 * m.round), metric="cpu.events", who=("vm2",)
    ),
    "both VMs drift below the target at last": figures(
        times(lambda m: 1.1 - 0.022 * m.round), metric="memory.bandwidth"
    ),
    "host drifts down, ratios rise": figures(
        times(lambda m: 1.2 - 0.03 * m.round), metric="memory.bandwidth", who=HOSTS
    ),
    "wakes up five times as late": figures(
        times(0.2), metric="scheduling.", who=("vm1",)
    ),
    "wakes up late in every third round": figures(
        times(lambda m: 0.1 if m.round % 3 == 0 else 1),
        metric="scheduling.",
        who=("vm1",),
    ),
    "wakes up ten times as late in nine of twenty rounds": figures(
        times(lambda m: 0.1 if m.round % 2 and m.round > 2 else 1),
        metric="scheduling.",
        who=VMS,
    ),
    "bandwidth at 0.55 in eight rounds, at 1.2 in twelve": figures(
        times(lambda m: 0.58 if m.round % 5 < 2 else 1.1), metric="memory.bandwidth"
    ),
    "wakes up late in eleven of twenty rounds": figures(
        times(lambda m: 0.2 if m.round % 2 or m.round == 2 else 1),
        metric="scheduling.",
        who=VMS,
    ),
    "VMs far faster than the host": figures(times(0.7), metric="cpu.", who=HOSTS),
    "baseline of memory at 0.8, VMs beyond it": figures(
        times(0.8), metric="memory.bandwidth", who=HOSTS
    ),
    "baseline of one node slow, VMs hide in its mean": figures(
        times(0.5), metric="memory.bandwidth", who=("node1",)
    ),
    "baseline of some rounds far too low": figures(
        times(lambda m: 0.4 if m.round % 2 else 1), metric="cpu.events", who=HOSTS
    ),
    "baseline of the network at a third": figures(
        times(0.34), metric="network.bits", who=HOSTS
    ),
    "all rounds equal": figures(
        lambda m: replace(m, value=1000.0), metric="cpu.events", who=(*HOSTS, *VMS)
    ),
    "noise of 60 % in VMs": figures(
        times(lambda m: (0.4, 1.0, 1.6)[m.round % 3]), metric="memory.bandwidth"
    ),
    "one VM takes the other's network": together(
        figures(times(1.45), metric="network.", who=("vm1",)),
        figures(times(0.5), metric="network.", who=("vm2",)),
    ),
    "network towards a VM at a third": received((0.93, 0.33)),
    "network towards VMs at 0.6": received((0.6, 0.6)),
    "a metric of one VM missing": figures(_gone, metric="memory.random", who=("vm1",)),
    "CPU of one thread alone": figures(
        lambda m: None if m.threads == 20 else m,
        metric="cpu.events",
        who=(*HOSTS, *VMS),
    ),
}
GENERATOR = {
    "generator is the host": together(
        received(),
        generator(
            hostname="compute1",
            files={sound.BOOT: "compute1-0000-4000-8000-000000000000\n"},
        ),
    ),
    "generator is a container on the host": together(
        received(),
        generator(
            hostname="lxc-gen",
            files={sound.BOOT: "compute1-0000-4000-8000-000000000000\n"},
        ),
    ),
    "generator is a VM on the host": together(
        received(),
        generator(hostname="gen", files={sound.UUID: f"{hosts.UUIDS[2]}\n"}),
        lambda case: setattr(
            case,
            "host",
            hosts.with_domains(case.host, vm3=hosts.general_xml(3)),
        ),
    ),
    "generator is the other VM": together(
        received(),
        generator(
            hostname="rgw2",
            files={
                sound.BOOT: "rgw2-0000-4000-8000-000000000000\n",
                sound.UUID: f"{hosts.UUIDS[1]}\n",
            },
        ),
    ),
}
# What bench run does not write: records that were edited, or joined of two.
EDITED = {
    "figures of both host runs are of node 0": figures(
        attribute(node=0), who=("node1",)
    ),
    "baseline alone, VMs two at once": figures(attribute(at_once=1), who=HOSTS),
    "baseline of one run for two VMs": figures(_gone, who=("node1",)),
    "steps go back in time": steps(
        later_by(lambda number: -600 if number > 200 else 0)
    ),
    "steps overlap": steps(later_by(lambda number: -9 * number)),
    "host and VMs measured at the same time": steps(
        later_by(lambda number: -13 * (number % 2))
    ),
    "a step over sooner than its run": noted(took_s=3.1),
    "figures of one VM are the other's": _copied,
    "nothing measured of the network towards one VM": together(
        received(), figures(_gone, metric="network.received", who=("vm2",))
    ),
    "figures of rounds that no step has": figures(
        lambda m: replace(m, round=m.round + 20), who=(*HOSTS, *VMS)
    ),
    "repeats beside rounds, the best of three": figures(
        lambda m: replace(m, repeat=3), who=VMS
    ),
    "figures under a neighbour's load are the host's": figures(
        lambda m: replace(m, loaded_neighbours=1), who=HOSTS
    ),
    "a step noted twice": steps(lambda one, _: [one, dict(one)], having="5/vms/iperf3"),
    "rounds measured twice, the better kept": steps(
        lambda one, number: [
            one,
            one | {"started_at": "2026-11-22T09:59:00+00:00"},
        ],
        having="8/vms/",
    ),
    "steps in another order than was drawn": lambda case: case.run["steps"].sort(
        key=lambda one: one["key"]
    ),
    "seed of another order": lambda case: case.run.update(seed=1),
    "steps of a round dropped, its figures kept": lambda case: case.run.update(
        steps=[s for s in case.run["steps"] if not s["key"].startswith("12/")]
    ),
    "a step dropped, its figures kept": steps(_none, having="12/vms/memory bandwidth"),
    "figures of a step dropped": figures(
        lambda m: None if m.round == 12 else m, metric="memory.bandwidth", who=VMS
    ),
    "slow rounds of a VM left out": figures(
        lambda m: None if m.round in {4, 9, 13} else m,
        metric="cpu.events",
        who=("vm2",),
    ),
    "VM's figures of another kernel": figures(attribute(kernel="5.10.0"), who=("vm1",)),
    "steps of one VM after the other": steps(
        lambda one, _: one["targets"].remove("vm2"), having="/vms/"
    ),
    "each VM alone": figures(attribute(at_once=1)),
    "memory of no known size": lambda case: case.run.update(working_set_mb=0),
}
FAULTS = BASELINE | SCENARIO | STATISTICS | GENERATOR | EDITED

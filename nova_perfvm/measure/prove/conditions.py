# SPDX-License-Identifier: Apache-2.0
"""Whether what was measured was measured under the conditions that were looked at.

A host may be set up otherwise for its own measurement, a VM may have moved or begun
anew since, clocks may be wrong, and what is called *at once* may have been one after
the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, pairwise
from operator import attrgetter
from typing import Final

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks import packets, wait_limits
from nova_perfvm.measure.checks.check import Seen, check_each, check_of, each_of
from nova_perfvm.measure.checks.guest.clocksource import CURRENT
from nova_perfvm.measure.checks.host import hardware
from nova_perfvm.measure.checks.host import packets as host_packets
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import interrupts, processes, softnet, stat
from nova_perfvm.measure.observed.cpus import CPU
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.nics import NET
from nova_perfvm.measure.prove.inputs import BOOT, RUN, UUID, CollectedMachine, Inputs
from nova_perfvm.measure.prove.run_notes import ClockSeen, MachineSeen
from nova_perfvm.printable import number_of

# Files that must be recorded both times, and be equal...
_NEEDED: Final = (BOOT, "/proc/cmdline", f"{CPU}/online")
# ...and files that must be equal if both times have them.
_SAME: Final = re.compile(
    "|".join(
        (
            *(*_NEEDED, UUID, f"{CPU}/smt/control"),
            rf"{CPU}/cpu\d+/cpufreq/(scaling_governor|scaling_max_freq)",
            f"{CPU}/(intel_pstate/(no_turbo|max_perf_pct)|cpufreq/boost)",
            f"{CPU}/vulnerabilities/.*|{CURRENT}",
            "/sys/kernel/mm/(ksm/run|transparent_hugepage/enabled)",
            "/proc/sys/kernel/numa_balancing",
        )
    )
)
_CPUINFO: Final = re.compile(r"^microcode\s*:.*$|\bhypervisor\b", re.MULTILINE)
_THP: Final = "/sys/kernel/mm/transparent_hugepage/enabled"
# In rising order of the speed of memory, if a program asks for no huge pages.
_THP_MODES: Final = ("never", "madvise", "always")
_VULNERABILITIES: Final = f"{CPU}/vulnerabilities/"
# Mitigations that KVM has for its guests, and one without a cost.
_OF_KVM: Final = ("itlb_multihit", "vmscape")
_FREE: Final = "Mitigation: TSX disabled"
# Kernel arguments that leave a mitigation out (Linux,
# Documentation/admin-guide/kernel-parameters), and the one that leaves out all.
_ALL_OFF: Final = "mitigations=off"
_SPARING: Final = re.compile(
    r"nopti|nospectre_v[12]|tsx=on|(pti|l1tf|mds|tsx_async_abort|tsa|srbds|vmscape"
    r"|mmio_stale_data|retbleed|reg_file_data_sampling|gather_data_sampling"
    r"|indirect_target_selection|spec_store_bypass_disable|spec_rstack_overflow"
    rf"|spectre_(v2|v2_user|bhi))=off|{_ALL_OFF}"
)
_VMSTAT: Final = "/proc/vmstat"
_MIGRATED: Final = re.compile(r"^numa_pages_migrated (\d+)$", re.MULTILINE)
# Part of a VM's memory: hypervisor.memory_local lets as much be elsewhere.
_MOST_MOVED: Final = 0.01
# A clock this much too slow or fast shifts each rate as much; error of measuring it.
_CLOCK_SHARE: Final = 0.005
_CLOCK_S: Final = 0.1
# A clock that is further off makes times of files mean nothing.
_CLOCK_MOST_S: Final = 60.0
# Part of a step by which starts may differ: in the rest all machines were busy.
_APART: Final = 0.1
# QEMU's start is told by the host's clock, the run's by another.
_SLACK_S: Final = 5.0


_MACHINES: Final = attrgetter("machines")


def _seen(inputs: Inputs, machine: CollectedMachine) -> list[MachineSeen]:
    """Return what was seen of a machine whenever a run began, or went on."""
    return [one for one in inputs.run.seen if one.name in machine.who]


@check_each(
    61,
    "proof.same_state",
    _MACHINES,
    source=f"{RUN}; /proc/PID/stat of QEMU, {stat.PATH}",
    remedy="openstack perfvm prove again, without a change meanwhile",
)
def _same_state(inputs: Inputs, machine: CollectedMachine) -> Seen:
    """Files of each machine are the same before and after the run."""
    seen = _seen(inputs, machine)
    for one in seen:
        for words in changed(one.files, machine.collected.files):
            yield Level.UNKNOWN, words
    level = Level.OK if seen else Level.UNKNOWN
    yield level, f"seen {number_of(len(seen), 'time')}"
    if machine.domain is not None:
        yield _began(inputs, machine.domain)
    if machine.is_host:
        yield from _governors(inputs)


def _governors(inputs: Inputs) -> Seen:
    """Yield an unknown for each warning about governors of the CPUs that VMs own."""
    for one in hardware.governor.findings(inputs.host):
        if one.level is Level.WARNING:
            yield Level.UNKNOWN, f"{one.observed}: a slow baseline flatters the VMs"


def _began(inputs: Inputs, domain: Domain) -> tuple[Level, str]:
    """Look whether a VM's QEMU ran before it was measured, so that it never moved."""
    host = inputs.host
    process = host.process_of(domain)
    began_s = processes.began_s(host.collected, process) + stat.booted_s(host.collected)
    late_s = began_s - inputs.run.begun.timestamp()
    if late_s <= _SLACK_S:
        return Level.OK, f"QEMU began {-late_s / 60:.0f} minutes before"
    words = f"QEMU began {late_s / 60:.0f} minutes after the VM was measured first"
    return Level.UNKNOWN, f"{words}: it was moved, or started anew"


@check_each(
    67,
    "proof.same_settings",
    attrgetter("vms"),
    source=f"{_THP}, {_VULNERABILITIES}*, {NET}/*/mtu, ethtool -k of guest and host",
    remedy=f"echo madvise > {_THP} on both, or the mode of the host; the same "
    "mitigations= on both kernels' command lines",
)
def _same_settings(inputs: Inputs, guest: CollectedMachine) -> Seen:
    """Guests have their host's huge pages, mitigations and settings of NICs."""
    looks = [_huge_pages, _mitigations]
    looks += [_nics] if inputs.vm_class.vif_multiqueue else []
    yield from each_of(looks, inputs.host.collected, guest.collected)


def _huge_pages(host: Collected, guest: Collected) -> Seen:
    there, inside = (_thp_mode(one) for one in (host, guest))
    # Sysbench asks for none: it has them in the guest alone.
    flatters = _THP_MODES.index(inside) > _THP_MODES.index(there)
    level = Level.UNKNOWN if flatters else Level.WARNING
    words = f"transparent huge pages: {inside} in the guest, {there} on the host"
    yield Level.OK if inside == there else level, words


def _thp_mode(of: Collected) -> str:
    if "no such file" in of.unread.get(_THP, ""):
        return _THP_MODES[0]
    found = re.search(r"\[(never|madvise|always)\]", of.text(_THP))
    if not found:
        raise NotReadError(_THP, f"it names no mode on {of.hostname}")
    return found[1]


def _nics(host: Collected, guest: Collected) -> Seen:
    """Compare the guest's NICs with the fastest of the host, its way to others."""
    fast = packets.speeds(host)
    fast_nics = [nic for nic, speed in fast.items() if speed == max(fast.values())]
    there, inside = fast_nics or packets.devices(host), packets.devices(guest)
    sizes = [
        [_mtu(of, nic) for nic in nics] for of, nics in ((host, there), (guest, inside))
    ]
    most = [max(of, default=0) for of in sizes]
    level = Level.UNKNOWN if most[1] > most[0] else Level.OK
    yield level, f"MTU {most[1]} in the guest, {most[0]} on the host"
    with suppress(NotReadError):
        here = frozenset().union(*(packets.off(guest, nic) for nic in inside))
        slow = frozenset().union(*(packets.off(host, nic) for nic in there))
        if spared := ", ".join(sorted(slow - here)):
            yield Level.UNKNOWN, f"off on the host, on in the guest: {spared}"


def _mtu(of: Collected, nic: str) -> int:
    return int(of.text(f"{NET}/{nic}/mtu"))


def _mitigations(host: Collected, guest: Collected) -> Seen:
    of_host, of_guest = (
        {*filter(_SPARING.fullmatch, one.text("/proc/cmdline").split())}
        for one in (host, guest)
    )
    if _ALL_OFF not in of_host and (alone := " ".join(sorted(of_guest - of_host))):
        yield Level.UNKNOWN, f"{alone} on the guest's command line, not the host's"
    paths = host.matching(f"{_VULNERABILITIES}*")
    if not paths:
        raise NotReadError(_VULNERABILITIES, "it was not collected on the host")
    for path, text in paths.items():
        # Behind the first part stands what SMT and KVM add.
        name, there = path.rpartition("/")[2], text.strip().partition(";")[0]
        inside = guest.files.get(path, "not told").strip().partition(";")[0]
        same = inside == there or inside.startswith("Unknown") or there == _FREE
        if same or name in _OF_KVM:
            continue
        spared = there.startswith("Mitigation") and inside.startswith("Vulnerable")
        # The mitigation is in force; the guest cannot see the microcode that helps it.
        spared = spared and "no microcode" not in inside
        level = Level.UNKNOWN if spared else Level.WARNING
        yield level, f"{name}: {inside} in the guest, {there} on the host"
    yield Level.OK, f"{len(paths)} mitigations compared"


def changed(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield each difference between two collections of a machine, and each gap."""
    both = was.keys() & now.keys()
    for path in _NEEDED:
        if path not in both:
            yield f"{path} was not read both times"
    for path in sorted(filter(_SAME.fullmatch, both)):
        if was[path] != now[path]:
            yield f"{path} was {was[path].strip():.60}, and is {now[path].strip():.60}"
    kinds = [{*_CPUINFO.findall(f.get("/proc/cpuinfo", ""))} for f in (was, now)]
    if other := ", ".join(sorted(kinds[0] ^ kinds[1])):
        yield f"/proc/cpuinfo is another one: {other:.60}"


@check_each(
    62,
    "proof.clocks",
    lambda inputs: inputs.run.targets,
    source=RUN,
    remedy="chronyc tracking",
)
def _clocks(inputs: Inputs, target: MachineSeen) -> Seen:
    """Clocks of all machines kept time during the run."""
    told = [one for one in inputs.run.clocks if one.who == target.name]
    told.sort(key=lambda one: one.at)
    pairs = [*pairwise(told), *zip(told[:1], told[-1:], strict=True)]
    strays_s = max(map(_strays_s, pairs), default=0.0)
    far_s = max((abs(one.ahead_s) for one in told), default=0.0)
    # Before and after steps.
    right = len(told) > 1 and far_s <= _CLOCK_MOST_S and strays_s <= 0
    words = (
        f"compared {number_of(len(told), 'time')}, at most {far_s:.2f} s off, of "
        f"{_CLOCK_MOST_S:.0f}; {max(strays_s, 0.0):.2f} s beyond {_CLOCK_SHARE:.1%}"
    )
    yield Level.OK if right else Level.UNKNOWN, words


def _strays_s(pair: tuple[ClockSeen, ClockSeen]) -> float:
    """Return the seconds that a clock strayed beyond the allowed; negative within."""
    before, after = pair
    allowed_s = _CLOCK_SHARE * (after.at - before.at).total_seconds() + _CLOCK_S
    return abs(after.ahead_s - before.ahead_s) - allowed_s


@check_of(63, "proof.at_once", source=RUN, remedy="")
def _at_once(inputs: Inputs) -> Seen:
    """Machines that measured at once began together."""
    run, measured = inputs.run, inputs.samples.measurements
    vms = {one.name for one in run.seen if one.kind == "guest"}
    steps = [s for s in run.steps if s.counts and len(s.targets) > 1]
    for step in steps:
        took_s, apart_s = step.took_s or 0, step.apart_s
        if apart_s is None or apart_s > _APART * took_s or not took_s:
            apart = f"{apart_s or 0:.0f} s apart, of {took_s:.0f} s"
            yield Level.UNKNOWN, f"{step.key}: begun {apart}; {_APART:.0%} may be"
    most = max((len(vms & {*step.targets}) for step in steps), default=1)
    of_vms = (m.at_once or 1 for m in measured if m.machine.kind == "guest")
    claimed = max(of_vms, default=1)
    level = Level.OK if claimed <= most else Level.UNKNOWN
    yield level, f"{most} VMs in a step, as is said of {claimed}"


@check_of(64, "proof.distinct", source=BOOT, remedy="")
def _distinct(inputs: Inputs) -> Seen:
    """Each file was collected on a machine of its own."""
    for pair in combinations((inputs.host.collected, *inputs.collected), 2):
        names = " and ".join(one.hostname for one in pair)
        boots = [one.files.get(BOOT, "").strip() for one in pair]
        if not all(boots) or boots[0] == boots[1] or pair[0].files == pair[1].files:
            told = ", ".join(boot or "not collected" for boot in boots)
            yield Level.UNKNOWN, f"{names}: not each with a boot of its own: {told}"
        else:
            yield Level.OK, f"{names}: two boots"


def _hour(inputs: Inputs, machine: CollectedMachine) -> Collected:
    """Return a machine with the counters of before the first step and after the last.

    :raises NotReadError: when the machine was not collected at both times
    """
    now = machine.collected
    first = min(_seen(inputs, machine), key=attrgetter("at"), default=None)
    if first is None or not first.files:
        raise NotReadError(RUN, "its counters before the first step are not noted")
    if (inputs.run.ended - now.time).total_seconds() > _CLOCK_MOST_S:
        raise NotReadError(RUN, "it was not collected after the last step")
    seconds, later = (now.time - first.at).total_seconds(), {**now.files, **now.later}
    return replace(now, interval_s=seconds, files=first.files, later=later)


@check_each(
    66,
    "proof.counters",
    _MACHINES,
    source=f"{RUN}; {CPU}/cpu*/thermal_throttle, edac/mc, {interrupts.PATH}, "
    f"{stat.PATH}, {softnet.PATH}, {_VMSTAT}, {NET}/*/statistics",
    remedy="cool the host, exchange its memory, look who else runs on the VM's CPUs; "
    f"sysctl kernel.numa_balancing=0; {packets.REMEDY}",
)
def _counters(inputs: Inputs, machine: CollectedMachine) -> Seen:
    """Counters of faults stood still while it was measured."""
    looks = (_faults, _migrated) if machine.is_host else (_stolen,)
    yield from each_of((_lost, _dropped, *looks), _hour(inputs, machine), inputs)


def _lost(hour: Collected, inputs: Inputs) -> Seen:
    is_host = hour.kind == "host"
    nics = host_packets.nics(inputs.host) if is_host else packets.devices(hour)
    found = list(packets.losses(hour.files, hour.later, nics))
    if not found:
        raise NotReadError(RUN, "what NICs lost meanwhile is not noted")
    worst = max(found, key=lambda one: (one.level(hour.interval_s), one.share))
    yield worst.level(hour.interval_s), f"{worst.nic}: {worst}"


def _faults(hour: Collected, _inputs: Inputs) -> Seen:
    return hardware.faults(hour)


def _dropped(hour: Collected, _inputs: Inputs) -> Seen:
    backlogs = softnet.read(hour).values()
    lost, taken = sum(b.dropped for b in backlogs), sum(b.processed for b in backlogs)
    level = Level.FAILURE if lost > packets.FAIL_ABOVE * (lost + taken) else Level.OK
    yield level, f"{lost} packets dropped by the kernel, beside {taken}"


def _stolen(hour: Collected, inputs: Inputs) -> Seen:
    # VMs have to be idle while the host is measured: idle time does not count.
    shares = [t.stolen / max(t.total - t.idle, 1) for t in stat.read(hour).values()]
    found = wait_limits.level(max(shares))
    # Other classes share CPUs.
    found = found if inputs.vm_class.pinned else min(found, Level.WARNING)
    yield found, f"{max(shares):.1%} stolen of what a vCPU asked for"


def _migrated(hour: Collected, inputs: Inputs) -> Seen:
    was, now = (_MIGRATED.search(text) for text in hour.looks(_VMSTAT))
    if was and now:
        moved_mb = (int(now[1]) - int(was[1])) * 4 // 1024
        few = moved_mb <= _MOST_MOVED * inputs.flavor.memory_mb
        level = Level.OK if few else Level.UNKNOWN
        yield level, f"{moved_mb} MiB moved to other NUMA nodes"

# SPDX-License-Identifier: Apache-2.0
"""Whether what was measured was measured under the conditions that were looked at.

A host may be set up otherwise for its own measurement, a VM may have moved or begun
anew since, clocks may be wrong, and what is called *at once* may have been one after
the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise
from typing import Final

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks import packets
from nova_perfvm.measure.checks.host import packets as host_packets
from nova_perfvm.measure.checks.seen import Seen, check_each, check_of
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import processes, stat
from nova_perfvm.measure.observed.cpus import CPU
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.nics import NET
from nova_perfvm.measure.prove.inputs import RUN, UUID, CollectedMachine, Inputs
from nova_perfvm.measure.prove.run_notes import ClockSeen, MachineSeen, RunTarget
from nova_perfvm.printable import number_of

_BOOT: Final = "/proc/sys/kernel/random/boot_id"
# What has to be noted, and the same...
_NEEDED: Final = (_BOOT, "/proc/cmdline", f"{CPU}/online")
# ...and what has to be the same where it is noted.
_SAME: Final = re.compile(
    "|".join(
        (
            *(*_NEEDED, UUID, f"{CPU}/smt/control"),
            rf"{CPU}/cpu\d+/cpufreq/(scaling_governor|scaling_max_freq)",
            f"{CPU}/(intel_pstate/(no_turbo|max_perf_pct)|cpufreq/boost)",
            "/sys/kernel/mm/(ksm/run|transparent_hugepage/enabled)",
        )
    )
)
_CPUINFO: Final = re.compile(r"^microcode\s*:.*$|\bhypervisor\b", re.MULTILINE)
# A clock this much too slow or too fast shifts each rate as much; of measuring it.
_CLOCK_SHARE: Final = 0.005
_CLOCK_S: Final = 0.1
# A clock that is further off makes times of files mean nothing.
_CLOCK_MOST_S: Final = 60.0
# Of a step: the rest of it the machines were busy at the same time.
_APART: Final = 0.1
# QEMU's start is told by the host's clock, the run's by another.
_SLACK_S: Final = 5.0


def _machines(inputs: Inputs) -> list[CollectedMachine]:
    """Return the machines; a baseline of a host alike says nothing of this one."""
    return [m for m in inputs.machines if not (m.is_host and inputs.elsewhere)]


def _seen(inputs: Inputs, machine: CollectedMachine) -> list[MachineSeen]:
    """Return what bench run saw of a machine each time it began."""
    return [one for one in inputs.noted.seen if one.who in machine.who]


@check_each(
    61,
    "certify.same_state",
    _machines,
    source=f"{RUN}; /proc/PID/stat of QEMU, {stat.PATH}",
    remedy="nova-perfvm bench run, and collect, without a change between them",
)
def _same_state(inputs: Inputs, machine: CollectedMachine) -> Seen:
    """Machines were as they are now."""
    seen = _seen(inputs, machine)
    for one in seen:
        for words in _changed(one.files, machine.collected.files):
            yield Level.UNKNOWN, words
    level = Level.OK if seen else Level.UNKNOWN
    yield level, f"seen by bench run {number_of(len(seen), 'time')}"
    if machine.domain is not None:
        yield _began(inputs, machine.domain)


def _began(inputs: Inputs, domain: Domain) -> tuple[Level, str]:
    """Look whether a VM's QEMU ran before it was measured, so that it never moved."""
    host = inputs.host
    process = host.process_of(domain)
    began_s = processes.began_s(host.collected, process) + stat.booted_s(host.collected)
    late_s = began_s - inputs.noted.begun.timestamp()
    if late_s <= _SLACK_S:
        return Level.OK, f"QEMU began {-late_s / 60:.0f} minutes before"
    words = f"QEMU began {late_s / 60:.0f} minutes after the VM was measured first"
    return Level.UNKNOWN, f"{words}: it was moved, or started anew"


def _changed(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield what differs, or what nobody knows."""
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
    "certify.clocks",
    lambda inputs: inputs.noted.targets,
    source=RUN,
    remedy="chronyc tracking",
)
def _clocks(inputs: Inputs, target: RunTarget) -> Seen:
    """Clocks were right while it was measured."""
    told = [one for one in inputs.noted.clocks if one.who == target.who]
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
    """Return by how many seconds a clock strayed beyond what is allowed."""
    before, after = pair
    allowed_s = _CLOCK_SHARE * (after.at - before.at).total_seconds() + _CLOCK_S
    return abs(after.ahead_s - before.ahead_s) - allowed_s


@check_of(63, "certify.at_once", source=RUN, remedy="")
def _at_once(inputs: Inputs) -> Seen:
    """Machines that measured at once began together."""
    run, measured = inputs.noted, inputs.samples.measurements
    vms = {target.who for target in run.targets if target.kind == "guest"}
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


@check_of(64, "certify.distinct", source=_BOOT, remedy="")
def _distinct(inputs: Inputs) -> Seen:
    """Each file is of another machine."""
    for pair in combinations((inputs.host.collected, *inputs.collected), 2):
        names = " and ".join(one.hostname for one in pair)
        boots = [one.files.get(_BOOT, "").strip() for one in pair]
        if not all(boots) or boots[0] == boots[1] or pair[0].files == pair[1].files:
            told = ", ".join(boot or "not collected" for boot in boots)
            yield Level.UNKNOWN, f"{names}: not each with a boot of its own: {told}"
        else:
            yield Level.OK, f"{names}: two boots"


@check_each(
    65,
    "certify.no_losses",
    _machines,
    source=f"{RUN}; {NET}/*/statistics",
    remedy=packets.REMEDY,
)
def _no_losses(inputs: Inputs, machine: CollectedMachine) -> Seen:
    """NICs lost nothing meanwhile."""
    seen, now = _seen(inputs, machine), machine.collected
    nics = host_packets.nics(inputs.host) if machine.is_host else packets.devices(now)
    found = list(packets.losses(seen[0].files if seen else {}, now.files, nics))
    if not found:
        raise NotReadError(RUN, "what NICs lost meanwhile is not noted")
    seconds = (now.time - min(one.at for one in seen)).total_seconds()
    worst = max(found, key=lambda one: (one.level(seconds), one.share))
    yield worst.level(seconds), f"{worst.nic}: {worst}"

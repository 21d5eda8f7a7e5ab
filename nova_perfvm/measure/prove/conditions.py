# SPDX-License-Identifier: Apache-2.0
"""Whether what was measured was measured under the conditions that were looked at.

A host may be set up otherwise for its own measurement, a VM may have moved or begun
anew since, clocks may be wrong, and what is called *at once* may have been one after
the other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise
from typing import Final

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks import packets
from nova_perfvm.measure.checks.check import Check, judged, passed, skipped
from nova_perfvm.measure.checks.host import packets as host_packets
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import processes, stat
from nova_perfvm.measure.observed.cpus import CPU
from nova_perfvm.measure.observed.nics import NET
from nova_perfvm.measure.prove.inputs import UUID, Guest, Inputs
from nova_perfvm.measure.prove.run_notes import ClockSeen, MachineSeen
from nova_perfvm.printable import number_of

_RUN: Final = "run of --samples"
_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_AGAIN: Final = "nova-perfvm bench run, and collect, without a change between them"
# What has to be the same; of those that begin with ! both must have been read.
_SAME: Final = (
    f"!{_BOOT}",
    "!/proc/cmdline",
    f"!{CPU}/online",
    UUID,
    f"{CPU}/smt/control",
    rf"{CPU}/cpu\d+/cpufreq/(scaling_governor|scaling_max_freq)",
    f"{CPU}/(intel_pstate/(no_turbo|max_perf_pct)|cpufreq/boost)",
    "/sys/kernel/mm/(ksm/run|transparent_hugepage/enabled)",
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


def _machines(inputs: Inputs) -> Iterator[tuple[str, Collected, list[MachineSeen]]]:
    """Yield the machines, each with what bench run saw of it each time it began."""
    targets, seen = (inputs.run.targets, inputs.run.seen) if inputs.run else ((), ())
    # A baseline of a host alike says nothing of this one.
    if not inputs.elsewhere:
        host = {target.who for target in targets if target.kind == "host"}
        yield "host", inputs.host.collected, [one for one in seen if one.who in host]
    for guest in inputs.guests:
        target = inputs.target_of(guest)
        own = [one for one in seen if target and one.who == target.who]
        yield guest.name, guest.collected, own


def _same_state(inputs: Inputs) -> Iterator[Finding]:
    """Compare each machine with what bench run saw of it."""
    for name, collected, seen in _machines(inputs):
        if not seen or not all(one.files for one in seen):
            reason = "what it was like when it was measured is not noted"
            yield skipped(name, reason, _RUN)
            continue
        changed = [
            words for one in seen for words in _changed(one.files, collected.files)
        ]
        if changed:
            more = f", and {len(changed) - 1} more" if changed[1:] else ""
            yield skipped(name, f"{changed[0]}{more}: {_AGAIN}", _RUN)
            continue
        yield passed(
            name, "as when it was measured", f"as {number_of(len(seen), 'time')}", _RUN
        )
    for guest in inputs.guests:
        yield from _ran(inputs, guest)


def _changed(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield what differs, or what nobody knows."""
    for one in _SAME:
        needed, pattern = one.startswith("!"), one.lstrip("!")
        paths = [p for p in {*was, *now} if re.fullmatch(pattern, p)]
        for path in sorted(paths) or ([pattern] if needed else []):
            texts = was.get(path), now.get(path)
            if needed and None in texts:
                yield f"{path} was not read both times"
            elif None not in texts and texts[0] != texts[1]:
                yield f"{path} was {_short(texts[0])}, and is {_short(texts[1])}"
    kinds = [
        set(_CPUINFO.findall(files.get("/proc/cpuinfo", ""))) for files in (was, now)
    ]
    if kinds[0] != kinds[1]:
        other = ", ".join(sorted(kinds[0] ^ kinds[1]))
        yield f"/proc/cpuinfo is another one: {_short(other)}"


def _short(text: str | None) -> str:
    return f"{(text or '').strip():.60}"


def _ran(inputs: Inputs, guest: Guest) -> Iterator[Finding]:
    """Look whether a VM's QEMU ran before it was measured, so that it never moved."""
    if guest.domain is None or inputs.run is None:
        return
    name, host = f"{guest.name}: QEMU", inputs.host
    try:
        process = host.process_of(guest.domain)
        began_s = processes.began_s(host.collected, process)
        began_s += stat.booted_s(host.collected)
    except NotReadError as exc:
        yield skipped(name, exc.reason, exc.place)
        return
    late_s = began_s - inputs.run.begun.timestamp()
    if late_s > _SLACK_S:
        reason = (
            f"it began {late_s / 60:.0f} minutes after the first measurement: the VM "
            f"was moved here, or started anew: {_AGAIN}"
        )
        yield skipped(name, reason, f"{process.path}/stat")
        return
    shown = f"{-late_s / 60:.0f} minutes before"
    expected = "began before it was measured"
    yield passed(name, expected, shown, f"{process.path}/stat; {stat.PATH}")


def _clocks(inputs: Inputs) -> Iterator[Finding]:
    """Compare each machine's clock with that of bench run, before and after steps."""
    seen: dict[str, list[ClockSeen]] = defaultdict(list)
    for one in inputs.run.clocks if inputs.run else ():
        seen[one.who].append(one)
    for target in inputs.run.targets if inputs.run else ():
        told = sorted(seen[target.who], key=lambda one: one.at)
        if len(told) < 2:
            reason = "its clock was not compared with another before and after"
            yield skipped(target.who, reason, _RUN)
            continue
        far = max(abs(one.ahead_s) for one in told)
        if far > _CLOCK_MOST_S:
            yield skipped(target.who, f"its clock is wrong by {far:.0f} s", _RUN)
            continue
        pairs = [*pairwise(told), (told[0], told[-1])]
        wrong = max(pairs, key=lambda pair: _strays_s(*pair))
        strays = _strays_s(*wrong)
        if strays > 0:
            gained = wrong[1].ahead_s - wrong[0].ahead_s
            seconds = (wrong[1].at - wrong[0].at).total_seconds()
            reason = (
                f"its clock gained {gained:.2f} s in {seconds:.0f} s: whatever it "
                "counted a second is wrong by as much (chronyc tracking)"
            )
            yield skipped(target.who, reason, _RUN)
            continue
        shown = f"at most {far:.2f} s off, {len(told)} times"
        yield passed(target.who, f"right within {_CLOCK_SHARE:.1%}", shown, _RUN)


def _strays_s(before: ClockSeen, after: ClockSeen) -> float:
    """Return by how many seconds a clock strayed beyond what is allowed."""
    allowed = _CLOCK_SHARE * (after.at - before.at).total_seconds() + _CLOCK_S
    return abs(after.ahead_s - before.ahead_s) - allowed


def _at_once(inputs: Inputs) -> Iterator[Finding]:
    """Look whether those who are said to measure at once did so."""
    if inputs.run is None:
        return
    kinds = {target.who: target.kind for target in inputs.run.targets}
    steps = [s for s in inputs.run.steps if s.counts and len(s.targets) > 1]
    for step in steps:
        if not step.took_s or step.apart_s is None:
            reason = "how long its machines measured at the same time is not noted"
        elif step.apart_s > _APART * step.took_s:
            reason = (
                f"its machines began {step.apart_s:.0f} s apart, of {step.took_s:.0f} s"
            )
        else:
            continue
        yield skipped(step.key, reason, _RUN)
    most = max(
        (sum(kinds.get(who) == "guest" for who in step.targets) for step in steps),
        default=1,
    )
    claimed = max(
        (
            m.at_once or 1
            for m in inputs.samples.measurements
            if m.machine.kind == "guest"
        ),
        default=1,
    )
    if claimed > most:
        reason = f"{claimed} VMs are said to measure at once, and in no step more than"
        yield skipped("VMs", f"{reason} {most} did", _RUN)
        return
    apart = max((step.apart_s or 0.0 for step in steps), default=0.0)
    shown = f"{number_of(most, 'VM')}, begun at most {apart:.2f} s apart"
    yield passed("VMs", f"within {_APART:.0%} of a step", shown, _RUN)


def _distinct(inputs: Inputs) -> Iterator[Finding]:
    """Look whether two files are of one machine."""
    machines = [inputs.host.collected, *inputs.collected]
    for one, other in combinations(machines, 2):
        if one.files == other.files:
            reason = "what was collected in it is what was collected in another"
        elif (boot := one.files.get(_BOOT)) and boot == other.files.get(_BOOT):
            reason = f"it is the machine that {one.hostname} is, by {_BOOT}"
        else:
            continue
        yield skipped(other.hostname, reason, _BOOT)
    for guest in inputs.collected:
        if _BOOT not in guest.files:
            yield skipped(guest.hostname, "it was not collected", _BOOT)
    yield passed(
        "files", "each of another machine", f"{len(machines)} looked at", _BOOT
    )


def _no_losses(inputs: Inputs) -> Iterator[Finding]:
    """Judge what NICs lost from the first measurement until now."""
    for name, collected, seen in _machines(inputs):
        nics = (
            host_packets.nics(inputs.host)
            if collected is inputs.host.collected
            else packets.devices(collected)
        )
        found = [
            *(packets.losses(seen[0].files, collected.files, nics) if seen else ())
        ]
        if not found:
            yield skipped(name, "what NICs lost meanwhile is not noted", _RUN)
            continue
        first = min(one.at for one in seen)
        seconds = (collected.time - first).total_seconds()
        worst = max(found, key=lambda one: (one.level(seconds), one.share))
        level = worst.level(seconds)
        yield judged(
            name,
            f"at most 1 packet in {1 / packets.FAIL_ABOVE:.0f} since it was measured",
            f"{worst.nic}: {worst}",
            f"{_RUN}; {NET}/*/statistics",
            holds=level is Level.OK,
            otherwise=level,
            remedy=packets.REMEDY,
        )


CHECKS: Final = (
    Check(61, "certify.same_state", "Machines were as they are now", _same_state),
    Check(62, "certify.clocks", "Clocks were right while it was measured", _clocks),
    Check(63, "certify.at_once", "At once is at the same time", _at_once),
    Check(64, "certify.distinct", "Each file is of another machine", _distinct),
    Check(65, "certify.no_losses", "NICs lost nothing meanwhile", _no_losses),
)

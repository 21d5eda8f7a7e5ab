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

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks import packets
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host import packets as host_packets
from nova_perfvm.measure.collect.collected import Collected
from nova_perfvm.measure.observed import processes, stat
from nova_perfvm.measure.observed.cpus import CPU
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.nics import NET
from nova_perfvm.measure.prove.inputs import RUN, UUID, Guest, Inputs
from nova_perfvm.measure.prove.rule import of_guests, shown
from nova_perfvm.measure.prove.run_notes import ClockSeen, MachineSeen
from nova_perfvm.printable import number_of, some_of

_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_AGAIN: Final = "nova-perfvm bench run, and collect, without a change between them"
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


def _machines(inputs: Inputs) -> Iterator[tuple[str, Collected, list[MachineSeen]]]:
    """Yield the machines, each with what bench run saw of it each time it began."""
    run = inputs.noted
    # A baseline of a host alike says nothing of this one.
    if not inputs.elsewhere:
        host = {target.who for target in run.targets if target.kind == "host"}
        yield "host", inputs.host.collected, [s for s in run.seen if s.who in host]
    for guest in inputs.guests:
        target = inputs.target_of(guest)
        own = [one for one in run.seen if target and one.who == target.who]
        yield guest.name, guest.collected, own


def _same_state(inputs: Inputs) -> Iterator[Finding]:
    """Compare each machine with what bench run saw of it, and ask when VMs began."""
    for name, collected, seen in _machines(inputs):
        changed = [
            words for one in seen for words in _changed(one.files, collected.files)
        ]
        yield shown(
            name,
            "as each time that bench run began",
            some_of(changed, 1) or f"the same {number_of(len(seen), 'time')}",
            holds=bool(seen) and not changed,
            remedy=_AGAIN,
        )
    yield from _ran(inputs)


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


@of_guests
def _ran(inputs: Inputs, guest: Guest, domain: Domain) -> Iterator[Finding]:
    """Look whether a VM's QEMU ran before it was measured, so that it never moved."""
    host = inputs.host
    process = host.process_of(domain)
    began_s = processes.began_s(host.collected, process) + stat.booted_s(host.collected)
    late_s = began_s - inputs.noted.begun.timestamp()
    yield shown(
        f"{guest.name}: QEMU",
        "began before the VM was measured, else it was moved, or started anew",
        f"{abs(late_s) / 60:.0f} minutes {'after' if late_s > 0 else 'before'}",
        f"{process.path}/stat; {stat.PATH}",
        holds=late_s <= _SLACK_S,
        remedy=_AGAIN,
    )


def _clocks(inputs: Inputs) -> Iterator[Finding]:
    """Compare each machine's clock with that of bench run, before and after steps."""
    for target in inputs.noted.targets:
        told = [one for one in inputs.noted.clocks if one.who == target.who]
        told.sort(key=lambda one: one.at)
        pairs = [*pairwise(told), *zip(told[:1], told[-1:], strict=True)]
        strays_s = max(map(_strays_s, pairs), default=0.0)
        far_s = max((abs(one.ahead_s) for one in told), default=0.0)
        yield shown(
            target.who,
            f"compared before and after; it gains less than {_CLOCK_SHARE:.1%}, and is "
            f"at most {_CLOCK_MOST_S:.0f} s off",
            f"compared {number_of(len(told), 'time')}, at most {far_s:.2f} s off; "
            f"{max(strays_s, 0.0):.2f} s more than may be gained",
            holds=len(told) > 1 and far_s <= _CLOCK_MOST_S and strays_s <= 0,
            remedy="chronyc tracking",
        )


def _strays_s(pair: tuple[ClockSeen, ClockSeen]) -> float:
    """Return by how many seconds a clock strayed beyond what is allowed."""
    before, after = pair
    allowed_s = _CLOCK_SHARE * (after.at - before.at).total_seconds() + _CLOCK_S
    return abs(after.ahead_s - before.ahead_s) - allowed_s


def _at_once(inputs: Inputs) -> Iterator[Finding]:
    """Look whether those who are said to measure at once did so."""
    run, measured = inputs.noted, inputs.samples.measurements
    vms = {target.who for target in run.targets if target.kind == "guest"}
    steps = [s for s in run.steps if s.counts and len(s.targets) > 1]
    late = [
        f"{step.key} ({step.apart_s or 0:.0f} s apart, of {step.took_s or 0:.0f} s)"
        for step in steps
        if not step.took_s
        or step.apart_s is None
        or step.apart_s > _APART * step.took_s
    ]
    yield shown(
        "steps",
        f"how far apart machines begin is noted, and within {_APART:.0%} of a step",
        some_of(late, 1) or f"in {number_of(len(steps), 'step')}",
        holds=not late,
    )
    most = max((len(vms & {*step.targets}) for step in steps), default=1)
    of_vms = (m.at_once or 1 for m in measured if m.machine.kind == "guest")
    claimed = max(of_vms, default=1)
    yield shown(
        "VMs",
        f"{claimed} at once, as is said",
        f"{most} in a step",
        holds=claimed <= most,
    )


def _distinct(inputs: Inputs) -> Iterator[Finding]:
    """Look whether two files are of one machine."""
    for pair in combinations((inputs.host.collected, *inputs.collected), 2):
        boots = [one.files.get(_BOOT, "not collected").strip() for one in pair]
        yield shown(
            " and ".join(one.hostname for one in pair),
            "two machines, each with a boot of its own",
            ", ".join(boots),
            _BOOT,
            holds=len({*boots, "not collected"}) == 3
            and pair[0].files != pair[1].files,
        )


def _no_losses(inputs: Inputs) -> Iterator[Finding]:
    """Judge what NICs lost from the first measurement until now."""
    for name, collected, seen in _machines(inputs):
        is_host = collected is inputs.host.collected
        nics = host_packets.nics(inputs.host) if is_host else packets.devices(collected)
        first = seen[0].files if seen else {}
        found = list(packets.losses(first, collected.files, nics))
        if not found:
            yield skipped(name, "what NICs lost meanwhile is not noted", RUN)
            continue
        began = min(one.at for one in seen)
        seconds = (collected.time - began).total_seconds()
        worst = max(found, key=lambda one: (one.level(seconds), one.share))
        level = worst.level(seconds)
        yield judged(
            name,
            f"at most 1 packet in {1 / packets.FAIL_ABOVE:.0f} since it was measured",
            f"{worst.nic}: {worst}",
            f"{RUN}; {NET}/*/statistics",
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

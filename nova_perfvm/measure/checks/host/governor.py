# SPDX-License-Identifier: Apache-2.0
"""Nothing holds back the clocks of the CPUs that VMs own.

A host that is slow for everybody slows its own baseline down, so that ratios to it do
not show it.  What the files mean: Linux, Documentation/admin-guide/pm.
"""

from collections import defaultdict
from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, skipped, warned
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.observed.cpus import CPU

# Drivers whose governor "powersave" is dynamic; for others it is the lowest clock.
_DYNAMIC = ("intel_pstate", "amd-pstate-epp")
_REMEDY = (
    "tuned-adm profile cpu-partitioning (or virtual-host); until then cpupower "
    "frequency-set -g performance"
)
# Firmware ranks equal cores by a few percent (Turbo Boost Max); efficiency cores and
# such of a lower class are further apart.
_UNEQUAL = 0.9


def _owned(subject: HostSubject) -> frozenset[int]:
    """Return the CPUs to look at: those that VMs own, all if none does."""
    sets = subject.cpu_sets
    dedicated = sets.dedicated
    if sets.saves_power == "governor" and subject.pinned:
        # Nova slows down the others.
        dedicated = frozenset().union(*map(subject.cpus_of, subject.pinned))
    return (dedicated & subject.online.numbers) or subject.online.numbers


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look at the governor of each CPU that VMs own; of all if none does."""
    found: dict[str, set[int]] = defaultdict(set)
    files, lowest = subject.collected.files, False
    for cpu in sorted(_owned(subject)):
        path = f"{CPU}/cpu{cpu}/cpufreq/scaling_governor"
        if path not in files:
            reason = subject.collected.unread.get(path, "it was not collected")
            yield skipped("governor", f"{reason}; the firmware may decide", path)
            return
        driver = files.get(f"{CPU}/cpu{cpu}/cpufreq/scaling_driver", "").strip()
        name = files[path].strip()
        slow = name == "powersave" and driver not in {"", *_DYNAMIC}
        lowest = lowest or slow
        found[f"{name}, the lowest clock with {driver}," if slow else name].add(cpu)
    yield judged(
        "governor",
        "performance",
        "; ".join(f"{name} on {format_cpus(on)}" for name, on in sorted(found.items())),
        f"{CPU}/cpu*/cpufreq/scaling_governor",
        holds=set(found) == {"performance"},
        otherwise=Level.FAILURE if lowest else Level.WARNING,
        remedy=_REMEDY,
    )


def find_limits(subject: HostSubject) -> Iterator[Finding]:
    """Look at what caps the clocks, and whether those of a VM's CPUs are alike."""
    files, cpus = subject.collected.files, sorted(_owned(subject))
    top = _khz(subject, cpus, "cpuinfo_max_freq")
    if not top:
        path = f"{CPU}/cpu*/cpufreq/cpuinfo_max_freq"
        yield skipped("ceiling", "it was not read; the firmware may decide", path)
        return
    most, base = (
        _khz(subject, cpus, n) for n in ("scaling_max_freq", "base_frequency")
    )
    capped = {cpu: khz for cpu, khz in most.items() if khz < top.get(cpu, 0)}
    cpu = min(capped, key=lambda cpu: capped[cpu] / top[cpu], default=-1)
    yield judged(
        "ceiling",
        "none below what the CPU can do",
        f"CPU {cpu} is held at {capped[cpu] / top[cpu]:.0%} of its clock, "
        f"{capped[cpu] / 1e6:.2f} of {top[cpu] / 1e6:.2f} GHz, with "
        f"{len(capped) - 1} others"
        if capped
        else "none",
        f"{CPU}/cpu*/cpufreq/scaling_max_freq",
        holds=not capped,
        # Up to its base clock it may be for equal clocks on purpose.
        otherwise=Level.FAILURE
        if any(khz < base.get(cpu, 0) for cpu, khz in capped.items())
        else Level.WARNING,
        remedy="cpupower frequency-set --max, with cpuinfo_max_freq",
    )
    yield from _unequal(subject, top)
    for path, slow, words, remedy in (
        ("intel_pstate/no_turbo", "1".__eq__, "turbo is off", "echo 0"),
        ("cpufreq/boost", "0".__eq__, "boost is off", "echo 1"),
        (
            "intel_pstate/max_perf_pct",
            lambda text: text.isdecimal() and int(text) < 100,
            "clocks are capped",
            "echo 100",
        ),
        *(
            (
                f"cpu{cpu}/cpufreq/energy_performance_preference",
                lambda text: text in {"power", "balance_power"},
                "the CPU prefers to save power",
                "echo performance",
            )
            for cpu in cpus
        ),
    ):
        text = files.get(f"{CPU}/{path}", "").strip()
        if slow(text):
            observed = f"{words} ({text})"
            source = f"{CPU}/{path}"
            yield warned("turbo", "full clocks", observed, source, f"{remedy} > it")


def _unequal(subject: HostSubject, top: dict[int, int]) -> Iterator[Finding]:
    for domain in subject.pinned:
        own = {cpu: top[cpu] for cpu in subject.cpus_of(domain) if cpu in top}
        if own and min(own.values()) < _UNEQUAL * max(own.values()):
            slow = [cpu for cpu, khz in own.items() if khz < max(own.values())]
            yield judged(
                f"{domain.name}: cores",
                "CPUs of one kind",
                f"CPUs {format_cpus(slow)} reach {min(own.values()) / 1e6:.2f} GHz, "
                f"the others {max(own.values()) / 1e6:.2f}",
                f"{CPU}/cpu*/cpufreq/cpuinfo_max_freq",
                holds=False,
                remedy="take the CPUs of one kind into [compute]cpu_dedicated_set",
            )


def _khz(subject: HostSubject, cpus: list[int], name: str) -> dict[int, int]:
    found = {}
    for cpu in cpus:
        path = f"{CPU}/cpu{cpu}/cpufreq/{name}"
        text = subject.collected.files.get(path, "").strip()
        if text.isdecimal():
            found[cpu] = int(text)
    return found


CHECKS = (
    Check(85, "hypervisor.governor", "CPUs run at full speed", find),
    Check(86, "hypervisor.frequency", "Nothing caps the clocks of CPUs", find_limits),
)

# SPDX-License-Identifier: Apache-2.0
"""The CPUs of pinned VMs run at full speed."""

from collections import defaultdict
from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.observed.cpus import CPU


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look at the governor of each CPU that VMs own; of all if none does."""
    numbers = subject.cpu_sets.dedicated & subject.online.numbers
    found: dict[str, set[int]] = defaultdict(set)
    files = subject.collected.files
    for cpu in sorted(numbers or subject.online.numbers):
        path = f"{CPU}/cpu{cpu}/cpufreq/scaling_governor"
        if path not in files:
            reason = subject.collected.unread.get(path, "it was not collected")
            yield skipped("governor", f"{reason}; the firmware may decide", path)
            return
        found[files[path].strip()].add(cpu)
    yield judged(
        "governor",
        "performance",
        "; ".join(f"{name} on {format_cpus(on)}" for name, on in sorted(found.items())),
        f"{CPU}/cpu*/cpufreq/scaling_governor",
        holds=set(found) == {"performance"},
        otherwise=Level.WARNING,
        remedy="tuned-adm profile cpu-partitioning (or virtual-host); until then "
        "cpupower frequency-set -g performance",
    )


CHECK = Check(85, "hypervisor.governor", "CPUs run at full speed", find)

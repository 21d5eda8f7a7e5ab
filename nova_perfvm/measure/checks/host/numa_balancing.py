# SPDX-License-Identifier: Apache-2.0
"""The kernel does not look for better nodes for memory that is bound."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged
from nova_perfvm.measure.checks.host_subject import HostSubject

_PATH = "/proc/sys/kernel/numa_balancing"


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look whether it is on where VMs own CPUs."""
    if not subject.cpu_sets.dedicated:
        return
    value = subject.collected.text(_PATH).strip()
    yield judged(
        "NUMA balancing",
        "0: off",
        value or "nothing",
        _PATH,
        holds=value == "0",
        otherwise=Level.WARNING,
        remedy="sysctl kernel.numa_balancing=0, and numa_balancing=disable on the "
        "kernel's command line: pinned VMs gain nothing from its page faults",
    )


CHECK = Check(100, "hypervisor.numa_balancing", "NUMA balancing is off", find)

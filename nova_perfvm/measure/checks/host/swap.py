# SPDX-License-Identifier: Apache-2.0
"""The memory of a VM is in memory."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, warned
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.observed import processes
from nova_perfvm.measure.observed.domains import Domain

_THP = "/sys/kernel/mm/transparent_hugepage/enabled"
# QEMU's own pages that nobody uses any more may be in swap.
_MOST_KB = 16 * 1024


def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Look at what of a VM is in swap, and at the pages that it may have."""
    process = subject.process_of(domain)
    swapped = processes.swapped_kb(subject.collected, process)
    yield judged(
        domain.name,
        "nothing of it in swap",
        f"{swapped / 1024:.0f} MiB in swap" if swapped else "nothing",
        f"{process.path}/status, VmSwap",
        holds=not swapped,
        otherwise=Level.FAILURE if swapped > _MOST_KB else Level.WARNING,
        remedy="swapoff -a, with enough memory free; then [DEFAULT]"
        "reserved_host_memory_mb in nova.conf for what else the host runs",
    )
    if "[never]" in subject.collected.files.get(_THP, "") and not domain.page_sizes_kb:
        yield warned(
            f"{domain.name}: pages",
            "huge ones",
            "4 KiB: transparent huge pages are off, and it asks for no others",
            _THP,
            f"echo madvise > {_THP}, or mem_page_size of its class",
        )


CHECK = Check(66, "hypervisor.swap", "A VM's memory is not in swap", of_pinned(look))

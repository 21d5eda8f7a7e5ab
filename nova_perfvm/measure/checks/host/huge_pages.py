# SPDX-License-Identifier: Apache-2.0
"""A VM that is promised huge pages has them."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, failed, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.observed import processes
from nova_perfvm.measure.observed.domains import Domain

_HUGE = ("large", "2MB", "1GB")
_SMALL_KB = 64
# All of them are there from the start; what is reserved for hotplug is not.
_LEAST = 0.99


def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Compare the pages that a VM has with those that it asks for."""
    vm_class = subject.class_of(domain)
    wanted = vm_class.mem_page_size if vm_class else None
    if not domain.page_sizes_kb:
        if wanted in _HUGE:
            yield failed(
                domain.name,
                f"{wanted} pages, as its class promises",
                "asks for none",
                domain.source,
                "openstack server resize --flavor FLAVOR, to one with "
                f"hw:mem_page_size={wanted}",
            )
        else:
            reason = "neither it nor its class asks for huge pages"
            yield skipped(domain.name, reason, cause=Cause.NO_HUGE_PAGES)
        return
    memory = processes.memory(subject.collected, subject.process_of(domain))
    sizes = [size for size in domain.page_sizes_kb if size]
    huge_kb = sum(
        kb
        for size, kb in memory.by_page.items()
        if (size in sizes if sizes else size > _SMALL_KB)
    )
    named = ", ".join(f"{size} KiB" for size in sizes) or "the host's default size"
    yield judged(
        domain.name,
        f"{domain.memory_kb / 2**20:.2f} GiB in pages of {named}",
        f"{huge_kb / 2**20:.2f} GiB; in use: "
        + ", ".join(
            f"{kb / 2**20:.2f} GiB of {size} KiB"
            for size, kb in sorted(memory.by_page.items())
        ),
        f"{memory.source}; {domain.source}",
        holds=huge_kb >= _LEAST * domain.memory_kb,
        remedy="reserve enough on its node at boot (hugepagesz= and hugepages= of "
        "nova-perfvm host config; /sys/devices/system/node/node*/hugepages), then "
        f"openstack server reboot --hard {domain.uuid}",
    )


CHECK = Check(
    65, "hypervisor.huge_pages", "A VM has the huge pages it asks for", of_pinned(look)
)

# SPDX-License-Identifier: Apache-2.0
"""A pinned VM has all its memory, in the host's memory.

Of memory that is not in use nobody can say where it will be.  Nine tenths are what a
guest's kernel lets a test take.  What the guest frees goes back to the host: Nova has
libvirt set freePageReporting.
"""

from collections.abc import Iterator
from typing import Final

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Check
from nova_perfvm.measure.checks.host_flaws import Flaw, of_flaws
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.observed import cgroups, processes
from nova_perfvm.measure.observed.domains import Domain

_LEAST: Final = 0.90
_GB: Final = 2**20


def flaws(subject: HostSubject, domain: Domain) -> Iterator[Flaw]:
    """Look at the balloon, at limits of cgroups, and at what is in use."""
    collected, process = subject.collected, subject.process_of(domain)
    all_gb = f"{domain.memory_kb / _GB:.2f} GiB"
    if domain.current_kb < domain.memory_kb:
        yield (
            Level.FAILURE,
            f"its balloon leaves {domain.current_kb / _GB:.2f} of {all_gb}",
        )
    used_kb = sum(processes.memory(collected, process).by_node.values())
    if used_kb < _LEAST * domain.memory_kb:
        held = (
            "hold all in the guest meanwhile: stress-ng --vm 1 --vm-bytes 95% --vm-keep"
        )
        yield Level.UNKNOWN, f"{used_kb / _GB:.2f} of {all_gb} are in use: {held}"
    for group in cgroups.groups(collected, process.path, "memory"):
        path = f"{group.directory}/memory.events"
        for name in ("high", "max") if group.version == 2 else ():
            if times := cgroups.grown(collected, path, name)[0]:
                yield Level.FAILURE, f"{path}: {name} {times} times between the looks"


CHECK = Check(
    62,
    "hypervisor.memory_whole",
    "A VM has all its memory",
    of_flaws(
        flaws,
        f"no balloon, no limit met, at least {_LEAST:.0%} in use",
        f"/proc/PID/numa_maps, memory.events of {cgroups.ROOT}",
        "virsh setmem DOMAIN, MemoryHigh= and MemoryMax= of its unit and slices, or "
        "huge pages for its class",
    ),
)

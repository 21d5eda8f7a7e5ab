# SPDX-License-Identifier: Apache-2.0
"""The facts that the rules judge: of hosts and of requests, without Nova's objects.

These values are made once per host and request in the scheduler's inner loop.
They are named tuples, which Python builds three times as fast as frozen
dataclasses, and their sets are taken over as they are, not copied: treat them
as read-only.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple


class PagePool(NamedTuple):
    """Memory pages of one size on one cell.

    :ivar size_kb: size of one page in KiB
    :ivar total: pages that VMs may use, those reserved for the host left out
    :ivar used: pages that VMs have
    """

    size_kb: int
    total: int
    used: int = 0


class NUMACell(NamedTuple):
    """One NUMA node of a host.

    :ivar cpuset: CPUs that unpinned VMs share
    :ivar pcpuset: CPUs that pinned VMs may own
    :ivar pinned_cpus: CPUs of ``pcpuset`` that pinned VMs own now
    :ivar memory_mb: memory of the cell in MiB
    :ivar memory_usage_mb: memory of the VMs that have a NUMA topology, in MiB
    :ivar siblings: sets of hardware threads that share a core, as Nova lists
        them; empty where that is not known, which is taken for no SMT
    :ivar mempages: one pool per page size that the host reports
    :ivar cpu_usage: vCPUs that share its CPUs, of the VMs that have a NUMA topology
    """

    id: int
    cpuset: AbstractSet[int]
    pcpuset: AbstractSet[int]
    pinned_cpus: AbstractSet[int]
    memory_mb: int
    memory_usage_mb: int
    siblings: Sequence[AbstractSet[int]] = ()
    mempages: Sequence[PagePool] = ()
    cpu_usage: int = 0

    @property
    def free_pcpus(self) -> AbstractSet[int]:
        """CPUs that a pinned VM could still own."""
        return self.pcpuset - self.pinned_cpus

    def count_cores(self) -> tuple[int, int]:
        """Count the cores that may be pinned, and those with no thread pinned."""
        usable = free = grouped = 0
        for group in self.siblings:
            mine = group & self.pcpuset
            if mine:
                grouped += len(mine)
                usable += 1
                free += self.pinned_cpus.isdisjoint(mine)
        if grouped < len(self.pcpuset):
            # Cores with one thread are in no sibling set.
            single = self.pcpuset - frozenset().union(*self.siblings)
            usable += len(single)
            free += len(single - self.pinned_cpus)
        return usable, free


class HostFacts(NamedTuple):
    """One host (compute node) as the scheduler sees it.

    :ivar cells: its NUMA nodes; empty where the compute reports none
    :ivar vcpus_used: vCPUs of all its VMs, pinned ones included, plus
        reserved_host_cpus where that is set
    :ivar num_instances: VMs on the host, those moving in not counted yet
    :ivar labels: values of the aggregate metadata ``perfvm:class``
    :ivar isolating: the project's traits without which its aggregates keep a
        request away: that of elastic hosts
    :ivar traits: those of its providers; None where they are not known, as the
        scheduler is not told them
    :ivar unpinned: VMs that own no CPUs and are on it, or will be or come back when
        their move is over; 0 where nobody has looked
    :ivar unreadable: why the rest could not be read, if it could not
    """

    host: str
    nodename: str
    cells: Sequence[NUMACell]
    vcpus_used: int = 0
    num_instances: int = 0
    labels: frozenset[str] = frozenset()
    isolating: frozenset[str] = frozenset()
    traits: frozenset[str] | None = None
    unpinned: int = 0
    unreadable: str = ""


class RequestCell(NamedTuple):
    """One NUMA node that a request asks for.

    :ivar vcpus: unpinned vCPUs on it
    :ivar pcpus: pinned vCPUs on it
    :ivar memory_mb: memory in MiB
    :ivar page_size_kb: page size in KiB, or Nova's -1 small, -2 large, -3 any;
        None says nothing
    """

    vcpus: int
    pcpus: int
    memory_mb: int
    page_size_kb: int | None = None
    cpu_thread_policy: str | None = None


class AskedResource(NamedTuple):
    """An amount that a request asks Placement for.

    :ivar group: suffix of the group; empty for the group without one
    """

    group: str
    name: str
    amount: int


class AskedTrait(NamedTuple):
    """A trait that a request wants of a provider, or wants none to have.

    :ivar group: suffix of the group; empty for the group without one
    :ivar state: ``required`` or ``forbidden``
    :ivar source: who says so: ``flavor`` or ``image``
    """

    group: str
    name: str
    state: str
    source: str


class RequestFacts(NamedTuple):
    """What one request asks for, flavor and image taken together.

    :ivar class_name: value of the extra spec ``perfvm:class``, None without it
    :ivar cells: the NUMA topology that Nova derived; empty without one
    :ivar multiqueue: whether flavor or image turn virtio-net multiqueue on
    :ivar volume_backed: whether the root disk is a volume; None if unknown
    :ivar resources: what extra specs name of Placement's resources
    :ivar traits: what extra specs and the image name of its traits
    :ivar claimed: whether Nova claims in Placement what the request takes
    :ivar running_vcpus: vCPUs that the server has already in its class; None for a
        new one, and where no rule asks (:func:`nova_perfvm.rules.is_former_size`)
    """

    flavor: str
    class_name: str | None
    vcpus: int
    memory_mb: int
    cells: Sequence[RequestCell] = ()
    emulator_threads: str | None = None
    multiqueue: bool = False
    volume_backed: bool | None = None
    resources: tuple[AskedResource, ...] = ()
    traits: tuple[AskedTrait, ...] = ()
    claimed: bool = True
    running_vcpus: int | None = None

    @property
    def pinned(self) -> bool:
        """Return whether any vCPU asks for a physical CPU of its own."""
        return any(cell.pcpus for cell in self.cells)


class Reason(NamedTuple):
    """Why a rule refuses.

    :ivar code: one of :data:`nova_perfvm.rules.REASON_CODES`
    :ivar data: the figures behind it, by name; ``describe`` puts them in words
    """

    code: str
    data: dict[str, Any]


class Decision(NamedTuple):
    """What the rules say about one request on one host."""

    allowed: bool
    reasons: tuple[Reason, ...]

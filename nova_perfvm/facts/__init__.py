# SPDX-License-Identifier: Apache-2.0
"""The facts about hosts and requests that the rules judge, without Nova's objects.

nova-scheduler builds the facts once per host and request.  They are named tuples, which
Python builds three times as fast as frozen dataclasses.  Never change a set of the
facts: it may be the set in Nova's object.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple


class PagePool(NamedTuple):
    """Memory pages of one size on a NUMA node of a host.

    :ivar size_kb: size of one page in KiB
    :ivar total: number of pages that VMs may use, without those reserved for the host
    :ivar used: number of pages that VMs use
    """

    size_kb: int
    total: int
    used: int = 0


class NUMACell(NamedTuple):
    """One NUMA node of a host.

    :ivar cpuset: CPUs that unpinned VMs share
    :ivar pcpuset: CPUs that pinned VMs may own
    :ivar pinned_cpus: CPUs of ``pcpuset`` that pinned VMs own now
    :ivar memory_mb: memory of the NUMA node in MiB
    :ivar memory_usage_mb: memory in MiB of the VMs with a NUMA topology on the node
    :ivar siblings: sets of hardware threads that share a core, as Nova lists them;
        empty if unknown, which the rules take for no SMT
    :ivar mempages: one pool for each page size that the host reports
    :ivar cpu_usage: unpinned vCPUs of the VMs with a NUMA topology on the node
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
        """CPUs of ``pcpuset`` that no VM owns."""
        return self.pcpuset - self.pinned_cpus

    @property
    def threads_per_core(self) -> int:
        """The most hardware threads of a core; 1 if ``siblings`` is unknown."""
        return max(map(len, self.siblings), default=1)

    def count_cores(self) -> tuple[int, int]:
        """Count the cores with CPUs of ``pcpuset``, and those of them without pins."""
        usable = free = grouped = 0
        for group in self.siblings:
            mine = group & self.pcpuset
            if mine:
                grouped += len(mine)
                usable += 1
                free += self.pinned_cpus.isdisjoint(mine)
        if grouped < len(self.pcpuset):
            # Assumed NUMA nodes may have no sibling sets.
            single = self.pcpuset - frozenset().union(*self.siblings)
            usable += len(single)
            free += len(single - self.pinned_cpus)
        return usable, free


class HostFacts(NamedTuple):
    """One host (compute node) as the scheduler sees it.

    :ivar cells: the host's NUMA nodes; empty if nova-compute reports none
    :ivar vcpus_used: vCPUs of all VMs on the host, pinned ones included, plus
        reserved_host_cpus
    :ivar num_instances: number of VMs on the host, without those moving in
    :ivar labels: classes that the host's aggregates name by ``perfvm:class``
    :ivar isolating: traits of enrolled hosts that the host's aggregates require of
        requests
    :ivar traits: traits of the host's providers; None if unknown, as in nova-scheduler
    :ivar unpinned: number of unpinned VMs that are on the host, or may come (back) to
        it by an unfinished move; 0 if not looked up
    :ivar unreadable: why reading Nova's data about the host failed; empty after success
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

    :ivar vcpus: number of unpinned vCPUs
    :ivar pcpus: number of pinned vCPUs
    :ivar memory_mb: memory in MiB
    :ivar page_size_kb: page size in KiB, or Nova's -1 small, -2 large, -3 any; None if
        the request names none
    """

    vcpus: int
    pcpus: int
    memory_mb: int
    page_size_kb: int | None = None
    cpu_thread_policy: str | None = None


class AskedResource(NamedTuple):
    """An amount of a resource class that a request asks Placement for.

    :ivar group: suffix of the group; empty for the group without one
    :ivar amount: -1 if Nova refuses the flavor's text
    """

    group: str
    name: str
    amount: int


class AskedTrait(NamedTuple):
    """A trait that a request requires or forbids.

    :ivar group: suffix of the group; empty for the group without one
    :ivar state: the extra spec's value, for Nova ``required`` or ``forbidden``
    :ivar source: where the request names the trait: ``flavor`` or ``image``
    """

    group: str
    name: str
    state: str
    source: str


class RequestFacts(NamedTuple):
    """The facts about a request, from its flavor and image.

    :ivar class_name: value of the extra spec ``perfvm:class``, None without it
    :ivar cells: the NUMA topology that Nova derived; empty without one
    :ivar multiqueue: whether flavor or image turn virtio-net multiqueue on
    :ivar volume_backed: whether the root disk is a volume; None if unknown
    :ivar resources: amounts for Placement that extra specs name
    :ivar traits: traits for Placement that extra specs and the image name
    :ivar claimed: whether Nova allocates the request's resources in Placement, as for
        all requests but rebuilds
    :ivar running_vcpus: current vCPUs of a running server of the class; None for a new
        server, and if not looked up (:func:`nova_perfvm.rules.is_former_size`)
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
    """Why a rule, Nova or Placement refuses a request or a host.

    :ivar code: one of :data:`nova_perfvm.rules.REASON_CODES` or
        :data:`nova_perfvm.constants.OUTER_CODES`
    :ivar data: the figures for the message, by name
    """

    code: str
    data: dict[str, Any]


class Decision(NamedTuple):
    """The rules' verdict on a request for a host."""

    allowed: bool
    reasons: tuple[Reason, ...]

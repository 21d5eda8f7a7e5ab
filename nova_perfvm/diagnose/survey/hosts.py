# SPDX-License-Identifier: Apache-2.0
"""The hosts of a cloud: shapes, VMs by NUMA node, and slots of a class."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nova_perfvm.diagnose.capacity import Slots, host_capacity
from nova_perfvm.facts import NUMACell
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.snapshot import UNKNOWN, Snapshot
from nova_perfvm.policy import Policy
from nova_perfvm.rules.slots import host_mode, host_slots


@dataclass(frozen=True)
class HostUse:
    """One compute host.

    :ivar mode: ``dedicated``, ``shared``, ``mixed``; ``open`` without cpu sets, or if
        no source distinguishes ``open`` from ``shared``; ``none`` without NUMA nodes
    :ivar slots: of the class, with the VMs that are on the host now; None without a
        policy
    :ivar possible: VMs of the class that the host would hold if it were empty and all
        its CPUs were dedicated
    """

    view: HostView
    mode: str
    slots: Slots | None = None
    possible: int = 0

    @property
    def shape(self) -> str:
        """The shape, or the cores of each NUMA node if they differ, or UNKNOWN."""
        host = self.view.compute
        uneven = f"{' + '.join(map(str, host.cores))} cores" if host.cores else UNKNOWN
        return str(host.shape or uneven)

    @property
    def pinned(self) -> int:
        """The number of the host's servers that own CPUs."""
        return sum(server.owns_cpus for server in self.view.servers)

    @property
    def others(self) -> int:
        """The number of the host's servers that do not belong to the class."""
        return len(self.view.servers) - (self.slots.used if self.slots else 0)

    @property
    def memory_gb(self) -> int:
        """The memory of all NUMA nodes, in GiB."""
        return max(1, self.view.compute.all_memory_mb // 1024)

    @property
    def to_configure(self) -> int:
        """The number of slots that the host would gain by being configured.

        A host without dedicated CPUs may have slots already: it is enrolled, or pinned
        VMs came by Nova's fallback query.
        """
        if self.slots is None or self.mode not in {"open", "shared"}:
            return 0
        return max(0, self.possible - self.slots.total)


def hosts_of(policy: Policy | None, snapshot: Snapshot) -> tuple[HostUse, ...]:
    """Return all hosts.

    :param policy: with a pinned class, as :func:`.judged.as_if` returns it; None if no
        policy could be made
    :param snapshot: as :func:`.judged.as_if` returns it
    """
    views = views_of(snapshot)
    if policy is None:
        return tuple(HostUse(view, host_mode(view.facts)) for view in views)
    if not pages_are_known(snapshot):
        # Without page data, memory of any page size counts.
        classes = (replace(c, mem_page_size=None) for c in policy.classes)
        policy = replace(policy, classes=tuple(classes))
    vm_class, *_ = policy.pinned_classes
    counted = {
        slots.name: slots
        for slots in host_capacity(policy, snapshot)
        if slots.class_name == vm_class.name
    }
    return tuple(
        HostUse(
            view,
            host_mode(view.facts),
            counted[view.name],
            host_slots(vm_class, map(_all_dedicated, view.facts.cells)),
        )
        for view in views
    )


def pages_are_known(snapshot: Snapshot) -> bool:
    """Return whether any host tells its numbers of memory pages by size."""
    return any(host.pages_told for host in snapshot.hosts)


def _all_dedicated(cell: NUMACell) -> NUMACell:
    return cell._replace(pcpuset=cell.pcpuset | cell.cpuset)

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

    :ivar mode: ``dedicated``, ``shared``, ``mixed``; ``open`` without cpu sets, or
        where nobody tells these from shared CPUs; ``none`` without NUMA nodes
    :ivar slots: of the class, by what is on it now; None without a policy
    :ivar possible: VMs of the class that it would hold if it were empty and
        configured with all CPUs dedicated
    """

    view: HostView
    mode: str
    slots: Slots | None = None
    possible: int = 0

    @property
    def shape(self) -> str:
        """In words, the cores of each NUMA node where they differ; else UNKNOWN."""
        host = self.view.compute
        uneven = f"{' + '.join(map(str, host.cores))} cores" if host.cores else UNKNOWN
        return str(host.shape or uneven)

    @property
    def pinned(self) -> int:
        """How many of its servers own CPUs."""
        return sum(server.owns_cpus for server in self.view.servers)

    @property
    def others(self) -> int:
        """How many of its servers are not of the class."""
        return len(self.view.servers) - (self.slots.used if self.slots else 0)

    @property
    def memory_gb(self) -> int:
        """What all its NUMA nodes have."""
        host = self.view.compute
        memory_mb = sum(cell.memory_mb for cell in host.cells) or host.memory_mb
        return max(1, memory_mb // 1024)

    @property
    def to_configure(self) -> int:
        """Count the slots that it would have only after it is configured anew.

        One without dedicated CPUs may have some already: it is enrolled, or pinned
        VMs came there by Nova's fallback query.
        """
        if self.slots is None or self.mode not in {"open", "shared"}:
            return 0
        return max(0, self.possible - self.slots.total)


def hosts_of(policy: Policy | None, snapshot: Snapshot) -> tuple[HostUse, ...]:
    """Return all hosts.

    :param policy: with one pinned class, as :func:`.judged.as_if` returns it; None
        where none could be made
    :param snapshot: as that returns it, too
    """
    views = views_of(snapshot)
    if policy is None:
        return tuple(HostUse(view, host_mode(view.facts)) for view in views)
    if not pages_are_known(snapshot):
        # As it is where memory of any page size will do.
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
    """Return whether any host tells how many memory pages of which size it has."""
    return any(cell.mempages for host in snapshot.hosts for cell in host.cells)


def _all_dedicated(cell: NUMACell) -> NUMACell:
    return cell._replace(pcpuset=cell.pcpuset | cell.cpuset)

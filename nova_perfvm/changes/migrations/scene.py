# SPDX-License-Identifier: Apache-2.0
"""The servers that may leave hosts, the places for them, and the resources of both.

The amounts are differences between a host before and after a server leaves it, or comes
to it by the verdict that every request gets.  So this module repeats no rule of Nova,
Placement or the policy.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice
from typing import Final, NamedTuple

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.diagnose import groups
from nova_perfvm.diagnose.arrivals import arrived
from nova_perfvm.diagnose.capacity import filled
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.facts.snapshot.groups import AFFINITY
from nova_perfvm.rules import resolve_class

Resources = Mapping[Hashable, int]
# With more pairs of kinds and hosts than this, servers that only differ in their server
# group are one kind, and groups are looked at when servers are chosen.
_MOST_PAIRS: Final = 15_000
# The most hosts in a model; the most VMs of a goal counted on a host.
MOST_HOSTS: Final = 1_500
MOST_VMS: Final = 200


class Source(NamedTuple):
    """Servers of a kind on the same NUMA nodes of a host.

    :ivar releases: the resources that each server frees
    """

    kind: ServerKind
    host: str
    servers: tuple[Server, ...]
    releases: Resources


class Landing(NamedTuple):
    """NUMA nodes of a host that may take servers of a kind.

    :ivar nodes: IDs, ascending; empty for servers without a NUMA topology
    :ivar takes: the resources that each server takes
    """

    kind: ServerKind
    host: str
    nodes: tuple[int, ...]
    takes: Resources


@dataclass(frozen=True)
class Goal:
    """The goal of a plan: more VMs of a kind, or servers that leave a host.

    :ivar kind: of the VMs; None to empty a host
    :ivar count: the most VMs that count
    :ivar host: the host to empty
    :ivar pushing: whether servers of other hosts may make room
    """

    kind: ServerKind | None = None
    count: int = 0
    host: str = ""
    pushing: bool = True


@dataclass(frozen=True)
class _Shape:
    """The answers that all hosts with the same resources and settings share."""

    view: HostView
    places: dict[Hashable, tuple[tuple[tuple[int, ...], Resources], ...]]
    conflicts: dict[Hashable, bool]
    vms: list[int]


class Scene:
    """A cloud at the beginning of a plan, as sources, places and resources.

    :ivar hosts: the names of the hosts that are looked at
    :ivar left_out: the number of other hosts
    """

    def __init__(self, start: Arrangement, goal: Goal) -> None:
        self.start, self.goal, self.planning = start, goal, start.planning
        self._shapes: dict[Hashable, _Shape] = {}
        self._of_host: dict[str, _Shape] = {}
        anchors = goal.kind.request.anchors if goal.kind else frozenset()
        self.movable = {
            name: [s for s in start.movable(name) if s.id not in anchors]
            for name in start.hosts
            if goal.pushing or name == goal.host
        }
        names = sorted(start.hosts, key=lambda name: (self._missing(name), name))
        self.left_out = max(0, len(names) - MOST_HOSTS) if goal.pushing else 0
        self.hosts = names[: len(names) - self.left_out]
        self.free = {name: free_of(start.hosts[name].view) for name in self.hosts}

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        return tuple(found for name in self.hosts for found in self._sources(name))

    def _sources(self, name: str) -> Iterator[Source]:
        alike: dict[tuple[ServerKind, Hashable], list[Server]] = {}
        for server in self.movable.get(name, ()):
            nodes = tuple((c.host_node, len(c.cpu_pinning)) for c in server.cells or ())
            key = self.kind_of(server), (nodes, server.page_size_kb)
            alike.setdefault(key, []).append(server)
        view = self.start.hosts[name].view
        for (kind, _), servers in alike.items():
            left = free_of(view.without(servers[:1]))
            yield Source(kind, name, tuple(servers), _less(left, self.free[name]))

    def kind_of(self, server: Server) -> ServerKind:
        """Return the kind of a server; in large clouds only affinity groups count."""
        group = self.planning.group_of(server)
        if group is None or group.policy == AFFINITY or self._exact:
            return self.planning.kind(server)
        return self.planning.ungrouped(server)

    @cached_property
    def _exact(self) -> bool:
        kinds = {
            self.planning.kind(server)
            for servers in self.movable.values()
            for server in servers
        }
        return len(kinds) * len(self.hosts) <= _MOST_PAIRS

    def places(self, kind: ServerKind) -> Iterator[Landing]:
        """Yield the places that take servers of a kind, once others have left."""
        group = kind.request.group
        for name in self.hosts:
            view = self.start.hosts[name].view
            if group is not None:
                seen = view if group.policy == AFFINITY else self._shape(name).view
                if any(groups.reasons(group, "", replace(seen, cloud=view.cloud))):
                    continue
            for nodes, takes in self._places(kind, self._shape(name)):
                yield Landing(kind, name, nodes, takes)

    def _places(
        self, kind: ServerKind, shape: _Shape
    ) -> tuple[tuple[tuple[int, ...], Resources], ...]:
        bare = kind.bare
        if bare not in shape.places:
            found = {} if bare.wrong else dict(self._tried(bare, shape.view))
            shape.places[bare] = tuple(found.items())
        return shape.places[bare]

    def _tried(
        self, kind: ServerKind, view: HostView
    ) -> Iterator[tuple[tuple[int, ...], Resources]]:
        cells = view.facts.cells
        wanted = len(kind.request.facts.cells)
        for chosen in combinations([cell.id for cell in cells], wanted):
            found = self._taken(kind, _only(view, chosen) if wanted else view)
            if found is not None:
                yield chosen, found

    def _taken(self, kind: ServerKind, view: HostView) -> Resources | None:
        planning = self.planning
        found = arrived(planning.policy, kind.request, view, planning.settings, "new")
        return None if found is None else _less(free_of(view), free_of(found.view))

    def conflict(self, one: ServerKind, other: ServerKind, host: str) -> bool:
        """Return whether a host with a server of `one` refuses the class of `other`."""
        shape, policy = self._shape(host), self.planning.policy
        one, other = one.bare, other.bare
        key = self.class_of(one), self.class_of(other)
        if key not in shape.conflicts:
            settings = self.planning.settings
            found = arrived(policy, one.request, shape.view, settings, "new")
            refused = False
            if found is not None and self._taken(other, found.view) is None:
                left = free_of(found.view)
                refused = any(
                    all(left[name] >= amount for name, amount in takes.items())
                    for _, takes in self._places(other, shape)
                )
            shape.conflicts[key] = refused
        return shape.conflicts[key]

    def class_of(self, kind: ServerKind) -> str:
        """Return the name of a server's class; empty without a class."""
        found = resolve_class(self.planning.policy, kind.request.facts)
        return found.name if found else ""

    def room(self, host: str) -> int:
        """Return how many VMs of the goal a host takes now."""
        assert self.goal.kind is not None
        return self.start.hosts[host].room(self.goal.kind, self.most_counted)

    @property
    def most_counted(self) -> int:
        """The most VMs of the goal counted on a host."""
        return min(self.goal.count, MOST_VMS)

    def most_vms(self, host: str) -> int:
        """Return how many VMs of the goal a host takes without its movable servers."""
        shape, kind, planning = self._shape(host), self.goal.kind, self.planning
        assert kind is not None
        if not shape.vms:
            request, policy = kind.bare.request, planning.policy
            vms = filled(policy, request, shape.view, planning.settings)
            shape.vms.append(sum(1 for _ in islice(vms, self.most_counted)))
        view = replace(shape.view, cloud=self.start.hosts[host].view.cloud)
        return max(groups.room(kind.request.group, view, shape.vms[0]), self.room(host))

    def _shape(self, name: str) -> _Shape:
        if name not in self._of_host:
            view = self.start.hosts[name].view
            view = view.without(self.movable.get(name, ()))
            key = _key(view)
            shape = self._shapes.setdefault(key, _Shape(view, {}, {}, []))
            # The answers are shared; groups ask for the host's own servers.
            self._of_host[name] = replace(shape, view=view)
        return self._of_host[name]

    def _missing(self, name: str) -> float:
        """Return how far a host is from the goal: missing share of a VM, or servers."""
        if self.goal.kind is None:
            view = self.start.hosts[name].view
            return -1.0 if name == self.goal.host else len(view.servers)
        free = free_of(self.start.hosts[name].view)
        lacks = [
            max(
                (amount - free[key] % amount) / amount if free[key] % amount else 1.0
                for key, amount in takes.items()
            )
            for _, takes in self._places(self.goal.kind, self._shape(name))
        ]
        return min(lacks, default=2.0)


def free_of(view: HostView) -> Resources:
    """Return what is free on a host: on each NUMA node, in Placement, PCI devices.

    An amount is less than 0 where more is used than exists.  What child providers have
    in Placement is added up: Placement may choose any child.
    """
    found: dict[Hashable, int] = {}
    for cell in view.facts.cells:
        found["CPUs", cell.id] = len(cell.free_pcpus)
        if cell.siblings:
            found["cores", cell.id] = cell.count_cores()[1]
        found["memory", cell.id] = cell.memory_mb - cell.memory_usage_mb
        for pool in cell.mempages:
            found["pages", cell.id, pool.size_kb] = pool.total - pool.used
    for number, provider in enumerate(view.tree):
        for name, inventory in provider.inventories.items():
            key = name, "children" if number else "root"
            left = inventory.capacity - provider.used(name)
            found[key] = found.get(key, 0) + left
    for devices in view.compute.pci_pools or ():
        tags = devices.tags
        key = "devices", f"{tags.get('vendor_id')}:{tags.get('product_id')}"
        found[key] = found.get(key, 0) + devices.count
    return found


def _less(before: Resources, after: Resources) -> Resources:
    changed = {key: found - after.get(key, 0) for key, found in before.items()}
    return {key: amount for key, amount in changed.items() if amount > 0}


def _only(view: HostView, nodes: Collection[int]) -> HostView:
    """Return a host on which only some NUMA nodes have free memory and CPUs to pin."""
    nothing: frozenset[int] = frozenset()
    cells = [
        cell
        if cell.id in nodes
        else cell._replace(
            pcpuset=nothing,
            pinned_cpus=nothing,
            memory_mb=cell.memory_usage_mb,
            mempages=tuple(pool._replace(total=pool.used) for pool in cell.mempages),
        )
        for cell in view.facts.cells
    ]
    return replace(view, facts=view.facts._replace(cells=cells))


def _key(view: HostView) -> Hashable:
    """Return a key; hosts with equal keys take the same servers."""
    facts = view.facts
    compute = replace(
        view.compute, host="", node="", provider="", service="", cells=(), shape=None
    )
    return (
        tuple(map(_cell_key, facts.cells)),
        facts._replace(host="", nodename="", cells=()),
        repr(compute),
        tuple(
            (
                number,
                tuple(
                    sorted((n, repr(i), p.used(n)) for n, i in p.inventories.items())
                ),
                p.traits,
                p.aggregates,
            )
            for number, p in enumerate(view.tree)
        ),
        tuple(p.uuid for p in view.sharing),
        tuple(a.id for a in view.aggregates),
        tuple(a.id for a in view.isolating),
        tuple(s.id for s in view.servers),
    )


def _cell_key(cell: Sequence[object]) -> Hashable:
    return tuple(tuple(x) if isinstance(x, (list, tuple)) else x for x in cell)

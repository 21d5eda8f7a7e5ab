# SPDX-License-Identifier: Apache-2.0
"""Judge whether a host has the requested PCI devices, near enough to its CPUs.

As :class:`nova.pci.stats.PciDeviceStats` decides: for PciPassthroughFilter without NUMA
nodes, for NUMATopologyFilter with the nodes that the server would get.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from oslo_utils import strutils

from nova_perfvm import constants as const
from nova_perfvm.facts import NUMACell, Reason
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot.pci import (
    LEGACY,
    REQUIRED,
    SOCKET,
    PCIPool,
    PCIRequest,
    Tags,
)
from nova_perfvm.rules.slots import node_fits

# Tags of an alias that only Placement looks at.
_OF_PLACEMENT: Final = frozenset({"resource_class", "traits", "rp_uuids"})
# Types of devices that Nova gives only to requests for this type.
_ON_DEMAND: Final = ("type-PF", "vdpa")
# The default of [scheduler]max_placement_results.
_MOST_CANDIDATES: Final = 1000
_MIGRATABLE: Final = "live_migratable"
_REMOTE: Final = "remote_managed"


class Given(NamedTuple):
    """A host's free devices after a request, and the devices that the request got."""

    pools: tuple[PCIPool, ...]
    devices: tuple[PCIPool, ...]


def given(
    asked: Sequence[PCIRequest],
    view: HostView,
    nodes: Collection[int] = (),
) -> Given | None:
    """Return the devices that a server gets on a host; None if the host lacks any.

    :param nodes: the server's NUMA nodes; empty for a server without a NUMA topology
    """
    # Nova sorts the pools too: it takes devices with the fewest tags first.
    pools = sorted(view.compute.pci_pools or (), key=lambda pool: len(pool.tags))
    # Most hosts without room lack one kind of device.
    if any(_lacks(one, pools, view, nodes) for one in asked):
        return None
    return _given(asked, view, nodes, Given(tuple(pools), ()), set())


def _given(
    asked: Sequence[PCIRequest],
    view: HostView,
    nodes: Collection[int],
    now: Given,
    dead_ends: set[Hashable],
) -> Given | None:
    """Return the devices for requests, after other requests got theirs.

    :param now: the devices given and left so far
    :param dead_ends: what was left where later requests found no devices: most ways to
        serve the same requests leave devices that are alike
    """
    if not asked:
        return now
    left_over = _alike(asked, now.pools, view)
    if left_over in dead_ends:
        return None
    for taken in _ways(asked[0], now.pools, view, nodes):
        pairs = [(pool, taken.get(index, 0)) for index, pool in enumerate(now.pools)]
        left = (replace(p, count=p.count - n) for p, n in pairs if p.count > n)
        mine = (replace(p, count=n) for p, n in pairs if n)
        after = Given(tuple(left), (*now.devices, *mine))
        if found := _given(asked[1:], view, nodes, after, dead_ends):
            return found
    dead_ends.add(left_over)
    return None


def _alike(
    asked: Sequence[PCIRequest], pools: Sequence[PCIPool], view: HostView
) -> Hashable:
    """Return a key that free devices share which serve these requests equally well.

    Nova takes devices in the order of the pools where Placement does not count them.
    """
    matching = [set(_matching(one, pools)) for one in asked]
    suiting = [set(_suiting(one, pools, view, ())) for one in asked]
    in_order: list[Hashable] = []
    counted: list[Hashable] = []
    for index, pool in enumerate(pools):
        of = tuple(
            (index in m) + (index in s) for m, s in zip(matching, suiting, strict=True)
        )
        placed = all(
            one.resource_class for one, use in zip(asked, of, strict=True) if use
        )
        if any(of):
            (counted if placed else in_order).append((of, pool.node, pool.count))
    return len(asked), tuple(in_order), frozenset(Counter(counted).items())


def _lacks(
    asked: PCIRequest,
    pools: Sequence[PCIPool],
    view: HostView,
    nodes: Collection[int],
) -> bool:
    """Return whether the pools are too few even for a request that comes alone.

    NUMA policies other than ``required`` may allow pools only after other requests have
    taken nearer ones; nodes count for ``required`` alone.
    """
    near = nodes if asked.policy == REQUIRED else ()
    found = _suiting(asked, pools, view, near)
    return sum(pools[index].count for index in found) < asked.count


def _ways(
    asked: PCIRequest,
    pools: Sequence[PCIPool],
    view: HostView,
    nodes: Collection[int],
) -> Iterator[dict[int, int]]:
    """Yield {index of a pool: number of devices} for each way to serve a request."""
    found = _suiting(asked, pools, view, nodes)
    counts = [pools[index].count for index in found]
    if not found or sum(counts) < asked.count:
        return
    # Placement offers one allocation candidate per division; Nova tries every
    # candidate.
    most = _MOST_CANDIDATES if asked.resource_class else 1
    for way in itertools.islice(_divisions(asked.count, counts), most):
        yield dict(zip(found, way, strict=True))


def _divisions(count: int, counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the ways to divide `count` among parts; the first part takes most first."""
    if not counts:
        if not count:
            yield ()
        return
    for number in range(min(count, counts[0]), -1, -1):
        for others in _divisions(count - number, counts[1:]):
            yield (number, *others)


def _suiting(
    asked: PCIRequest,
    pools: Sequence[PCIPool],
    view: HostView,
    nodes: Collection[int],
) -> list[int]:
    """Return the indices of the suitable pools, in Nova's order.

    As in Nova the NUMA policy comes second: when it counts whether near devices are
    enough, it includes devices that later conditions drop.
    """
    found = _matching(asked, pools)
    if nodes:
        found = _near(asked, pools, found, view, nodes)
    kinds = {spec.get("dev_type") for spec in asked.specs}
    remote = any(map(_is_remote, asked.specs))
    migratable = {spec.get(_MIGRATABLE) for spec in asked.specs}
    counting = asked.resource_class
    # Whether these providers have free devices is judged by Placement itself.
    providers = {
        provider.uuid
        for provider in view.tree
        if counting in provider.inventories and asked.traits <= provider.traits
    }
    return [
        index
        for index in found
        if (kind := (tags := pools[index].tags).get("dev_type")) in kinds
        or kind not in _ON_DEMAND
        if remote or not _is_remote(tags)
        if not counting or tags.get("rp_uuid") in providers
        if migratable not in ({"true"}, {"false"})
        or tags.get(_MIGRATABLE) in migratable
    ]


def _matching(asked: PCIRequest, pools: Sequence[PCIPool]) -> list[int]:
    """Return the indices of the pools whose tags match a spec of the request."""
    return [
        index
        for index, pool in enumerate(pools)
        if any(_has(pool, spec) for spec in asked.specs)
    ]


def _is_remote(tags: Tags) -> bool:
    return strutils.bool_from_string(tags.get(_REMOTE))


def _has(pool: PCIPool, spec: Tags) -> bool:
    return all(
        _lowered(pool.tags.get(key)) == _lowered(value)
        for key, value in spec.items()
        if key not in _OF_PLACEMENT
    )


def _lowered(text: str | None) -> str | None:
    return text and text.lower()


def _near(
    asked: PCIRequest,
    pools: Sequence[PCIPool],
    found: Sequence[int],
    view: HostView,
    nodes: Collection[int],
) -> list[int]:
    """Return the pools that the NUMA policy allows; only near pools if they suffice."""

    def on(wanted: Collection[int | None]) -> list[int]:
        return [index for index in found if pools[index].node in wanted]

    def enough(indices: Iterable[int]) -> bool:
        return sum(pools[index].count for index in indices) >= asked.count

    near = on(nodes)
    if asked.policy == REQUIRED or enough(near):
        return near
    if asked.policy == SOCKET:
        sockets = {cell.id: cell.socket for cell in view.compute.cells}
        if None in sockets.values():
            return []
        own = {sockets[node] for node in nodes}
        return on([node for node, socket in sockets.items() if socket in own])
    near = on([*nodes, None])
    if asked.policy == LEGACY or enough(near):
        return near
    return sorted(found, key=lambda index: pools[index].node not in {*nodes, None})


def beside(
    request: Request,
    view: HostView,
    cells: Sequence[NUMACell],
    *,
    near_first: bool = False,
) -> Sequence[NUMACell] | None:
    """Return the first NUMA nodes, in this order, at which a request has its devices.

    A request without devices gets all `cells`; None if no nodes have the devices.
    NUMATopologyFilter looks for `pci`, then nova-compute for `pci_claimed`.

    :param cells: the cells that the VM may come to
    :param near_first: whether nodes near the devices come before other nodes
    """
    wanted = request.facts.cells
    if not request.pci or not wanted:
        return cells
    near = tuple(replace(one, policy=REQUIRED) for one in request.pci)
    room = _with_room(request, view, cells)
    for first in (near, ()) if near_first else ((),):
        for chosen in itertools.combinations(room, len(wanted)):
            ids = {cell.id for cell in chosen}
            every = (first, request.pci, request.pci_claimed)
            if all(given(asked, view, ids) is not None for asked in every):
                return chosen
    return None


def _with_room(
    request: Request, view: HostView, cells: Sequence[NUMACell]
) -> list[NUMACell]:
    """Return the cells that have the CPUs and memory for a server."""
    # The NUMA cells of a request are alike.
    guest = request.facts.cells[0]
    return [c for c in cells if node_fits(c, guest, ratios=view.ratios)]


def lacking(request: Request, view: HostView) -> Iterator[Reason]:
    """Yield the reason why a host lacks the devices, regardless of NUMA nodes."""
    if request.pci and view.compute.pci_pools is None:
        yield Reason(const.PCI_UNKNOWN, {})
    elif request.pci and given(request.pci, view) is None:
        yield Reason(const.NOVA_PCI, {"devices": _free(request, view)})


def reasons(
    request: Request, view: HostView, cells: Sequence[NUMACell]
) -> Iterator[Reason]:
    """Yield the reason why a host lacks the devices, or lacks them at nodes with room.

    :param cells: the NUMA nodes that Placement offers
    """
    absent = tuple(lacking(request, view))
    yield from absent
    if not absent and beside(request, view, cells) is None:
        room = [cell.id for cell in _with_room(request, view, cells)]
        data = {"devices": _free(request, view), "room": room}
        yield Reason(const.NOVA_PCI_NUMA, data)


def _free(request: Request, view: HostView) -> list[dict[str, object]]:
    """Return for each PCI request the number of suitable free devices by NUMA node."""
    found, pools = [], view.compute.pci_pools or ()
    claims = request.pci_claimed or request.pci
    for asked, claimed in zip(request.pci, claims, strict=True):
        free: Counter[str] = Counter()
        for index in _suiting(asked, pools, view, ()):
            node = pools[index].node
            free["no node" if node is None else str(node)] += pools[index].count
        policy = asked.policy
        if claimed.policy != policy:
            policy = f"{policy}, {claimed.policy} to nova-compute in a move"
        what = {"name": asked.name, "count": asked.count, "policy": policy}
        found.append(what | {"free": dict(sorted(free.items()))})
    return found


def occupied(
    pools: Iterable[PCIPool], devices: Iterable[PCIPool]
) -> tuple[PCIPool, ...]:
    """Return the free devices that do not share a card with devices taken now.

    Nova gives away either a whole card (a physical function) or its virtual functions.
    """

    def card(pool: PCIPool) -> tuple[str | None, bool]:
        return pool.tags.get("address"), pool.tags.get("dev_type") == "type-PF"

    others = {(address, not whole) for address, whole in map(card, devices) if address}
    return tuple(pool for pool in pools if card(pool) not in others)

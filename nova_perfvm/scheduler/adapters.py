# SPDX-License-Identifier: Apache-2.0
"""Turn Nova's scheduler objects into the facts that the rules judge.

host_facts() runs once per host and request: it reads each field of Nova's objects once,
copies no set, and reads page pools only when a rule asks for them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nova import exception, objects
from nova.scheduler import host_manager
from nova.virt import hardware

from nova_perfvm import constants as const
from nova_perfvm.facts import (
    HostFacts,
    NUMACell,
    PagePool,
    RequestCell,
    RequestFacts,
    placement_request,
)
from nova_perfvm.facts.labels import labels_of
from nova_perfvm.facts.placement_request import isolating_traits
from nova_perfvm.printable import first_line


def _reader(*fields: str) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads these fields of a versioned object of Nova.

    The function reads the attributes in which the object stores its fields: reading
    the properties would cost more time than all rules together.
    """
    stored = operator.attrgetter(*(f"_obj_{field}" for field in fields))
    declared = operator.attrgetter(*fields)

    def read(thing: Any) -> tuple[Any, ...]:
        try:
            return stored(thing)
        except AttributeError:
            # A field is not set, or Nova stores fields otherwise: read the properties.
            return declared(thing)

    return read


# In the order of the fields of NUMACell and PagePool.
_read_cell = _reader(
    "id", "cpuset", "pcpuset", "pinned_cpus", "memory", "memory_usage", "siblings"
)
_read_pool = _reader("size_kb", "total", "used")

_NOTHING: frozenset[str] = frozenset()


def request_facts(spec_obj: objects.RequestSpec) -> RequestFacts:
    """Return the facts of a request, from its flavor and image.

    The NUMA topology is the one that nova-api derived from both, so the facts show an
    image's request for pinned CPUs, too.
    """
    flavor = spec_obj.flavor
    topology = spec_obj.numa_topology
    cells: tuple[RequestCell, ...] = ()
    emulator_threads = None
    if topology is not None:
        cells = tuple(
            RequestCell(
                vcpus=len(cell.cpuset),
                pcpus=len(cell.pcpuset),
                memory_mb=cell.memory,
                page_size_kb=cell.pagesize if "pagesize" in cell else None,
                cpu_thread_policy=cell.cpu_thread_policy,
            )
            for cell in topology.cells
        )
        if "emulator_threads_policy" in topology:
            emulator_threads = topology.emulator_threads_policy
    resources, traits = placement_request.read(
        flavor.extra_specs, _image_traits(spec_obj)
    )
    return RequestFacts(
        flavor=flavor.name,
        class_name=flavor.extra_specs.get(const.CLASS_KEY),
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        cells=cells,
        emulator_threads=emulator_threads,
        multiqueue=_multiqueue(spec_obj),
        # Requests from before Rocky lack the field.
        volume_backed=spec_obj.is_bfv if "is_bfv" in spec_obj else None,
        resources=resources,
        traits=traits,
    )


def _image_traits(spec_obj: objects.RequestSpec) -> Sequence[str]:
    """Return the traits that the image requires, or a volume's copy of its metadata."""
    if "image" not in spec_obj or spec_obj.image is None:
        return ()
    traits: Sequence[str] = spec_obj.image.properties.get("traits_required", ())
    return traits


def _multiqueue(spec_obj: objects.RequestSpec) -> bool:
    try:
        wanted: bool = hardware.get_vif_multiqueue_constraint(
            spec_obj.flavor, spec_obj.image
        )
    except exception.FlavorImageConflict:
        # Flavor and image contradict each other.  nova-api refuses that, except for a
        # rebuild, which the virt driver would refuse later.
        return False
    return wanted


def host_facts(host_state: host_manager.HostState) -> HostFacts:
    """Return the facts of a host.

    An error in the host's NUMA topology or figures goes into ``unreadable``, so that a
    rule refuses the host.  Errors in its aggregates, which say whether the policy
    manages the host, are raised.
    """
    reserved = _reserved(host_state.aggregates)
    try:
        topology = host_state.numa_topology
        cells = (
            ()
            if topology is None
            else [
                NUMACell(*_read_cell(cell), _PagePools(cell)) for cell in topology.cells
            ]
        )
        counts = host_state.vcpus_used, host_state.num_instances
    except Exception as exc:  # noqa: BLE001  the other hosts are still judged
        return HostFacts(
            host_state.host,
            host_state.nodename,
            cells=(),
            labels=reserved[0],
            isolating=reserved[1],
            unreadable=in_words(exc),
        )
    return HostFacts(host_state.host, host_state.nodename, cells, *counts, *reserved)


def in_words(error: Exception) -> str:
    """Return an error as one line for the log; its type alone if str() fails."""
    kind = type(error).__name__
    try:
        return f"{kind}: {first_line(error)}"
    except Exception:  # noqa: BLE001  an unprintable error must not fail the request
        return kind


class _PagePools(Sequence[PagePool]):
    """The page pools of a NUMA node, read on access: most full hosts need none."""

    __slots__ = ("_cell",)

    def __init__(self, cell: objects.NUMACell) -> None:
        self._cell = cell

    def __len__(self) -> int:
        return len(self._cell.mempages)

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]

    def __iter__(self) -> Iterator[PagePool]:
        for pool in self._cell.mempages:
            size_kb, total, used = _read_pool(pool)
            # Computes from before Pike report no reserved pages; Nova assumes 0.
            reserved = pool.reserved if "reserved" in pool else 0
            yield PagePool(size_kb, total - reserved, used)


def _reserved(
    aggregates: list[objects.Aggregate],
) -> tuple[frozenset[str], frozenset[str]]:
    """Return a host's labels, and the elastic traits that its aggregates require."""
    if not aggregates:
        return _NOTHING, _NOTHING
    metadata = [aggregate.metadata for aggregate in aggregates]
    labels = frozenset(label for found in metadata for label in labels_of(found))
    return labels, isolating_traits(metadata)

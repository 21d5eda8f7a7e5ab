# SPDX-License-Identifier: Apache-2.0
"""The inventory file: its keys as dataclasses, and the hosts' cells made from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

from nova_perfvm import cpuset
from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import parse_document
from nova_perfvm.documents.keys import NAME, Expected, Form, count, some
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import HostCell
from nova_perfvm.generate.hosts import HostRequest, admission, cpus, from_shape
from nova_perfvm.policy import HostShape, Policy

_MOST: Final = 2**31 - 1
_MemoryGB = Annotated[int, count(1, _MOST, "GiB")]


def _again(groups: Iterable[frozenset[int]]) -> Iterator[tuple[str, str]]:
    """Yield the index of each group with CPUs of an earlier group, and these CPUs."""
    seen: frozenset[int] = frozenset()
    for index, group in enumerate(groups):
        if group & seen:
            yield str(index), cpuset.format_cpus(group & seen)
        seen |= group


@dataclass(frozen=True)
class InventoryCell:
    """One NUMA node of a host."""

    dedicated: frozenset[int] = frozenset()
    shared: frozenset[int] = frozenset()
    memory_gb: _MemoryGB | None = None
    siblings: tuple[frozenset[int], ...] = ()

    def mistakes(self) -> Iterator[Mistake]:
        """Yield the contradictions in the keys of this node."""
        both = self.dedicated & self.shared
        if both and self.dedicated != self.shared:
            yield Mistake(
                ("shared",),
                f"{cpuset.format_cpus(both)} are dedicated, too: expected no CPU in "
                "both sets, or equal sets for a host without cpu sets",
            )
        for index, twice in _again(self.siblings):
            yield Mistake(("siblings", index), f"another core has CPUs {twice}, too")

    def host_cell(self, number: int) -> HostCell:
        """Return the node as a cell of a snapshot."""
        mine = self.dedicated | self.shared
        return HostCell(
            id=number,
            cpuset=self.shared,
            pcpuset=self.dedicated,
            memory_mb=(self.memory_gb or 0) * 1024,
            siblings=tuple(core & mine for core in self.siblings if core & mine),
        )


@dataclass(frozen=True)
class InventoryHost:
    """A host, described by its cells, or by shape and mode as for ``host config``."""

    name: str = field(metadata=NAME)
    shape: HostShape | None = None
    mode: Literal["dedicated", "shared", "mixed", "elastic"] | None = None
    class_name: str | None = field(default=None, metadata={"key": "class"})
    reserve: Annotated[int, count(0, _MOST, "cores of each NUMA node")] = 0
    shared_nodes: Annotated[int, count(1, _MOST, "NUMA nodes")] = 1
    memory_gb: _MemoryGB | None = None
    cells: Annotated[
        tuple[InventoryCell, ...], some("a list of NUMA nodes, node 0 first")
    ] = ()

    def mistakes(self) -> Iterator[Mistake]:
        """Yield missing and contradicting keys, and CPUs of two NUMA nodes."""
        described = (
            *(self.shape, self.mode, self.class_name, self.memory_gb, self.reserve),
            self.shared_nodes != 1,
        )
        wrong = any(described) if self.cells else not (self.shape and self.mode)
        if wrong:
            yield Mistake((), "expected shape and mode, or cells alone")
        for index, twice in _again(cell.dedicated | cell.shared for cell in self.cells):
            yield Mistake(("cells", index), f"another NUMA node has CPUs {twice}, too")

    def host_cells(self, policy: Policy) -> tuple[HostCell, ...]:
        """Return the host's cells; divide CPUs of a shape as ``host config`` does.

        :raises PerfVMError: when the policy allows no host of this mode or class
        """
        if self.shape is None or self.mode is None:
            return tuple(c.host_cell(number) for number, c in enumerate(self.cells))
        topology = from_shape(self.shape)
        request = HostRequest(
            policy,
            topology,
            self.mode,
            class_name=self.class_name,
            reserve=self.reserve,
            shared_nodes=self.shared_nodes,
        )
        admission.check_mode(request)
        admission.check_reserve(request)
        sets = cpus.divide_cpus(request, admission.pinned_classes(request))
        memory_mb = (self.memory_gb or 0) * 1024 // len(topology.nodes)
        return tuple(
            HostCell(memory_mb=memory_mb, **sets.cell(node)) for node in topology.nodes
        )


@dataclass(frozen=True)
class InventoryFile:
    """The keys of the inventory file."""

    hosts: Annotated[
        tuple[InventoryHost, ...],
        Form.BY_NAME,
        Expected("a mapping of hosts' names to their keys"),
    ]


def load(path: str | Path, policy: Policy) -> dict[str, tuple[HostCell, ...]]:
    """Read an inventory file; see :func:`parse`.

    :raises UnreadableFileError: when the file cannot be read
    """
    return parse(textfile.read(path), policy, str(path))


def parse(
    text: str, policy: Policy, source: str = "inventory"
) -> dict[str, tuple[HostCell, ...]]:
    """Return the cells of each host of an inventory in YAML or JSON.

    Memory without a key is 0.

    :param policy: decides for hosts described by a shape whether VMs own cores or
        threads
    :param source: the text's name in messages
    :raises DocumentError: with every mistake of the text, each with its line
    """
    found: dict[str, tuple[HostCell, ...]] = {}

    def build(file: InventoryFile) -> Iterator[Mistake]:
        for host in file.hosts:
            try:
                found[host.name] = host.host_cells(policy)
            except PerfVMError as exc:
                yield Mistake(("hosts", host.name), str(exc))

    parse_document("inventory", InventoryFile, text, source, check=build)
    return found

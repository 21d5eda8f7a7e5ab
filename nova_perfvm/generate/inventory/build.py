# SPDX-License-Identifier: Apache-2.0
"""From what the file says of a host to its cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError, KeyPath, PerfVMError, Problem
from nova_perfvm.facts.snapshot import HostCell, HostPages
from nova_perfvm.generate.hosts import HostRequest, admission, as_key, cpus, from_shape
from nova_perfvm.policy import HostShape, Policy

_UNITS_KB: Final = {"KB": 1, "MB": 1024, "GB": 1024 * 1024}
_SMALL_KB: Final = 4
_SHAPED: Final = ("shape", "mode", "class", "reserve", "shared_nodes", "memory_gb")


class Builder:
    """Makes the cells of hosts, and keeps what is wrong with them.

    :ivar cells: by the host's name
    """

    def __init__(self, policy: Policy) -> None:
        """Know no host yet."""
        self.cells: dict[str, tuple[HostCell, ...]] = {}
        self.problems: list[Problem] = []
        self._policy = policy

    def add(self, name: str, host: Mapping[str, Any]) -> None:
        """Take in a host whose description is of the right form."""
        path = ("hosts", name)
        if "cells" in host:
            for key in _SHAPED:
                if key in host:
                    self._say((*path, key), "remove it: cells say it all")
            self.cells[name] = self._listed(host["cells"], (*path, "cells"))
            return
        missing = [key for key in ("shape", "mode") if key not in host]
        if missing:
            message = f"expected shape and mode, or cells; {missing[0]} is missing"
            self._say(path, message)
            return
        self.cells[name] = self._shaped(host, path)

    def _shaped(self, host: Mapping[str, Any], path: KeyPath) -> tuple[HostCell, ...]:
        """Divide the CPUs of a host as ``host config`` does."""
        try:
            topology = from_shape(HostShape.parse(host["shape"]))
        except PerfVMError as exc:
            self._say((*path, "shape"), str(exc))
            return ()
        request = HostRequest(
            self._policy,
            topology,
            host["mode"],
            class_name=host.get("class"),
            reserve=int(host.get("reserve", 0)),
            shared_nodes=int(host.get("shared_nodes", 1)),
            spell=as_key,
        )
        try:
            admission.check_mode(request)
            admission.check_reserve(request)
            vm_class = admission.pinned_class(request)
        except PerfVMError as exc:
            self._say(path, str(exc))
            return ()
        memory_mb = _memory_mb(host) // len(topology.nodes)
        sets = cpus.divide_cpus(request, vm_class)
        return tuple(
            HostCell(memory_mb=memory_mb, **sets.cell(node)) for node in topology.nodes
        )

    def _listed(self, cells: list[Any], path: KeyPath) -> tuple[HostCell, ...]:
        found = []
        taken: dict[int, int] = {}
        for index, cell in enumerate(cells):
            here = (*path, str(index))
            made = self._cell(index, cell, here)
            for cpu in sorted(made.cpuset | made.pcpuset):
                if cpu in taken:
                    self._say(here, f"CPU {cpu} is on NUMA node {taken[cpu]}, too")
                    break
                taken[cpu] = index
            found.append(made)
        return tuple(found)

    def _cell(self, index: int, cell: Mapping[str, Any], path: KeyPath) -> HostCell:
        dedicated = self._cpus(cell.get("dedicated", ""), (*path, "dedicated"))
        shared = self._cpus(cell.get("shared", ""), (*path, "shared"))
        if dedicated & shared and dedicated != shared:
            both = cpuset.format_cpus(dedicated & shared)
            self._say(
                (*path, "shared"),
                f"{both} are dedicated, too: expected no CPU in both, or the same in "
                "both for a host without cpu sets",
            )
        siblings: list[frozenset[int]] = []
        paired: set[int] = set()
        for number, text in enumerate(cell.get("siblings", ())):
            here = (*path, "siblings", str(number))
            core = self._cpus(text, here)
            if core & paired:
                self._say(here, f"found {text!r}, of which another core has CPUs")
            siblings.append(core & (dedicated | shared))
            paired |= siblings[-1]
        memory_mb = _memory_mb(cell)
        return HostCell(
            id=index,
            cpuset=shared,
            pcpuset=dedicated,
            memory_mb=memory_mb,
            siblings=tuple(core for core in siblings if core),
            mempages=self._pages(cell.get("pages", {}), memory_mb, path),
        )

    def _pages(
        self, pages: Mapping[str, int], memory_mb: int, path: KeyPath
    ) -> tuple[HostPages, ...]:
        """Return the pools; what is in none of the given ones has small pages."""
        if not pages:
            return ()
        if not memory_mb:
            self._say((*path, "memory_gb"), "missing; pages are of this memory")
            return ()
        pools: dict[int, int] = {}
        names: dict[int, str] = {}
        for name, count in pages.items():
            size_kb = int(name[:-2]) * _UNITS_KB[name[-2:]]
            if size_kb in names:
                message = f"the same size as {names[size_kb]}: give their sum to one"
                self._say((*path, "pages", name), message)
            names[size_kb], pools[size_kb] = name, int(count)
        left_kb = memory_mb * 1024 - sum(size * n for size, n in pools.items())
        if left_kb < 0:
            message = f"{-left_kb // 1024 or 1} MiB more than the NUMA node's memory"
            self._say((*path, "pages"), message)
        if not any(size <= 64 for size in pools):
            pools[_SMALL_KB] = max(0, left_kb) // _SMALL_KB
        return tuple(HostPages(size, pools[size]) for size in sorted(pools))

    def _cpus(self, text: str, path: KeyPath) -> frozenset[int]:
        try:
            return cpuset.parse(text)
        except CPUSetError as exc:
            self._say(path, str(exc))
            return frozenset()

    def _say(self, path: KeyPath, message: str) -> None:
        self.problems.append(Problem(path, message))


def _memory_mb(described: Mapping[str, Any]) -> int:
    # JSON schema takes 500.0 for an integer.
    return int(described.get("memory_gb", 0)) * 1024

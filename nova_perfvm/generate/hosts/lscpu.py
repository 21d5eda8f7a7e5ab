# SPDX-License-Identifier: Apache-2.0
"""A host's topology from ``lscpu -J -e``, or from ``lscpu -J``, which says less."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError
from nova_perfvm.generate.hosts.errors import TopologyError
from nova_perfvm.generate.hosts.topology import Core, Node, Topology, make_topology

# Of POWER, which has most, eight.
_THREADS = re.compile(r"[1-9][0-9]?")
_NODE = re.compile(r"NUMA node([0-9]{1,5}) CPU\(s\)")
_USE = "give the output of: lscpu -J -e=CPU,NODE,CORE,SOCKET,ONLINE"


def parse(text: str, source: str) -> Topology:
    """Read what ``lscpu -J -e`` or ``lscpu -J`` printed.

    :param source: the file's name, for messages
    :raises TopologyError: when it is neither, or does not say which CPUs are
        on which NUMA node and core
    """
    try:
        document = json.loads(text)
        if isinstance(document, dict):
            if isinstance(rows := document.get("cpus"), list):
                return _from_rows(rows, source)
            if isinstance(fields := document.get("lscpu"), list):
                return _from_summary(dict(_flatten(fields)), source)
    except ValueError as exc:
        raise _fault(f"{source}: no JSON ({exc})") from exc
    except RecursionError:
        raise _fault(f"{source}: no JSON (nested too deeply)") from None
    raise _fault(f"{source}: neither 'cpus' nor 'lscpu' in it")


def _fault(what: str) -> TopologyError:
    return TopologyError(f"{what}: {_USE}")


def _from_rows(rows: Sequence[Any], source: str) -> Topology:
    """Read the rows of ``lscpu -J -e``, one for each CPU."""
    cores: dict[int, dict[tuple[int, int], list[int]]] = {}
    for number, row in enumerate(rows):
        where = f"{source}: row {number + 1}"
        if not isinstance(row, dict):
            raise _fault(f"{where} is no object")
        if str(row.get("online", "yes")).lower() in {"no", "n", "false"}:
            continue
        for column in ("cpu", "core"):
            if column not in row:
                raise _fault(
                    f"{where}: no column {column!r}, so which CPUs share a core is not "
                    "known"
                )
        cpu = _number(row["cpu"], where, "cpu")
        if "online" not in row and _known(row, "core") is None:
            raise _fault(
                f"{where}: CPU {cpu} has no core, as if it were offline, and there is "
                "no column 'online'"
            )
        # Old kernels count cores anew in each socket.
        socket = _number(_known(row, "socket") or 0, where, "socket")
        core = (socket, _number(row["core"], where, "core"))
        # Without NUMA there is no such column, unless it was asked for.
        node = _number(_known(row, "node") or 0, where, "node")
        cores.setdefault(node, {}).setdefault(core, []).append(cpu)
    if len(rows) and all(isinstance(r, dict) and "node" not in r for r in rows):
        assumptions = [f"{source} has no column 'node': taken for one NUMA node"]
    else:
        assumptions = []
    return make_topology(
        (
            Node(node, tuple(tuple(sorted(threads)) for threads in groups.values()))
            for node, groups in cores.items()
        ),
        source,
        assumptions,
    )


def _known(row: Mapping[str, Any], column: str) -> Any:
    """Return what a column says, None for the signs of knowing nothing."""
    value = row.get(column)
    return None if value == "-" else value


def _number(value: Any, where: str, column: str) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if isinstance(value, (bool, float)) or not 0 <= number <= cpuset.MAX_CPU:
        raise _fault(f"{where}: {column} is {value!r}, expected 0 to {cpuset.MAX_CPU}")
    return number


def _flatten(fields: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Return the fields of ``lscpu -J``; newer versions nest them."""
    for entry in fields:
        if isinstance(entry, dict):
            name = str(entry.get("field", "")).strip().rstrip(":")
            yield name, str(entry.get("data", ""))
            children = entry.get("children")
            if isinstance(children, list):
                yield from _flatten(children)


def _from_summary(fields: Mapping[str, str], source: str) -> Topology:
    """Read ``lscpu -J``: the CPUs of each node, and how many threads a core has."""
    threads_text = fields.get("Thread(s) per core", "")
    if not _THREADS.fullmatch(threads_text):
        raise _fault(
            f"{source}: no field 'Thread(s) per core:', so which CPUs share a core is "
            "not known"
        )
    threads = int(threads_text)
    nodes = {
        int(match[1]): data
        for name, data in fields.items()
        if (match := _NODE.fullmatch(name))
    }
    assumptions = []
    if not nodes:
        if "On-line CPU(s) list" not in fields:
            raise _fault(
                f"{source}: no field 'NUMA node0 CPU(s):', so which CPUs are on which "
                "node is not known"
            )
        nodes = {0: fields["On-line CPU(s) list"]}
        assumptions.append(f"{source} names no NUMA nodes: taken for one")
    try:
        cpus = {node: sorted(cpuset.parse(data)) for node, data in nodes.items()}
    except CPUSetError as exc:
        raise _fault(f"{source}: {exc}") from exc
    numbering = []
    if threads > 1 and any(cpus.values()):
        _refuse_unclear_siblings(cpus, threads, fields.get("Architecture", ""), source)
        example = next(chunk for chunk in cpus.values() if chunk)
        pair = cpuset.format_cpus(_split(example, threads)[0])
        numbering.append(
            f"{source} does not say which CPUs share a core; taken for granted that "
            f"CPUs {pair} do, and so on: compare with lscpu -e=CPU,NODE,CORE, or give "
            "the output of lscpu -J -e"
        )
    return make_topology(
        (Node(node, _split(numbers, threads)) for node, numbers in cpus.items()),
        source,
        assumptions,
        numbering,
    )


def _split(numbers: Sequence[int], threads: int) -> tuple[Core, ...]:
    """Return the cores of a node whose second threads are its later numbers."""
    size = len(numbers) // threads
    return tuple(tuple(numbers[core::size]) for core in range(size))


def _refuse_unclear_siblings(
    cpus: Mapping[int, Sequence[int]], threads: int, architecture: str, source: str
) -> None:
    """Accept the numbering of Linux on x86 alone.

    There all first threads come before all second ones.  Where a node's
    numbers are one after the other although there are several nodes, or on
    another architecture, siblings may as well be neighbours.
    """
    if (
        any(len(numbers) % threads for numbers in cpus.values())
        or not _siblings_come_last(cpus, threads)
        or architecture not in {"", "x86_64", "i686"}
    ):
        raise _fault(
            f"{source}: {threads} threads per core, and lscpu -J does not say which "
            "CPUs share a core"
        )


def _siblings_come_last(cpus: Mapping[int, Sequence[int]], threads: int) -> bool:
    cores = [core for numbers in cpus.values() for core in _split(numbers, threads)]
    levels = [[core[thread] for core in cores] for thread in range(threads)]
    return all(max(a) < min(b) for a, b in pairwise(levels) if a)

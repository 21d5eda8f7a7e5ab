# SPDX-License-Identifier: Apache-2.0
"""A host's topology from the output of ``lscpu -J -e``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nova_perfvm import cpuset
from nova_perfvm.generate.hosts.errors import TopologyError
from nova_perfvm.generate.hosts.topology import Node, Topology, make_topology

_USE = "give the output of: lscpu -J -e=CPU,NODE,CORE,SOCKET,ONLINE"


def parse_lscpu(text: str, source: str) -> Topology:
    """Read what ``lscpu -J -e`` printed.

    :param source: the file's name, for messages
    :raises TopologyError: when it is something else, or does not say which CPUs are
        on which NUMA node and core
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise _fault(f"{source}: no JSON ({exc})") from None
    rows = document.get("cpus") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise _fault(f"{source}: no list 'cpus' in it")
    return _from_rows(rows, source)


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
    """Return the value of a column; None where it is unknown."""
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

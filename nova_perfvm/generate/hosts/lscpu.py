# SPDX-License-Identifier: Apache-2.0
"""A host's topology from the output of ``lscpu -J -e``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nova_perfvm import cpuset
from nova_perfvm.generate.hosts.errors import TopologyError
from nova_perfvm.generate.hosts.topology import Node, Topology, make_topology

# An unknown value of an offline CPU as lscpu 2.37 and 2.38 write the value: no JSON.
_UNKNOWN: Final = re.compile(r'(?<=":) -(?=[,\s])')
_USE = "give the output of: lscpu -J -e=CPU,NODE,CORE,SOCKET,ONLINE"


def parse_lscpu(text: str, source: str) -> Topology:
    """Read the output of ``lscpu -J -e``.

    :param source: the file's name, for messages
    :raises TopologyError: when `text` is no such output, or lacks the NUMA node or
        core of a CPU
    """
    try:
        document = json.loads(_UNKNOWN.sub(" null", text))
    except (ValueError, RecursionError) as exc:
        raise _fault(f"{source}: not JSON ({exc})") from None
    rows = document.get("cpus") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise _fault(f"{source}: no list 'cpus' in it")
    return _from_rows(rows, source)


def _fault(what: str) -> TopologyError:
    return TopologyError(f"{what}: {_USE}")


def _from_rows(rows: Sequence[Any], source: str) -> Topology:
    cores: dict[int, dict[tuple[int, int], list[int]]] = {}
    for index, row in enumerate(rows, 1):
        where = f"{source}: row {index}"
        if not isinstance(row, dict) or not {"cpu", "core", "node"} <= row.keys():
            raise _fault(f"{where}: expected columns cpu, core and node")
        if _is_offline(row):
            continue
        cpu = _number(row["cpu"], where, "cpu")
        # Old kernels number the cores of each socket from 0.
        socket = _number(_known(row.get("socket")), where, "socket")
        core = (socket, _number(row["core"], where, "core"))
        # Kernels without NUMA have no node.
        node = _number(_known(row["node"]), where, "node")
        cores.setdefault(node, {}).setdefault(core, []).append(cpu)
    return make_topology(
        (
            Node(node, tuple(tuple(sorted(threads)) for threads in groups.values()))
            for node, groups in cores.items()
        ),
        source,
    )


def _is_offline(row: Mapping[str, Any]) -> bool:
    # "no" may be in another language, but lscpu knows no core of an offline CPU.
    words = {"no", "n", "false"}
    return str(row.get("online", "yes")).lower() in words or all(
        row[column] in (None, "-") for column in ("core", "node")
    )


def _known(value: Any) -> Any:
    """Return a value; 0 where it is unknown."""
    return 0 if value in (None, "-") else value


def _number(value: Any, where: str, column: str) -> int:
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        text = str(value)
        if text.isdecimal() and len(text) <= 9 and int(text) <= cpuset.MAX_CPU:
            return int(text)
    raise _fault(f"{where}: {column} is {value!r}, expected 0 to {cpuset.MAX_CPU}")

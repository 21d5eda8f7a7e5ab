# SPDX-License-Identifier: Apache-2.0
"""The topology of the machine that this runs on, as its kernel shows it."""

from __future__ import annotations

import re
from pathlib import Path

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError
from nova_perfvm.generate.hosts.errors import TopologyError
from nova_perfvm.generate.hosts.topology import Core, Node, Topology, make_topology

ROOT = Path("/sys")

_MEMORY = re.compile(r"MemTotal:\s*(\d+) kB")


def read_sysfs(root: Path = ROOT) -> Topology:
    """Read the online CPUs, their nodes and cores, and each node's memory.

    :param root: where sysfs is mounted
    :raises TopologyError: when it is not there, or cannot be understood
    """
    system = root / "devices/system"
    try:
        return _read(system)
    except (OSError, UnicodeDecodeError) as exc:
        raise TopologyError(
            f"cannot read this machine's topology: {exc}; is this Linux, with sysfs "
            f"mounted at {root}? Otherwise use --topology"
        ) from exc
    except CPUSetError as exc:
        raise TopologyError(f"{system}: {exc}") from exc


def _read(system: Path) -> Topology:
    online = cpuset.parse(_text(system / "cpu/online"))
    directories = {
        int(path.name.removeprefix("node")): path
        for path in (system / "node").glob("node*")
        if path.name.removeprefix("node").isdecimal()
    }
    nodes = [
        Node(
            number,
            _cores(system, cpuset.parse(_text(path / "cpulist")) & online),
            _memory_mb(path / "meminfo"),
        )
        for number, path in directories.items()
    ]
    assumptions = []
    if not nodes:
        # A kernel without NUMA, or a container that hides it.
        nodes = [Node(0, _cores(system, online))]
        assumptions = [
            f"{system}/node names no NUMA nodes: taken for one, of unknown memory"
        ]
    return make_topology(nodes, str(system), assumptions)


def _text(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def _cores(system: Path, cpus: frozenset[int]) -> tuple[Core, ...]:
    """Group CPUs by the core they share."""
    cores: set[Core] = set()
    for cpu in cpus:
        path = system / f"cpu/cpu{cpu}/topology/thread_siblings_list"
        siblings = cpuset.parse(_text(path)) & cpus
        cores.add(tuple(sorted(siblings | {cpu})))
    return tuple(sorted(cores))


def _memory_mb(path: Path) -> int | None:
    match = _MEMORY.search(_text(path))
    return int(match.group(1)) // 1024 if match else None

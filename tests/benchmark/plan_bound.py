# SPDX-License-Identifier: Apache-2.0
"""An upper bound of the slots that migrations free, by a model of its own.

It reads the CPUs of NUMA nodes off the snapshot, and ignores all else: memory, groups,
orders, the node that Nova chooses, every rule.  So no plan gains more than it says.

Nodes with equal VMs are counted together.  Of each kind of node the model chooses how
many lose which VMs, and how many of the slots there are then given up for VMs that
come.  Each node with CPUs to give away takes one of the sets of VMs that fill them.
"""

import collections
import itertools
import math
import time

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array


def bound(snapshot, slot_cpus, budget):
    """Return (the most slots gained, CPU seconds)."""
    begun = time.process_time()
    kinds = _kinds(snapshot)
    sizes = sorted({size for _, here in kinds for size in here})
    rows = collections.defaultdict(dict)
    gains, most = [], []

    def column(gain, limit):
        gains.append(gain)
        most.append(limit)
        return len(gains) - 1

    nodes_giving = collections.defaultdict(list)
    for (total, here), count in kinds.items():
        free = total - sum(here)
        for gone in _leaving(here, budget):
            room = free + sum(gone.elements())
            for lost in range(room // slot_cpus + 1):
                gain = room // slot_cpus - lost - free // slot_cpus
                number = column(gain, count)
                rows["nodes", total, here][number] = 1
                rows["budget"][number] = gone.total()
                nodes_giving[room % slot_cpus + lost * slot_cpus].append(number)
                for size, times in (+gone).items():
                    rows["moved", size][number] = times
    for cpus, numbers in nodes_giving.items():
        rows["filled", cpus] = dict.fromkeys(numbers, -1)
        for coming in _filling(sizes, cpus):
            number = column(0, budget)
            rows["filled", cpus][number] = 1
            for size, times in coming.items():
                rows["moved", size][number] = -times
    limits = [
        budget if key == "budget" else kinds[key[1:]] if key[0] == "nodes" else 0
        for key in rows
    ]
    found = milp(
        np.negative(gains),
        integrality=1,
        bounds=Bounds(0, most),
        constraints=LinearConstraint(
            _matrix(rows.values(), len(gains)), -math.inf, limits
        ),
        # The root of the search tree is a bound already, at little cost.
        options={"mip_rel_gap": 0, "node_limit": 1},
    )
    return math.floor(-found.mip_dual_bound + 1e-6), time.process_time() - begun


def _kinds(snapshot):
    """Count the nodes by (CPUs, sizes of their VMs)."""
    nodes = {
        (host.host, cell.id): (len(cell.pcpuset), [])
        for host in snapshot.hosts
        for cell in host.cells
    }
    for server in snapshot.servers:
        (cell,) = server.cells
        nodes[server.host, cell.host_node][1].append(server.vcpus)
    return collections.Counter(
        (total, tuple(sorted(sizes))) for total, sizes in nodes.values()
    )


def _leaving(here, budget):
    """Yield which VMs may leave a node."""
    counts = collections.Counter(here)
    for numbers in itertools.product(*(range(n + 1) for n in counts.values())):
        if sum(numbers) <= budget:
            yield collections.Counter(dict(zip(counts, numbers, strict=True)))


def _filling(sizes, cpus):
    """Yield the sets of VMs that fill CPUs: not even the smallest VM fits beside."""
    if not sizes or cpus < sizes[0]:
        yield collections.Counter()
        return
    *smaller, size = sizes
    for times in range(cpus // size, -1, -1):
        left = cpus - times * size
        if smaller or left < size:
            for found in _filling(smaller, left):
                yield found + collections.Counter({size: times})


def _matrix(rows, width):
    rows = [list(row.items()) for row in rows]
    lengths = [len(row) for row in rows]
    entries = [entry for row in rows for entry in row]
    columns, values = zip(*entries, strict=True)
    starts = np.cumsum([0, *lengths])
    return csr_array((values, columns, starts), shape=(len(rows), width), dtype=float)

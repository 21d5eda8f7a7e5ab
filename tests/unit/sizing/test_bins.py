# SPDX-License-Identifier: Apache-2.0

import itertools
import random
import sys
import time
from unittest import mock

import testtools

from nova_perfvm.sizing import bins
from nova_perfvm.sizing.bins import Bin, VMKind, pack
from nova_perfvm.sizing.hosts import Cell

HOST = Bin((Cell(20, 246), Cell(20, 246)))


def fewest(vms, cells):
    """Return the fewest hosts by trying all: VMs of (CPUs, memory) on one node each."""

    def fit(left, free):
        if not left:
            return True
        cpus, memory = left[0]
        tried = set()
        for number, node in enumerate(free):
            # Nodes with as much room are alike.
            if node in tried or node[0] < cpus or node[1] < memory:
                continue
            tried.add(node)
            rest = (node[0] - cpus, node[1] - memory)
            if fit(left[1:], (*free[:number], rest, *free[number + 1 :])):
                return True
        return False

    ordered = sorted(vms, reverse=True)
    return next(n for n in itertools.count(1) if fit(ordered, tuple(cells) * n))


class PackTest(testtools.TestCase):
    def test_as_few_as_by_trying_all(self):
        generator = random.Random(44)
        gaps = 0
        for case in range(30):
            kinds = [
                VMKind(
                    str(number),
                    generator.randint(1, 3),
                    generator.choice([3, 5, 7, 8, 9, 11, 13]),
                    generator.choice([16, 60, 100, 130]),
                    1,
                )
                for number in range(4)
            ]
            vms = [(k.cpus, k.memory_gb) for k in kinds for _ in range(k.vms)]
            expected = fewest(vms, HOST.cells)
            found = pack(kinds, HOST)
            self.assertEqual(expected, found.hosts, f"case {case}: {kinds}")
            self.assertLessEqual(found.bound, expected, f"case {case}")
            gaps += found.hosts - found.bound
        self.assertLessEqual(gaps, 3)

    def test_what_limits(self):
        for _case, kind, host, hosts in (
            ("slots", VMKind("a", 5, 20, 64, 1), HOST, 3),
            ("memory of a node", VMKind("a", 4, 5, 200, 1), HOST, 2),
            ("a VM on both nodes", VMKind("a", 3, 20, 64, 2), HOST, 2),
            ("shared CPUs float", VMKind("a", 8, 13, 8), HOST, 3),
            ("anti-affinity", VMKind("a", 7, 1, 1, alone=True), HOST, 7),
            (
                "most on a host",
                VMKind("a", 7, 1, 1, 1, class_name="c"),
                Bin(HOST.cells, most=(("b", 1), ("c", 2))),
                4,
            ),
            ("network", VMKind("a", 6, 1, 1, network_gbps=9), Bin(HOST.cells, 20), 3),
            ("disk", VMKind("a", 11, 1, 1, disk_part=1 / 5), HOST, 3),
        ):
            self.assertEqual((hosts, hosts), pack([kind], host)[:2])

    def test_many_numa_nodes(self):
        """735,471 sets of 8 nodes are no different from each other."""
        host = Bin((Cell(8, 60),) * 24)
        kinds = [VMKind("a", 10, 32, 64, 8), VMKind("b", 9, 12, 30, 2)]
        begun = time.monotonic()
        for installed in (True, False):
            with mock.patch.object(bins.solver, "installed", lambda one=installed: one):
                self.assertEqual((3, 3), pack(kinds, host)[:2])
        self.assertLess(time.monotonic() - begun, 20)

    def test_nodes_of_a_vm_differ(self):
        # The nodes have room for 2, 1, 0 and 2 parts of 4 CPUs.
        host = Bin((Cell(8, 60), Cell(4, 60), Cell(2, 60), Cell(8, 60)))
        for _case, vms, cells, hosts in (
            ("a VM on a host", 4, 3, 4),
            ("three nodes of one VM", 1, 3, 1),
            ("pairs", 10, 2, 5),
        ):
            found = pack([VMKind("a", vms, 4 * cells, cells, cells)], host)
            self.assertEqual((hosts, hosts), found[:2], _case)

    def test_nothing(self):
        self.assertEqual((0, 0, True), pack([VMKind("a", 0, 1, 1)], HOST))

    def test_without_highs(self):
        # The largest first leaves CPUs without memory beside them.
        kinds = [
            VMKind(str(number), count, cpus, memory_gb, 1)
            for number, (count, cpus, memory_gb) in enumerate(
                ((1, 3, 130), (3, 3, 100), (2, 13, 130), (3, 8, 60))
            )
        ]
        self.assertEqual((2, 2, True), pack(kinds, HOST))
        with mock.patch.dict(sys.modules, {"highspy": None}):
            self.assertEqual((3, 2, False), pack(kinds, HOST))

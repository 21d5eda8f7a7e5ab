# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm import constants as const
from nova_perfvm.facts import PagePool
from nova_perfvm.rules import cells
from tests.unit.rules import hosts


class LandingRankTest(testtools.TestCase):
    def test_order(self):
        """The best nodes come first: (nodes, free CPUs, free devices)."""
        for asks, best_first in (
            (
                False,
                [((1,), 9, 0), ((2,), 9, 0), ((0,), 20, 0), ((3,), 4, 1), ((4,), 4, 2)],
            ),
            (
                True,
                [((4,), 4, 2), ((3,), 4, 1), ((1,), 9, 1), ((2,), 9, 1), ((0,), 20, 9)],
            ),
        ):
            ranks = [cells.landing_rank(*seen, asks=asks) for seen in best_first]
            self.assertEqual(sorted(set(ranks)), ranks)


class DescribedTest(testtools.TestCase):
    def lines(self, host, **cell):
        asked = hosts.hp_request(cells=(hosts.RequestCell(0, 20, 65536, **cell),))
        return cells.describe_cells(hosts.POLICY, asked, host)

    def test_free_and_needed(self):
        few = [PagePool(2048, 1000, 0)]
        for name, pools, page_size_kb, ends in (
            ("no page size", (), None, "of 256000 MiB free, need 65536"),
            ("no page size, few pages", few, None, "MiB free, need 65536"),
            ("few pages", few, 2048, "requested size: too few are free"),
        ):
            host = hosts.host()
            host = host._replace(
                cells=[cell._replace(mempages=pools) for cell in host.cells]
            )
            for line in self.lines(host, page_size_kb=page_size_kb):
                self.assertIn("20 of 20 pCPUs free, need 20; 256000", line)
                self.assertTrue(line.endswith(ends), f"{name}: {line}")

    def test_more_pins_than_usable_cpus_leave_none_free(self):
        host = hosts.host("1x20x2", pinned=range(40))
        cell = host.cells[0]._replace(pcpuset=frozenset(range(20)))
        (line,) = self.lines(host._replace(cells=[cell]))
        self.assertIn(": 0 of ", line)


class UnnamedTest(testtools.TestCase):
    def test_nodes_without_their_marker(self):
        zero, one = (f"{const.CELL_PHYSNET}{node}" for node in (0, 1))
        both = {0, 1}
        for physnets, nodes, expected in (
            ({0: {zero, "tenant"}, 1: {one}}, both, []),
            ({0: {zero}, 1: {"tenant"}}, both, [1]),
            ({0: set(), 1: set()}, both, [0, 1]),
            ({0: {zero}, 1: set()}, {0}, []),
            # Another node's marker is wrong wherever it is.
            ({0: {one}, 1: {zero}}, set(), [0, 1]),
            ({0: {zero, one}, 1: {one}}, both, [0]),
        ):
            self.assertEqual(expected, cells.unnamed(physnets, nodes))

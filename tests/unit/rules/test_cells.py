# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm import constants as const
from nova_perfvm.rules import cells


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

# SPDX-License-Identifier: Apache-2.0
"""The lists that tests/drawn draws from."""

import collections
import unittest

from tests.drawn import cases

LEAST = {"flavors": 60, "images": 20, "hosts": 12, "settings": 10, "aggregates": 10}


class TestLists(unittest.TestCase):
    def test_there_is_enough_to_draw_from(self):
        for name, least in LEAST.items():
            found = cases.entries(name)
            self.assertGreaterEqual(len(found), least)
            names = collections.Counter(entry.get("name") for entry in found)
            self.assertEqual(
                {}, {k: n for k, n in names.items() if k is not None and n > 1}
            )

    def test_a_seed_draws_the_same(self):
        size = {"hosts": 6, "chapters": 3, "cases": 20}
        drawn = cases.world(7, 1, **size)
        self.assertEqual(drawn, cases.world(7, 1, **size))
        self.assertNotEqual(drawn, cases.world(7, 2, **size))
        numbers = [case.number for chapter in drawn.chapters for case in chapter.cases]
        self.assertEqual(list(range(60)), numbers)

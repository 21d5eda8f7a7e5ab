# SPDX-License-Identifier: Apache-2.0
"""The judge of guests and books, which shares nothing with the product."""

import testtools

from tests import judge


class BooksTest(testtools.TestCase):
    def test_what_each_holds(self):
        taken = [("vm", "h1", "VCPU", 2), ("vm", "h1_a", "UNIT", 1)]
        books = judge.summed_up(taken, [])
        self.assertEqual({"vm": {"h1": {"VCPU": 2}, "h1_a": {"UNIT": 1}}}, books.held)
        self.assertEqual(({"vm"}, ()), (books.consumers, books.over))

    def test_more_is_taken_than_there_is(self):
        stock = [("h1", "PCPU", 42, 2, 1.0), ("h1", "VCPU", 40, 0, 4.0)]
        taken = [(vm, "h1", "PCPU", 20) for vm in "abc"] + [("d", "h1", "VCPU", 160)]
        self.assertEqual((), judge.summed_up(taken[1:], stock).over)
        self.assertEqual((("h1", "PCPU", 60, 40),), judge.summed_up(taken, stock).over)


class GroupTest(testtools.TestCase):
    def test_what_breaks_it(self):
        before = {"a": "h1", "b": "h1", "c": "h2", "d": None, "other": "h2"}
        for policy, members, most, after, broken in (
            ("anti-affinity", "ac", 1, before, False),
            ("anti-affinity", "ac", 1, before | {"c": "h1"}, True),
            ("anti-affinity", "abc", 2, before, False),
            ("anti-affinity", "abc", 2, before | {"c": "h1"}, True),
            ("affinity", "abd", 1, before, False),
            ("affinity", "abd", 1, before | {"b": "h2"}, True),
            # It was split before.
            ("affinity", "abc", 1, before | {"b": "h2"}, False),
            ("soft-affinity", "ab", 1, before | {"b": "h2"}, False),
            ("soft-anti-affinity", "ac", 1, before | {"c": "h1"}, False),
        ):
            group = judge.Group(policy, frozenset(members), most)
            self.assertEqual(broken, group.broken(after, before), (group, after))

# SPDX-License-Identifier: Apache-2.0

import testtools
from hypothesis import given
from hypothesis import strategies as st

from nova_perfvm.scheduler import candidates
from tests.unit.scheduler import states


def offered(*children):
    return [{"allocations": {"root": {}, child: {}}} for child in children]


def first(offers):
    return next(name for name in offers[0]["allocations"] if name != "root")


class RotateTest(testtools.TestCase):
    def test_the_next_number_begins_with_the_next_child(self):
        seen = []
        for start in range(4):
            offers = offered("b", "a")
            candidates.rotate(offers, start)
            seen.append(first(offers))
        self.assertEqual(["a", "b", "a", "b"], seen)

    def test_in_place_as_novas_host_state_keeps_the_list(self):
        offers = offered("a", "b")
        self.assertIsNone(candidates.rotate(offers, 1))
        self.assertEqual("b", first(offers))

    def test_nothing_to_choose(self):
        for offers in ([], offered("a")):
            before = list(offers)
            candidates.rotate(offers, 7)
            self.assertEqual(before, offers)

    @given(st.permutations("abcde"), st.integers(0, 10**9))
    def test_no_candidate_is_lost_and_placements_order_does_not_matter(
        self, order, start
    ):
        offers, again = offered(*order), offered(*"abcde")
        candidates.rotate(offers, start)
        candidates.rotate(again, start)
        self.assertEqual(again, offers)
        self.assertEqual(set("abcde"), {first([offer]) for offer in offers})


class TurnTest(testtools.TestCase):
    def test_the_number_of_the_requests_record(self):
        spec = states.request_spec()
        self.assertEqual(0, candidates.turn_of(spec))
        spec.id = 17
        self.assertEqual(17, candidates.turn_of(spec))

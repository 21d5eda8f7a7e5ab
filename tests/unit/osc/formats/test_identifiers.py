# SPDX-License-Identifier: Apache-2.0

import re

import testtools
from hypothesis import given
from hypothesis import strategies as st

from nova_perfvm.osc.formats.identifiers import identifiers

NAMES = st.lists(st.text("aA1._-é /", min_size=1, max_size=4), unique=True)


class IdentifiersTest(testtools.TestCase):
    def test_what_is_no_word_becomes_an_underscore(self):
        self.assertEqual(
            {"hp.20c.64g": "hp_20c_64g", "2 ö 4g": "_2___4g"},
            identifiers(["hp.20c.64g", "2 ö 4g"]),
        )

    def test_of_two_alike_the_first_has_the_plain_one(self):
        first, second, third = identifiers(["a.b", "a_b", "A-B"]).values()
        self.assertEqual("a_b", first)
        self.assertRegex(second, "^a_b_[0-9a-f]{8}$")
        self.assertRegex(third, "^A_B_[0-9a-f]{8}$")

    def test_an_identifier_that_a_digest_would_give_is_taken(self):
        given_second = identifiers(["a.b", "a_b"])["a_b"]
        found = identifiers([given_second, "a.b", "a_b"])
        self.assertEqual(3, len({name.lower() for name in found.values()}))

    @given(NAMES)
    def test_every_name_has_one_of_its_own(self, names):
        found = identifiers(names)
        self.assertEqual(names, list(found))
        self.assertEqual(len(names), len({name.lower() for name in found.values()}))
        for identifier in found.values():
            self.assertTrue(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", identifier))

    @given(NAMES)
    def test_a_name_behind_the_others_changes_none(self, names):
        found = list(identifiers(names).values())
        before = list(identifiers(names[:-1]).values())
        self.assertEqual(before, found[:-1])

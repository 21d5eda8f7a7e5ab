# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.generate.properties import (
    Properties,
    PropertiesConflictError,
    PropertiesError,
    combine,
)
from nova_perfvm.policy import loader

POLICY = loader.load()
GENERAL = POLICY.get_class("general")


def giving(flavor=None, image=None):
    """Return a generator that always says the same."""
    return lambda policy, vm_class: Properties(flavor=flavor or {}, image=image or {})


class CombineTest(testtools.TestCase):
    def test_keys_are_in_alphabetical_order(self):
        given = combine(
            {"b": giving({"z": "1", "a": "2"}), "a": giving({"m": "3"}, {"i": "4"})},
            POLICY,
            GENERAL,
        )
        self.assertEqual(["a", "m", "z"], list(given.flavor))
        self.assertEqual({"i": "4"}, given.image)

    def test_a_contradiction_names_both(self):
        for kind, first, second in (
            ("extra spec", giving({"k": "v"}), giving({"k": "w"})),
            ("image property", giving(None, {"k": "v"}), giving(None, {"k": "w"})),
        ):
            both = {"ours": first, "acme": second}
            error = self.assertRaises(
                PropertiesConflictError, combine, both, POLICY, GENERAL
            )
            self.assertEqual({"ours": "v", "acme": "w"}, error.values)
            self.assertIn(f"{kind} k", str(error))
            self.assertIn("'v' from ours and 'w' from acme", str(error))

    def test_a_generator_that_fails_is_named(self):
        def broken(policy, vm_class):
            raise KeyError("x")

        for bad, words in (
            (broken, "KeyError: 'x'"),
            (7, "TypeError"),
            (lambda policy, vm_class: {"k": "v"}, "AttributeError"),
            (lambda policy, vm_class: Properties(flavor=None), "AttributeError"),
            # What Nova would not store as it is.
            (giving({"k": True}), "'k'=True"),
            (giving({"k": ""}), "'k'=''"),
            (giving({"k": "a\nb"}), "'a\\nb'"),
            (giving({"k=l": "v"}), "'k=l'"),
            (giving({"k l": "v"}), "'k l'"),
            (giving({1: "v"}), "1='v'"),
            (giving(None, {"k": 1}), "'k'=1"),
        ):
            error = self.assertRaises(
                PropertiesError, combine, {"acme": bad}, POLICY, GENERAL
            )
            self.assertEqual("acme", error.generator)
            self.assertIn(words, str(error))
            self.assertNotIn("\n", str(error))

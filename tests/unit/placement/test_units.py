# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.placement import units
from nova_perfvm.policy import loader


def policy(text=""):
    return loader.parse(f'schema_version: "1.0"\nplacement: units\n{text}')


class ChildrenPerHostTest(testtools.TestCase):
    def test_as_many_as_the_largest_host_has_slots(self):
        for shapes, cap, expected in (
            ("2x20", 2, 2),
            ("[1x20, 2x20, 4x20]", 2, 2),
            ("[1x20, 2x20, 4x20]", 4, 4),
            ("4x20", "null", 4),
            ("2x20x2", 4, 2),
        ):
            text = loader.dump(loader.load())
            text = text.replace("host_shape: 2x20", f"host_shape: {shapes}")
            text = text.replace("max_per_host: 2", f"max_per_host: {cap}")
            with self.subTest(f"{shapes} {cap}"):
                self.assertEqual(expected, units.children_per_host(loader.parse(text)))


class ChildrenTest(testtools.TestCase):
    def test_a_host_of_two_slots(self):
        self.assertEqual(
            (
                units.Child("h_perfvm_a", "CUSTOM_PERFVM_CHILD_A", 1000, 1000),
                units.Child("h_perfvm_b", "CUSTOM_PERFVM_CHILD_B", 1000, 1000),
            ),
            units.children(policy(), "h", 2),
        )

    def test_surplus_children_cannot_be_taken_whole(self):
        for slots, expected in ((0, [999, 999]), (1, [1000, 999])):
            children = units.children(policy(), "h", slots)
            self.assertEqual(expected, [child.max_unit for child in children])

    def test_units_of_the_policy(self):
        few = dataclasses.replace(policy(), elastic_units=3)
        self.assertEqual([3, 3], [c.total for c in units.children(few, "h", 2)])

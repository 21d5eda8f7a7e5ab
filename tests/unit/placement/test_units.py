# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm import constants as const
from nova_perfvm.facts.placement_request import elastic_traits
from nova_perfvm.placement.host_schemes.units import HOSTS, children_named, children_of
from nova_perfvm.placement.schemes import units
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
            self.assertEqual(expected, units.children_per_host(loader.parse(text)))


class ChildrenTest(testtools.TestCase):
    def test_surplus_children_cannot_be_taken_whole(self):
        ahead = policy("elastic: {slots: 4}\n")
        for of, slots, expected in (
            (policy(), 2, [1000, 1000]),
            (policy(), 1, [1000, 999]),
            (policy(), 0, [999, 999]),
            (ahead, 2, [1000, 1000, 999, 999]),
        ):
            children = children_named(of, "h", slots)
            found = [child.inventories[const.RC_UNIT] for child in children]
            self.assertEqual(expected, [each.max_unit for each in found])
            self.assertEqual({1000}, {each.total for each in found})
            first = children[0]
            self.assertEqual(
                ("h_perfvm_a", "CUSTOM_PERFVM_CHILD_A"), (first.name, first.trait)
            )
            trait = units.UNITS.enrolled_trait(of)
            self.assertEqual(f"CUSTOM_PERFVM_ELASTIC_{len(expected)}", trait)
            self.assertEqual(len(expected), children_of(trait))
        # As many may be there as max_per_host says, not as there are children.
        self.assertEqual(2, HOSTS.most_slots(ahead))
        self.assertEqual(2, HOSTS.usable_slots(ahead, 3))

    def test_the_number_of_a_host_is_in_its_trait(self):
        for numbers, expected in (
            ((), 2),
            ((2,), 2),
            ((3,), 3),
            # Growing was cut off.
            ((3, 4), 4),
            ((4, 3), 4),
            ((2, 4), 2),
        ):
            traits = [f"{const.TRAIT_ELASTIC}_{number}" for number in numbers]
            found = HOSTS.as_enrolled(policy(), [*traits, "HW_CPU_X"])
            self.assertEqual(expected, units.children_per_host(found))

    def test_traits_of_any_number_are_known(self):
        ours = {"CUSTOM_PERFVM_ELASTIC_2", "CUSTOM_PERFVM_ELASTIC_12"}
        others = {"CUSTOM_PERFVM_ELASTIC", "CUSTOM_PERFVM_ELASTIC_", "HW_CPU_X"}
        self.assertEqual(ours, elastic_traits(ours | others))

# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.facts.demand import request_for
from nova_perfvm.facts.snapshot import Flavor
from nova_perfvm.placement.contract import contract, resource_differences
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import loader


def flavor_of(class_name, scheme, **keys):
    policy = dataclasses.replace(loader.load(), placement=scheme)
    classes = tuple(
        dataclasses.replace(c, **keys) if c.pinned else c for c in policy.classes
    )
    policy = dataclasses.replace(policy, classes=classes)
    return contract(policy, policy.get_class(class_name)).extra_specs()


class SlotsTest(testtools.TestCase):
    def test_a_high_performance_vm_takes_a_slot(self):
        self.assertEqual(
            {
                "resources:CUSTOM_PERFVM_SLOT": "1",
                "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE": "required",
            },
            flavor_of("high-performance", "slots"),
        )

    def test_general_vms_keep_off_hosts_with_slots(self):
        self.assertEqual(
            {"trait:CUSTOM_PERFVM_HIGH_PERFORMANCE": "forbidden"},
            flavor_of("general", "slots"),
        )

    def test_unless_an_isolated_aggregate_keeps_them_off(self):
        policy = loader.load()
        for vm_class in policy.classes:
            usual, isolated = (
                contract(policy, vm_class).extra_specs(isolated_aggregates=value)
                for value in (False, True)
            )
            self.assertEqual(usual if vm_class.pinned else {}, isolated)

    def test_unless_hosts_are_divided_by_numa_node(self):
        for exclusive in ("cell", "none"):
            self.assertEqual({}, flavor_of("general", "slots", exclusive=exclusive))

    def test_guaranteed_operations_per_second(self):
        disk = dataclasses.replace(
            loader.load().get_class("high-performance").disk, read_iops=5000
        )
        self.assertEqual(
            "5000",
            flavor_of("high-performance", "slots", disk=disk)[
                "resources:CUSTOM_PERFVM_READ_IOPS"
            ],
        )


class UnitsTest(testtools.TestCase):
    def test_a_high_performance_vm_takes_one_child_whole(self):
        self.assertEqual(
            {
                "resources:CUSTOM_PERFVM_UNIT": "1000",
                "trait:CUSTOM_PERFVM_ELASTIC_2": "required",
            },
            flavor_of("high-performance", "units"),
        )

    def test_a_general_vm_takes_a_unit_of_every_child(self):
        self.assertEqual(
            {
                "group_policy": "none",
                "resources_perfvm_a:CUSTOM_PERFVM_UNIT": "1",
                "resources_perfvm_b:CUSTOM_PERFVM_UNIT": "1",
                "trait:CUSTOM_PERFVM_ELASTIC_2": "required",
                "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE": "forbidden",
                "trait_perfvm_a:CUSTOM_PERFVM_CHILD_A": "required",
                "trait_perfvm_b:CUSTOM_PERFVM_CHILD_B": "required",
            },
            flavor_of("general", "units"),
        )


class NoneTest(testtools.TestCase):
    def test_nothing_is_asked_of_placement(self):
        self.assertEqual({}, flavor_of("high-performance", "none"))
        self.assertEqual({}, flavor_of("general", "none"))


class DifferencesTest(testtools.TestCase):
    """What a request names otherwise than its class, as the filter says it."""

    def setUp(self):
        super().setUp()
        self.policy = dataclasses.replace(loader.load(), placement="units")
        self.general = contract(self.policy, self.policy.get_class("general"))
        self.specs = self.general.extra_specs()

    def differences(self, **facts):
        flavor = Flavor("f", "f", 2, 4096, 20, self.specs)
        request = request_for(flavor).facts._replace(**facts)
        return resource_differences(self.general, request)

    def test_none_where_the_flavor_says_the_contract(self):
        self.assertEqual(([], []), self.differences())

    def test_a_suffix_is_only_a_name(self):
        self.specs = {k.replace("_perfvm_a", "_x"): v for k, v in self.specs.items()}
        self.assertEqual(([], []), self.differences())

    def test_a_group_is_compared_as_a_whole(self):
        """Without its trait the second unit may come of the first child, too."""
        del self.specs["trait_perfvm_b:CUSTOM_PERFVM_CHILD_B"]
        one = "1 CUSTOM_PERFVM_UNIT of one provider"
        self.assertEqual(
            ([one], [f"{one}, CUSTOM_PERFVM_CHILD_B required"]), self.differences()
        )

    def test_a_key_that_nova_passes_over_is_no_claim(self):
        self.specs["resources_perfvm_a :CUSTOM_PERFVM_UNIT"] = self.specs.pop(
            "resources_perfvm_a:CUSTOM_PERFVM_UNIT"
        )
        found, missing = self.differences()
        self.assertEqual(
            ["nothing of one provider, CUSTOM_PERFVM_CHILD_A required"], found
        )
        self.assertEqual(1, len(missing))

    def test_amounts_that_nova_works_out_itself(self):
        for key, value, found in (
            ("resources:VCPU", "2", []),
            ("resources:VCPU", "0", ["0 VCPU"]),
            ("resources:PCPU", "2", ["2 PCPU"]),
            ("resources:MEMORY_MB", "1", ["1 MEMORY_MB"]),
            ("resources:DISK_GB", "0", []),
            ("resources:VGPU", "1", []),
        ):
            specs = self.specs | {key: value}
            # PCPU in a flavor pins by itself, so that the cells are looked away from.
            facts = request_for(Flavor("f", "f", 2, 4096, 20, specs)).facts
            request = facts._replace(cells=())
            self.assertEqual((found, []), resource_differences(self.general, request))


class AmountsTest(testtools.TestCase):
    def test_all_groups_are_added_up(self):
        """A general VM takes a unit of each child."""
        for scheme, name, expected in (
            ("slots", "high-performance", {"CUSTOM_PERFVM_SLOT": 1}),
            ("slots", "general", {}),
            ("units", "high-performance", {"CUSTOM_PERFVM_UNIT": 1000}),
            ("units", "general", {"CUSTOM_PERFVM_UNIT": 2}),
        ):
            policy = dataclasses.replace(loader.load(), placement=scheme)
            found = scheme_of(policy).amounts(policy, policy.get_class(name))
            self.assertEqual(expected, dict(found))


class SeveralClassesTest(testtools.TestCase):
    """Each pinned class has names of its own."""

    def setUp(self):
        super().setUp()
        built_in = loader.load()
        high = built_in.get_class("high-performance")
        self.policy = dataclasses.replace(
            built_in,
            classes=(
                dataclasses.replace(high, name="hp-20"),
                dataclasses.replace(high, name="hp8", vcpus=8),
                built_in.get_class("general"),
            ),
            managed_hosts="labelled",
        )

    def specs(self, name):
        return contract(self.policy, self.policy.get_class(name)).extra_specs()

    def test_slots_and_traits_of_one_are_not_those_of_another(self):
        self.assertEqual(
            {
                "resources:CUSTOM_PERFVM_SLOT_HP_20": "1",
                "trait:CUSTOM_PERFVM_HP_20": "required",
            },
            self.specs("hp-20"),
        )
        self.assertIn("resources:CUSTOM_PERFVM_SLOT_HP8", self.specs("hp8"))

    def test_general_vms_keep_off_the_hosts_of_all(self):
        self.assertEqual(
            {
                "trait:CUSTOM_PERFVM_HP_20": "forbidden",
                "trait:CUSTOM_PERFVM_HP8": "forbidden",
            },
            self.specs("general"),
        )

# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.generate.properties import placement
from nova_perfvm.policy import loader


def flavor_of(class_name, scheme, **keys):
    policy = dataclasses.replace(loader.load(), placement=scheme)
    classes = tuple(
        dataclasses.replace(c, **keys) if c.pinned else c for c in policy.classes
    )
    policy = dataclasses.replace(policy, classes=classes)
    return dict(placement.generate(policy, policy.get_class(class_name)).flavor)


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
                placement.generate(policy, vm_class, isolated_aggregates=value).flavor
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
                "group_policy": "none",
                "resources_perfvm:CUSTOM_PERFVM_UNIT": "1000",
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

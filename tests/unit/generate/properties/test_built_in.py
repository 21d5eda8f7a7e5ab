# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.generate.properties import BUILT_IN, cpu, disk, memory, network
from nova_perfvm.policy import loader

POLICY = loader.load()
HIGH = POLICY.get_class("high-performance")
GENERAL = POLICY.get_class("general")


class CPUTest(testtools.TestCase):
    def test_pinned_inside_one_node(self):
        self.assertEqual(
            {
                "hw:cpu_policy": "dedicated",
                "hw:cpu_thread_policy": "prefer",
                "hw:numa_nodes": "1",
            },
            cpu.generate(POLICY, HIGH).flavor,
        )

    def test_general_vms_say_that_they_share(self):
        self.assertEqual(
            {"hw:cpu_policy": "shared"}, cpu.generate(POLICY, GENERAL).flavor
        )

    def test_what_the_policy_asks(self):
        asked = dataclasses.replace(
            HIGH, cpu_thread_policy="require", emulator_threads="share", numa_nodes=2
        )
        given = cpu.generate(POLICY, asked).flavor
        self.assertEqual("require", given["hw:cpu_thread_policy"])
        self.assertEqual("share", given["hw:emulator_threads_policy"])
        self.assertEqual("2", given["hw:numa_nodes"])

    def test_no_number_of_nodes_where_the_policy_has_none(self):
        free = dataclasses.replace(HIGH, numa_nodes=None)
        self.assertNotIn("hw:numa_nodes", cpu.generate(POLICY, free).flavor)


class MemoryTest(testtools.TestCase):
    def test_silent_by_default(self):
        self.assertEqual({}, memory.generate(POLICY, HIGH).flavor)

    def test_page_size(self):
        huge = dataclasses.replace(HIGH, mem_page_size="1GB")
        self.assertEqual(
            {"hw:mem_page_size": "1GB"}, memory.generate(POLICY, huge).flavor
        )
        self.assertEqual({}, memory.generate(POLICY, huge).image)


class NetworkTest(testtools.TestCase):
    def test_multiqueue_on_both_sides(self):
        given = network.generate(POLICY, HIGH)
        self.assertEqual({"hw:vif_multiqueue_enabled": "true"}, given.flavor)
        self.assertEqual(
            {"hw_vif_model": "virtio", "hw_vif_multiqueue_enabled": "true"}, given.image
        )

    def test_silent_without(self):
        given = network.generate(POLICY, GENERAL)
        self.assertEqual(({}, {}), (given.flavor, given.image))


class DiskTest(testtools.TestCase):
    def test_volumes_have_a_fast_bus(self):
        given = disk.generate(POLICY, HIGH)
        self.assertEqual(({}, {"hw_disk_bus": "virtio"}), (given.flavor, given.image))

    def test_silent_for_images(self):
        self.assertEqual({}, disk.generate(POLICY, GENERAL).image)


class BuiltInTest(testtools.TestCase):
    def test_one_for_each_concern(self):
        self.assertEqual({"cpu", "memory", "network", "disk"}, set(BUILT_IN))

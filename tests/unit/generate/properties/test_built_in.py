# SPDX-License-Identifier: Apache-2.0
"""What the built-in policy does not ask; for what it does see test_flavors."""

import dataclasses

import testtools

from nova_perfvm.generate.flavors import properties_of
from nova_perfvm.policy import loader

POLICY = loader.load()
HIGH = POLICY.get_class("high-performance")


class BuiltInTest(testtools.TestCase):
    def test_what_a_policy_may_ask(self):
        for asked, expected in (
            ({"cpu_thread_policy": "require"}, {"hw:cpu_thread_policy": "require"}),
            ({"emulator_threads": "share"}, {"hw:emulator_threads_policy": "share"}),
            ({"numa_nodes": 2}, {"hw:numa_nodes": "2"}),
            ({"numa_nodes": None}, {"hw:numa_nodes": None}),
            ({"mem_page_size": "1GB"}, {"hw:mem_page_size": "1GB"}),
            ({"vif_multiqueue": False}, {"hw:vif_multiqueue_enabled": None}),
        ):
            vm_class = dataclasses.replace(HIGH, **asked)
            found = properties_of(POLICY, vm_class).flavor
            self.assertEqual(expected, {key: found.get(key) for key in expected})

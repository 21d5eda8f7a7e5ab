# SPDX-License-Identifier: Apache-2.0
"""Hosts whose NUMA nodes Placement counts, under the policy that is shipped."""

import json
import pathlib

import testtools

from nova_perfvm.generate.hosts import HostConfigError, rendering
from nova_perfvm.placement.host_schemes.cells import HOSTS
from nova_perfvm.policy import loader
from nova_perfvm.policy.advice import advice
from tests.unit.generate.hosts.requests import configured

ROOT = pathlib.Path(__file__).parents[4]
MIXED = loader.load(ROOT / "etc/nova_perfvm/examples/mixed-sizes.yaml")


def limited(**most):
    """Return the policy with at most so many VMs of some classes on a host."""
    document = MIXED.as_document()
    for name, count in most.items():
        document["classes"][name.replace("_", "-")]["max_per_host"] = count
    return loader.parse(json.dumps(document))


class MixedSizesTest(testtools.TestCase):
    def test_the_policy_is_one_of_several_sizes_and_costs_what_each_does(self):
        self.assertEqual([4, 8, 16, 20], [c.vcpus for c in MIXED.pinned_classes])
        self.assertEqual({"policy.no_cpu_for_host"}, {f.code for f in advice(MIXED)})

    def test_a_host_serves_all_sizes(self):
        config = configured(policy=MIXED)
        self.assertEqual([10, 4, 2, 2], list(config.room.values()))
        self.assertIsNone(config.provider)
        self.assertIn(
            "10 slots of class pinned-4 or 4 slots", rendering.nova_conf(config)
        )
        self.assertRaises(
            HostConfigError, configured, policy=MIXED, class_name="pinned-4"
        )

    def test_nodes_with_pinned_vms_have_names_for_the_scheduler(self):
        settings = rendering.as_document(configured("4x20", policy=MIXED))["nova_conf"]
        names = settings["neutron"]["physnets"].split(",")
        self.assertEqual([f"perfvm_cell_{node}" for node in range(4)], names)
        for node, name in enumerate(names):
            own = settings[f"neutron_physnet_{name}"]
            self.assertEqual({"numa_nodes": str(node)}, own)
        # As nova-scheduler has it, which foresees what nova-compute chooses.
        (packing,) = (s for s in HOSTS.settings if s.section == "compute")
        (value,) = packing.values
        self.assertEqual(value, settings["compute"][packing.option])
        shared = configured(mode="shared", policy=MIXED)
        self.assertNotIn("neutron", rendering.as_document(shared)["nova_conf"])

    def test_what_is_said(self):
        config = configured(policy=MIXED)
        self.assertIn("[neutron]physnets already", config.warnings[0])
        self.assertIn("host enroll HOST --from-nova-db. Until", config.notes[-1])
        shared = configured(mode="shared", policy=MIXED)
        self.assertIn("first: openstack perfvm host unenroll HOST", shared.notes[-1])

    def test_slots_of_classes_with_a_limit(self):
        config = configured(policy=limited(pinned_4=3, pinned_20=1))
        (provider,) = config.provider["providers"]
        totals = {
            name: found["total"]
            for inventory in provider["inventories"]["additional"]
            for name, found in inventory.items()
        }
        self.assertEqual(
            {"CUSTOM_PERFVM_SLOT_PINNED_4": 3, "CUSTOM_PERFVM_SLOT_PINNED_20": 1},
            totals,
        )
        # The trait comes with the NUMA nodes, by enrolling.
        self.assertNotIn("traits", provider)

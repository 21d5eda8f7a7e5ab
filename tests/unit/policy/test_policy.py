# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.exceptions import UnknownClassError
from nova_perfvm.policy import FlavorSize, FlavorTemplate, VMClass, loader


class PolicyTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.policy = loader.load()

    def test_classes(self):
        self.assertEqual(20, self.policy.get_class("high-performance").vcpus)
        error = self.assertRaises(UnknownClassError, self.policy.get_class, "hp")
        self.assertIn("high-performance, general", str(error))
        self.assertEqual("general", self.policy.default_class.name)
        pinned = [c.name for c in self.policy.pinned_classes]
        self.assertEqual(["high-performance"], pinned)

    def test_hosts_that_the_policy_manages(self):
        self.assertTrue(self.policy.manages(()))
        labelled = dataclasses.replace(self.policy, managed_hosts="labelled")
        self.assertFalse(labelled.manages(frozenset()))
        self.assertTrue(labelled.manages(frozenset({"general"})))

    def test_flavors_need_not_be_listed(self):
        self.assertTrue(self.policy.lists_flavors)
        for flavors in (None, FlavorTemplate("{class}", ())):
            bare = [
                dataclasses.replace(c, flavors=flavors) for c in self.policy.classes
            ]
            unlisted = dataclasses.replace(self.policy, classes=tuple(bare))
            self.assertFalse(unlisted.lists_flavors)

    def test_digest_is_of_what_is_enforced(self):
        text = loader.dump(self.policy)
        accepting = text.replace("accept: []", "accept: [audit.flavor_changed]")
        for other in (f"# x\n{text}", accepting):
            self.assertEqual(self.policy.digest, loader.parse(other).digest)
        changed = loader.parse(text.replace("vcpus: 20", "vcpus: 18"))
        self.assertNotEqual(self.policy.digest, changed.digest)


class VMClassTest(testtools.TestCase):
    def test_cpus(self):
        """Those of a VM on each cell, with what emulator threads take, and in all."""
        pinned = {"cpu_policy": "dedicated"}
        for keys, expected in (
            ({"vcpus": 20, "numa_nodes": 2, **pinned}, (10, 10, 20)),
            ({"vcpus": 18, "emulator_threads": "isolate", **pinned}, (18, 19, 19)),
            ({"vcpus": 4}, (0, 0, 0)),
        ):
            x = VMClass("x", **keys)
            self.assertEqual(expected, (x.cell_vcpus, x.cell_pcpus, x.vm_pcpus))

    def test_name_of_a_flavor(self):
        template = FlavorTemplate("{class}.{vcpus}c.{memory_gb}g.{root_gb}d", ())
        self.assertEqual("hp.20c.64g.0d", template.name_of("hp", FlavorSize(20, 64, 0)))

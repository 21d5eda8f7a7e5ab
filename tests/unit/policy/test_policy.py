# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.exceptions import UnknownClassError
from nova_perfvm.policy import FlavorSize, FlavorTemplate, VMClass, loader


class PolicyTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.policy = loader.load()

    def test_classes_are_found_by_name(self):
        self.assertEqual(20, self.policy.get_class("high-performance").vcpus)

    def test_unknown_class_names_those_that_exist(self):
        error = self.assertRaises(UnknownClassError, self.policy.get_class, "hp")
        self.assertEqual(
            ("hp", ("high-performance", "general")), (error.name, error.declared)
        )
        self.assertIn("high-performance, general", str(error))

    def test_default_and_pinned_classes(self):
        self.assertEqual("general", self.policy.default_class.name)
        self.assertEqual(
            ["high-performance"], [c.name for c in self.policy.pinned_classes]
        )

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

    def test_digest_is_of_the_meaning_not_of_the_text(self):
        text = loader.dump(self.policy)
        self.assertEqual(self.policy.digest, loader.parse(f"# x\n{text}").digest)
        changed = loader.parse(text.replace("vcpus: 20", "vcpus: 18"))
        self.assertNotEqual(self.policy.digest, changed.digest)

    def test_what_is_accepted_does_not_change_the_digest(self):
        accepting = dataclasses.replace(self.policy, accept=("audit.flavor_changed",))
        self.assertEqual(self.policy.digest, accepting.digest)
        parsed = loader.parse(loader.dump(accepting))
        self.assertEqual(accepting.accept, parsed.accept)


class VMClassTest(testtools.TestCase):
    def test_cpus_of_a_pinned_class(self):
        vm_class = VMClass("x", vcpus=20, cpu_policy="dedicated", numa_nodes=2)
        self.assertEqual(
            (10, 10, 20), (vm_class.cell_vcpus, vm_class.cell_pcpus, vm_class.vm_pcpus)
        )

    def test_isolated_emulator_threads_cost_a_cpu(self):
        vm_class = VMClass(
            "x", vcpus=18, cpu_policy="dedicated", emulator_threads="isolate"
        )
        self.assertEqual(
            (18, 19, 19), (vm_class.cell_vcpus, vm_class.cell_pcpus, vm_class.vm_pcpus)
        )

    def test_a_shared_class_owns_no_cpu(self):
        vm_class = VMClass("x", vcpus=4)
        self.assertEqual(
            (0, 0, 0), (vm_class.cell_vcpus, vm_class.cell_pcpus, vm_class.vm_pcpus)
        )


class FlavorTemplateTest(testtools.TestCase):
    def test_all_fields(self):
        template = FlavorTemplate("{class}.{vcpus}c.{memory_gb}g.{root_gb}d", ())
        self.assertEqual("hp.20c.64g.0d", template.name_of("hp", FlavorSize(20, 64, 0)))

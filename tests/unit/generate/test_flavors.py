# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools

import testtools
from nova import exception, objects
from nova.api.validation.extra_specs import validators
from nova.virt import hardware

from nova_perfvm.exceptions import UnknownClassError
from nova_perfvm.generate.flavors import (
    FlavorError,
    PolicyFlavor,
    generate_flavors,
    generate_image_properties,
    placement_names,
)
from nova_perfvm.generate.properties import Properties, PropertiesConflictError
from nova_perfvm.policy import loader
from tests.unit.generate import plugins

POLICY = loader.load()
HIGH = POLICY.get_class("high-performance")
GENERAL = POLICY.get_class("general")

objects.register_all()

HIGH_SPECS = {
    "hw:cpu_policy": "dedicated",
    "hw:cpu_thread_policy": "prefer",
    "hw:numa_nodes": "1",
    "hw:vif_multiqueue_enabled": "true",
    "perfvm:class": "high-performance",
    "resources:CUSTOM_PERFVM_SLOT": "1",
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE": "required",
}
HIGH_IMAGE = {
    "hw_disk_bus": "virtio",
    "hw_vif_model": "virtio",
    "hw_vif_multiqueue_enabled": "true",
}


def with_class(vm_class, **changes):
    """Return the built-in policy with one class changed."""
    changed = dataclasses.replace(vm_class, **changes)
    return dataclasses.replace(
        POLICY,
        classes=tuple(changed if c is vm_class else c for c in POLICY.classes),
    )


def named(pattern, vm_class=HIGH):
    """Return the built-in policy with another flavor name in one class."""
    flavors = dataclasses.replace(vm_class.flavors, name=pattern)
    return with_class(vm_class, flavors=flavors)


class GenerateFlavorsTest(testtools.TestCase):
    def test_built_in_policy(self):
        shared = {
            "hw:cpu_policy": "shared",
            "perfvm:class": "general",
            "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE": "forbidden",
        }
        high = [(f"hp.20c.{gb}g", HIGH.name, 20, gb, 0) for gb in (64, 128, 200)]
        sizes = ((1, 2, 20), (2, 4, 40), (4, 8, 40), (8, 16, 80))
        general = [(f"g.{n}c.{gb}g", GENERAL.name, n, gb, gib) for n, gb, gib in sizes]
        specs = {HIGH.name: HIGH_SPECS, GENERAL.name: shared}
        expected = [
            PolicyFlavor(name, of, vcpus, gb * 1024, gib, specs[of])
            for name, of, vcpus, gb, gib in high + general
        ]
        self.assertEqual(expected, list(generate_flavors(POLICY)))
        found = generate_flavors(POLICY, class_name="general", prefix="dc1-")
        self.assertEqual(
            [f"dc1-{flavor.name}" for flavor in expected[3:]], [f.name for f in found]
        )

    def test_other_memory_sizes_concern_exact_classes_only(self):
        found = generate_flavors(POLICY, memory_gb=[96, 32, 96])
        self.assertEqual(
            [("hp.20c.96g", 98304, 0), ("hp.20c.32g", 32768, 0)],
            [(flavor.name, flavor.memory_mb, flavor.root_gb) for flavor in found],
        )
        policy = with_class(HIGH, flavors=None)
        found = generate_flavors(policy, memory_gb=[64])
        self.assertEqual(["high-performance.20c.64g"], [f.name for f in found])

    def test_refused(self):
        none = with_class(HIGH, flavors=None)
        split = with_class(HIGH, numa_nodes=4, mem_page_size="1GB")
        of_general = {"class_name": "general", "memory_gb": [4]}
        for words, policy, options in (
            ("'general' lists no flavors of these sizes", POLICY, of_general),
            ("0 GiB", POLICY, {"memory_gb": [0]}),
            ("2097152 GiB", POLICY, {"memory_gb": [2**21]}),
            ("66 GiB cannot be split evenly over 4", split, {"memory_gb": [64, 66]}),
            ("lists no flavors", none, {"class_name": "high-performance"}),
            ("{memory_gb}", named("hp"), {"memory_gb": [64, 128]}),
            # Names that Nova or its client refuses.
            ("change the prefix", named("hp\n{memory_gb}"), {}),
            ("change the prefix", named(" hp{memory_gb}"), {}),
            ("change the prefix", named("hp{memory_gb}"), {"prefix": "-"}),
            ("change the prefix", named("hp{memory_gb}"), {"prefix": "x" * 255}),
        ):
            error = self.assertRaises(FlavorError, generate_flavors, policy, **options)
            self.assertIn(words, str(error))
        for generate in (generate_flavors, generate_image_properties):
            error = self.assertRaises(
                UnknownClassError, generate, POLICY, class_name="fast"
            )
            self.assertIn("high-performance, general", str(error))

    def test_isolated_aggregates_are_for_slots(self):
        *_, general = generate_flavors(POLICY, isolated_aggregates=True)
        self.assertEqual({GENERAL.name}, {general.extra_specs["perfvm:class"]})
        self.assertEqual([], placement_names([general]))
        for scheme in ("units", "none"):
            policy = dataclasses.replace(POLICY, placement=scheme)
            exc = self.assertRaises(
                FlavorError, generate_flavors, policy, isolated_aggregates=True
            )
            self.assertIn(f"placement: {scheme}", str(exc))

    def test_names_that_placement_has_to_know(self):
        def names(scheme):
            policy = dataclasses.replace(POLICY, placement=scheme)
            return placement_names(generate_flavors(policy))

        high = ("trait", "CUSTOM_PERFVM_HIGH_PERFORMANCE")
        self.assertEqual([], names("none"))
        self.assertEqual(
            [("resource class", "CUSTOM_PERFVM_SLOT"), high], names("slots")
        )
        traits = [
            f"CUSTOM_PERFVM_{name}" for name in ("CHILD_A", "CHILD_B", "ELASTIC_2")
        ]
        self.assertEqual(
            [("resource class", "CUSTOM_PERFVM_UNIT")]
            + [("trait", name) for name in traits]
            + [high],
            names("units"),
        )
        standard = {"trait:HW_CPU_X86_AVX": "required", "resources:VGPU": "1"}
        flavor = PolicyFlavor("f", "c", 1, 1024, 0, standard)
        self.assertEqual([], placement_names([flavor]))

    def test_images_of_a_class_and_of_all(self):
        self.assertEqual({}, generate_image_properties(POLICY, class_name="general"))
        for name in (HIGH.name, None):
            found = generate_image_properties(POLICY, class_name=name)
            self.assertEqual(HIGH_IMAGE, found)

    def test_extensions_that_contradict(self):
        def rename(policy, vm_class):
            return Properties(flavor={"perfvm:class": "other"})

        def by_class(policy, vm_class):
            return Properties(image={"os_distro": vm_class.name})

        for generate, extension, words in (
            (generate_flavors, rename, "'other' from acme"),
            # No image serves classes that differ.
            (generate_image_properties, by_class, "'general' from class general"),
        ):
            with plugins.installed(acme=extension):
                error = self.assertRaises(PropertiesConflictError, generate, POLICY)
            self.assertIn(words, str(error))


class NovaTest(testtools.TestCase):
    """What Nova's own code says to the generated properties."""

    def constraints(self, flavor, image):
        """Do what nova-api does with the NUMA side of a create request."""
        nova_flavor = objects.Flavor(
            name=flavor.name,
            vcpus=flavor.vcpus,
            memory_mb=flavor.memory_mb,
            extra_specs=dict(flavor.extra_specs),
        )
        image_meta = objects.ImageMeta.from_dict(
            {"name": "image", "properties": dict(image)}
        )
        topology = hardware.numa_get_constraints(nova_flavor, image_meta)
        return topology, hardware.get_vif_multiqueue_constraint(nova_flavor, image_meta)

    def test_nova_takes_every_extra_spec(self):
        for size, expected in (
            (None, None),
            ("small", hardware.MEMPAGES_SMALL),
            ("large", hardware.MEMPAGES_LARGE),
            ("2MB", 2048),
            ("1GB", 1048576),
        ):
            policy = with_class(HIGH, mem_page_size=size, emulator_threads="share")
            flavors = generate_flavors(policy)
            for flavor in flavors:
                for key, value in flavor.extra_specs.items():
                    validators.validate(key, value)
            topology, _ = self.constraints(flavors[0], {})
            self.assertEqual(expected, topology.cells[0].pagesize)

    def test_one_image_serves_both_classes(self):
        images = ({}, generate_image_properties(POLICY))
        for flavor, image in itertools.product(generate_flavors(POLICY), images):
            topology, multiqueue = self.constraints(flavor, image)
            if flavor.class_name == GENERAL.name:
                self.assertIsNone(topology)
                self.assertEqual(bool(image) and flavor.vcpus > 1, bool(multiqueue))
            else:
                (cell,) = topology.cells
                self.assertEqual(set(range(20)), cell.pcpuset)
                self.assertTrue(multiqueue)

    def test_flavors_refuse_what_an_image_smuggles(self):
        threads = exception.CPUThreadPolicyConfigurationInvalid
        smt = {"trait:HW_CPU_HYPERTHREADING": "required"}
        pages = {"hw_mem_page_size": "large"}
        pinning = exception.ImageCPUPinningForbidden
        queues = {"hw_vif_multiqueue_enabled": "false"}
        for name, image, error in (
            ("general", {"hw_cpu_policy": "dedicated"}, pinning),
            ("general", {"hw_cpu_policy": "mixed"}, pinning),
            ("general", {"hw_cpu_thread_policy": "isolate"}, threads),
            ("general", smt, threads),
            ("general", pages, exception.MemoryPageSizeForbidden),
            (HIGH.name, {"hw_numa_nodes": "2"}, exception.ImageNUMATopologyForbidden),
            (HIGH.name, pages, exception.MemoryPageSizeForbidden),
            (HIGH.name, queues, exception.FlavorImageConflict),
            (HIGH.name, smt, exception.InvalidRequest),
        ):
            (flavor, *_) = generate_flavors(POLICY, class_name=name)
            self.assertRaises(error, self.constraints, flavor, image)

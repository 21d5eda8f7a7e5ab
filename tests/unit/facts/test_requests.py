# SPDX-License-Identifier: Apache-2.0
"""What explain works out from flavor and image, beside what Nova works out."""

import collections
import dataclasses
import itertools
import random

import testtools
from nova import exception, objects
from nova.objects import fields, image_meta
from nova.scheduler import utils as scheduler_utils
from nova.virt import hardware

from nova_perfvm import cpuset
from nova_perfvm.facts.conflicts import conflicts
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import Flavor, Image
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.scheduler import adapters
from tests.unit.facts.snapshot.clouds import POLICY, Cloud
from tests.unit.scheduler import states

FLAVOR_VALUES = {
    "hw:cpu_policy": ["dedicated", "shared", None, None],
    "hw:cpu_thread_policy": [None, None, "prefer", "isolate", "require"],
    "hw:numa_nodes": [None, None, "1", "2", "3"],
    "hw:emulator_threads_policy": [None, None, "isolate", "share"],
    "hw:mem_page_size": [None, None, "small", "large", "any", "2MB", "1048576", "1GB"],
    "hw:vif_multiqueue_enabled": [None, "true", "yes"],
    "perfvm:class": [None, "general", "high-performance"],
    "resources:CUSTOM_PERFVM_SLOT": [None, "1"],
    "resources:DISK_GB": [None, None, "7"],
    "resources_a:CUSTOM_PERFVM_UNIT": [None, "1", "1000"],
    "trait_a:CUSTOM_PERFVM_CHILD_A": [None, "required"],
    "resources1:PCPU": [None] * 9 + ["4", "+4 ", "0"],
    "resources:VCPU": [None] * 9 + ["0"],
    "resources_a:PCPU": [None] * 9 + ["4"],
    "trait1:HW_CPU_HYPERTHREADING": [None] * 9 + ["required"],
    "trait:CUSTOM_X": [None, "required", "forbidden"],
}
# What nova-api compares, each often enough to meet any other.
COMPARED = {
    "hw:cpu_policy": [None, "dedicated", "dedicated", "shared"],
    "hw:cpu_thread_policy": [None, None, "prefer", "isolate", "require"],
    "hw:numa_nodes": [None, None, "1", "2"],
    "hw:emulator_threads_policy": [None, None, None, "isolate", "share"],
    "hw:mem_page_size": [None, "small", "large", "any", "2MB"],
    "hw:vif_multiqueue_enabled": [None, None, "true", "false"],
    "hw:pmu": [None, None, None, "true", "false"],
    "hw:virtio_packed_ring": [None, None, None, "true", "false"],
    "hw:locked_memory": [None, None, None, "true", "false"],
    "resources:PCPU": [None] * 6 + ["4", "5", " 4", "0"],
    "resources1:VCPU": [None] * 6 + ["4", "0"],
    "resources01:PCPU": [None] * 9 + ["4"],
    "resources_a:VCPU": [None] * 9 + ["4"],
    "hw:cpu_realtime": [None] * 7 + ["yes"],
    "hw:cpu_realtime_mask": [None, "^0"],
    "trait:HW_CPU_HYPERTHREADING": [None] * 7 + ["required"],
    "trait2:HW_CPU_HYPERTHREADING": [None] * 9 + ["forbidden"],
    "trait_a:HW_CPU_HYPERTHREADING": [None] * 9 + ["required"],
    "hw:cpu_max_sockets": [None] * 7 + ["2"],
    "hw:serial_port_count": [None] * 9 + ["2"],
}
COMPARED_IMAGE = {
    "hw_cpu_realtime_mask": [None, None, "^0", "^0-1", "0-3"],
    "hw_cpu_policy": [None, None, None, "dedicated", "shared"],
    "hw_cpu_thread_policy": [None, None, None, "prefer", "isolate", "require"],
    "hw_numa_nodes": [None, None, None, "2"],
    "hw_mem_page_size": [None, None, None, "2048", "1GB"],
    "hw_vif_multiqueue_enabled": [None, None, None, "true", "false"],
    "hw_pmu": [None, None, None, "true", "false"],
    "hw_virtio_packed_ring": [None, None, None, "true", "false"],
    "hw_locked_memory": [None, None, None, "true", "false"],
    "hw_cpu_max_sockets": [None] * 7 + ["1", "4"],
    "hw_cpu_sockets": [None] * 7 + ["2", "4"],
    "hw_serial_port_count": [None] * 7 + ["1", "3"],
}
IMAGE_VALUES = {
    "hw_cpu_policy": [None, None, None, "dedicated"],
    "hw_cpu_thread_policy": [None, None, None, "prefer"],
    "hw_numa_nodes": [None, None, None, "2"],
    "hw_mem_page_size": [None, None, None, "2048"],
}


def demand_of(resources):
    """Return Nova's ResourceRequest as explain has it."""
    return {
        group.requester_id or "": (
            dict(group.resources),
            set(group.required_traits),
            set(group.forbidden_traits),
        )
        for group in resources._rg_by_id.values()
        if group.resources or group.required_traits or group.forbidden_traits
    }


def ours(demand):
    return {
        group.suffix: (dict(group.resources), set(group.required), set(group.forbidden))
        for group in demand.groups
        if group.resources or group.required or group.forbidden
    }


def pair(flavor, image_props, *, is_bfv):
    """Return Nova's RequestSpec and what explain makes of the same."""
    spec = states.request_spec(
        flavor.name,
        flavor.vcpus,
        flavor.memory_mb,
        dict(flavor.extra_specs),
        image_props,
        is_bfv,
    )
    spec.flavor.root_gb = flavor.disk_gb
    return spec, request_for(flavor, Image("i", "i", image_props), volume_backed=is_bfv)


class SameAsNovaTest(testtools.TestCase):
    def assert_same(self, flavor, image_props, *, is_bfv):
        spec, request = pair(flavor, image_props, is_bfv=is_bfv)
        self.assertEqual(adapters.request_facts(spec), request.facts)
        of = scheduler_utils.ResourceRequest.from_request_spec
        translated = of(spec)
        self.assertEqual(demand_of(translated), ours(request.demand))
        self.assertEqual(translated.group_policy, request.demand.group_policy)
        self.assertEqual(translated.cpu_pinning_requested, request.fallback is not None)
        if request.fallback is not None:
            plain = of(spec, enable_pinning_translate=False)
            self.assertEqual(demand_of(plain), ours(request.fallback))

    def test_the_flavors_of_every_scheme(self):
        for placement in SCHEMES:
            policy = dataclasses.replace(POLICY, placement=placement)
            for flavor in Cloud(policy).flavors.values():
                for is_bfv in (True, False):
                    self.assert_same(flavor, {}, is_bfv=is_bfv)

    def test_random_flavors_and_images(self):
        rng = random.Random(7)
        same = refused = 0
        for _ in range(1200):
            specs, image_props = (
                {
                    key: value
                    for key, values in given.items()
                    if (value := rng.choice(values)) is not None
                }
                for given in (FLAVOR_VALUES, IMAGE_VALUES)
            )
            if "resources_a:CUSTOM_PERFVM_UNIT" in specs:
                specs["group_policy"] = rng.choice(["none", "isolate"])
            vcpus, memory_mb = rng.choice([(20, 65536), (4, 8192), (1, 2048), (7, 999)])
            flavor = Flavor("f", "f", vcpus, memory_mb, rng.choice([0, 40]), specs)
            is_bfv = rng.choice([True, False])
            try:
                self.assert_same(flavor, image_props, is_bfv=is_bfv)
            except exception.NovaException:
                # nova-api refuses it, so that no scheduler ever sees it.
                refused += 1
            else:
                same += 1
        self.assertGreater(same, 100)
        self.assertGreater(refused, 50)


MODELS = [
    model
    for model in ("amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx")
    if model in fields.MemEncryptionModel.ALL
]
# Values of each extra spec and image property; empty for none.
ENCRYPTION = {
    "hw:mem_encryption": ("", "true", "false"),
    "hw:mem_encryption_model": ("", *MODELS),
    "hw_mem_encryption": ("", "true"),
    "hw_mem_encryption_model": ("", "amd-sev-es"),
    "hw_firmware_type": ("", "uefi", "bios"),
    "hw_machine_type": ("", "pc-q35-8.2", "pc"),
    "hw_firmware_stateless": ("", "true", "false"),
    "hw_video_model": ("", "none"),
}


def drawn(rng, given):
    """Return some of the keys, each with one of its values."""
    found = {key: rng.choice(values) for key, values in given.items()}
    return {key: value for key, value in found.items() if value is not None}


def refused_by_nova(flavor, image_props):
    """Return the name of the exception with which nova-api refuses a flavor, or ""."""
    props = image_meta.ImageMetaProps.from_dict(image_props)
    image = objects.ImageMeta(name="i", properties=props)
    theirs = objects.Flavor(
        name="f",
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        extra_specs=dict(flavor.extra_specs),
    )
    try:
        # In the order in which nova.compute.api asks.
        hardware.get_packed_virtqueue_constraint(theirs, image)
        hardware.get_pmu_constraint(theirs, image)
        hardware.get_number_of_serial_ports(theirs, image)
        hardware.get_realtime_cpu_constraint(theirs, image)
        hardware.get_cpu_topology_constraints(theirs, image)
        hardware.get_vif_multiqueue_constraint(theirs, image)
        hardware.numa_get_constraints(theirs, image)
    except exception.NovaException as exc:
        return type(exc).__name__
    return ""


class RefusedTest(testtools.TestCase):
    def test_as_nova_api_compares_flavor_and_image(self):
        rng = random.Random(15)
        seen = set()
        for _ in range(6000):
            specs, image_props = drawn(rng, COMPARED), drawn(rng, COMPARED_IMAGE)
            flavor = Flavor("f", "f", rng.choice([1, 4]), 8192, 0, specs)
            refused = refused_by_nova(flavor, image_props)
            seen.add(refused)
            found = {name for name, _ in conflicts(flavor, image_props)}
            odd = "hw:numa_nodes" in specs or "hw_numa_nodes" in image_props
            if refused == "ImageNUMATopologyAsymmetric" and odd:
                found.add(refused)
            self.assertEqual(bool(refused), bool(found), (specs, image_props, found))
            self.assertIn(refused, found or {""}, (specs, image_props))
        self.assertEqual(
            {
                "",
                "BadRequirementEmulatorThreadsPolicy",
                "CPUThreadPolicyConfigurationInvalid",
                "FlavorImageConflict",
                "FlavorImageLockedMemoryConflict",
                "ImageCPUPinningForbidden",
                "ImageCPUThreadPolicyForbidden",
                "ImageNUMATopologyForbidden",
                "ImageSerialPortNumberExceedFlavorValue",
                "ImageVCPULimitsRangeExceeded",
                "ImageVCPUTopologyRangeExceeded",
                "InvalidRequest",
                "LockMemoryForbidden",
                "MemoryPageSizeForbidden",
                "RealtimeConfigurationInvalid",
                "RealtimeMaskNotFoundOrInvalid",
            },
            seen - {"ImageNUMATopologyAsymmetric"},
        )

    def test_as_nova_api_judges_encrypted_memory(self):
        counts = collections.Counter()
        for values in itertools.product(*ENCRYPTION.values()):
            given = {k: v for k, v in zip(ENCRYPTION, values, strict=True) if v}
            specs = {key: text for key, text in given.items() if ":" in key}
            image_props = {k: v for k, v in given.items() if k not in specs}
            flavor = Flavor("f", "f", 4, 8192, 0, specs)
            image = objects.ImageMeta(
                name="i", properties=image_meta.ImageMetaProps.from_dict(image_props)
            )
            theirs = objects.Flavor(name="f", extra_specs=dict(specs))
            try:
                hardware.get_mem_encryption_constraint(theirs, image)
                refused = ""
            except exception.NovaException as exc:
                refused = type(exc).__name__
            found = {name for name, _ in conflicts(flavor, image_props)}
            self.assertEqual(bool(refused), bool(found), (given, refused, found))
            self.assertIn(refused, found or {""}, given)
            counts[refused] += 1
        self.assertGreater(min(counts.values()), 5, counts)
        self.assertGreater(len(counts), 3, counts)

    def test_what_nova_api_refuses(self):
        for specs, props, said in (
            (
                {"hw:cpu_policy": "shared"},
                {"hw_cpu_policy": "dedicated"},
                (
                    "refuses flavor f with the image (ImageCPUPinningForbidden): "
                    "hw:cpu_policy=shared, hw_cpu_policy=dedicated of the image"
                ),
            ),
            (
                {"hw:vif_multiqueue_enabled": "true"},
                {"hw_vif_multiqueue_enabled": "false"},
                (
                    "(FlavorImageConflict): hw:vif_multiqueue_enabled=true, "
                    "hw_vif_multiqueue_enabled=false of the image"
                ),
            ),
            ({"hw:numa_nodes": "3"}, {}, "do not divide by 3"),
            ({"hw:numa_nodes": "two"}, {}, "'two' is no whole number"),
            ({}, {"hw_numa_nodes": "9" * 18}, "do not divide by 9999"),
            ({"hw:mem_page_size": "9" * 5000}, {}, "no page size"),
            ({"resources:X": "9" * 5000}, {}, "is no whole number"),
            (
                {"hw:cpu_policy": "mixed", "hw:cpu_realtime_mask": "0-3"},
                {},
                "the NUMA nodes that Nova makes of hw:cpu_policy=mixed are not known",
            ),
            ({}, {"hw_numa_mem.0": "1"}, "of hw:numa_mem.0 are not known"),
            ({"resources:X": "much"}, {}, "'much' is no whole number"),
        ):
            flavor = Flavor("f", "f", 20, 65536, 0, specs)
            error = self.assertRaises(
                RequestError, request_for, flavor, Image("i", "i", props)
            )
            self.assertIn(said, str(error))

        # Nova takes such a flavor, whose vCPUs no memory has room for.
        for vcpus in (2**31 - 1, cpuset.MAX_CPU + 2):
            flavor = Flavor("f", "f", vcpus, 65536, 0, {"hw:cpu_policy": "dedicated"})
            error = self.assertRaises(RequestError, request_for, flavor)
            self.assertIn("flavor f: more vCPUs than a host has CPUs", str(error))
        # CPUs are numbered from 0.
        flavor = Flavor("f", "f", cpuset.MAX_CPU + 1, 65536, 0, {})
        self.assertEqual(cpuset.MAX_CPU + 1, request_for(flavor).facts.vcpus)

    def test_what_is_not_looked_at_is_named(self):
        flavor = Flavor("f", "f", 2, 2048, 0, {"accel:device_profile": "gpu"})
        self.assertEqual(("accel:device_profile",), request_for(flavor).unseen)

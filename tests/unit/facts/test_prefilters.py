# SPDX-License-Identifier: Apache-2.0
"""What keys and image properties ask of Placement, beside Nova's own prefilters."""

import dataclasses

import testtools
from nova import context, exception, objects
from nova.conf import CONF
from nova.scheduler import request_filter
from nova.scheduler import utils as scheduler_utils
from oslo_config import fixture as config_fixture

from nova_perfvm.facts import prefilters
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import Flavor, Image
from tests.unit.facts.test_requests import demand_of, ours
from tests.unit.scheduler import states

RESOURCES = scheduler_utils.ResourceRequest
# Prefilters that are judged with hosts at hand: zones, aggregates, and traits that all
# requests ask for.
OF_HOSTS = frozenset(
    {
        *("require_tenant_aggregate", "map_az_to_placement_aggregate"),
        *("compute_status_filter", "isolate_aggregates", "owner_nova_filter"),
    }
)
# Ports alone tell what these ask for; a new server has none yet.
OF_PORTS = frozenset({"routed_networks_filter", "remote_managed_ports_filter"})
UEFI = {"hw_firmware_type": "uefi", "hw_machine_type": "q35"}
# What a flavor and an image of a cloud ask for, by what it is.
ROWS = {
    "nothing": ({}, {}),
    "packed ring": ({"hw:virtio_packed_ring": "true"}, {}),
    "packed ring of the image": ({}, {"hw_virtio_packed_ring": "true"}),
    "no packed ring": ({"hw:virtio_packed_ring": "false"}, {}),
    "sound": ({"hw:sound_model": "virtio"}, {}),
    "sound of another model": ({}, {"hw_sound_model": "ich9"}),
    "encrypted disk": ({"hw:ephemeral_encryption": "true"}, {}),
    "encrypted with LUKS": (
        {
            "hw:ephemeral_encryption": "true",
            "hw:ephemeral_encryption_format": "luks",
        },
        {},
    ),
    "LUKS, not switched on": ({"hw:ephemeral_encryption_format": "luks"}, {}),
    "accelerator": ({"accel:device_profile": "gpu"}, {}),
    "vTPM": ({"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb"}, {}),
    "old vTPM": ({}, {"hw_tpm_version": "1.2"}),
    "vTPM, secret of the host": (
        {"hw:tpm_version": "2.0", "hw:tpm_secret_security": "host"},
        {},
    ),
    "secure boot": ({"os:secure_boot": "required"}, {}),
    "secure boot of the image": ({}, {"os_secure_boot": "required"}),
    "secure boot if possible": ({"os:secure_boot": "optional"}, {}),
    "addresses passed through": ({"hw:maxphysaddr_mode": "passthrough"}, {}),
    "addresses emulated": ({}, {"hw_maxphysaddr_mode": "emulate"}),
    "stateless firmware": ({}, {**UEFI, "hw_firmware_stateless": "true"}),
    "stateless firmware without UEFI": ({}, {"hw_firmware_stateless": "true"}),
    "encrypted memory": ({"hw:mem_encryption": "true"}, UEFI),
    "encrypted memory of the image": ({}, {**UEFI, "hw_mem_encryption": "true"}),
    "encrypted memory, SEV-ES": (
        {"hw:mem_encryption": "true", "hw:mem_encryption_model": "amd-sev-es"},
        UEFI,
    ),
    "PCI devices of the socket": ({"hw:pci_numa_affinity_policy": "socket"}, {}),
    "persistent memory": ({"hw:pmem": "6GB, big-one,6GB"}, {}),
    "devices of an image": (
        {},
        {
            "hw_disk_bus": "scsi",
            "hw_cdrom_bus": "sata",
            "hw_video_model": "qxl",
            "hw_vif_model": "virtio",
            "architecture": "x86_64",
        },
    ),
    "devices by other names": (
        {},
        {
            "vmware_adaptertype": "ide",
            "hw_vif_model": "VIRTIO",
            "architecture": "amd64",
        },
    ),
    "emulated architecture": ({}, {"hw_emulation_architecture": "aarch64"}),
    "IOMMU, of which no trait has the name": (
        {},
        {"hw_viommu_model": "intel", "hw_disk_bus": "scsi"},
    ),
    "traits of both": (
        {"trait:HW_CPU_X86_AVX2": "required", "trait:CUSTOM_OLD": "forbidden"},
        {"trait:CUSTOM_FAST": "required"},
    ),
    "threads by a trait": (
        {"hw:cpu_policy": "dedicated", "trait:HW_CPU_HYPERTHREADING": "required"},
        {},
    ),
}
# Nova 31 takes no such image.
REFUSED_BEFORE = {"stateless firmware without UEFI"}
OPTIONS = {
    "by default": {},
    "images by their properties": {"image_metadata_prefilter": True},
    "images by their format": {"query_placement_for_image_type_support": True},
}


def as_nova(properties):
    """Return properties as Nova makes them of what Glance has."""
    required = [k.removeprefix("trait:") for k in properties if k.startswith("trait:")]
    plain = {k: v for k, v in properties.items() if not k.startswith("trait:")}
    found = objects.ImageMetaProps.from_dict(plain)
    if required:
        found.traits_required = required
    return found


class AsNovaTest(testtools.TestCase):
    def test_every_prefilter_is_judged_or_named(self):
        names = {found.__name__ for found in request_filter.ALL_REQUEST_FILTERS}
        known = prefilters.PREFILTERS.keys() | OF_HOSTS | OF_PORTS
        self.assertEqual(set(), names - known)
        self.assertEqual(set(prefilters.SINCE), prefilters.SINCE.keys() & known)

    def test_traits_and_resources(self):
        settings = self.useFixture(config_fixture.Config(CONF))
        there = {found.__name__ for found in request_filter.ALL_REQUEST_FILTERS}
        asked = set()
        for option, values in OPTIONS.items():
            for name in OPTIONS["images by their properties"] | {
                "query_placement_for_image_type_support": False
            }:
                settings.config(group="scheduler", **{name: values.get(name, False)})
            told = {("scheduler", key): str(value) for key, value in values.items()}
            for row, (specs, properties) in ROWS.items():
                for booted in ("image", "volume"):
                    is_bfv = booted == "volume"
                    theirs = as_nova(properties).obj_to_primitive()
                    props = theirs["nova_object.data"]
                    spec = states.request_spec("f", 4, 4096, specs, props, is_bfv)
                    spec.image.disk_format = "qcow2"
                    for name in prefilters.PREFILTERS.keys() & there:
                        prefilter = getattr(request_filter, name)
                        prefilter(context.get_admin_context(), spec)
                    flavor = Flavor("f", "f", 4, 4096, 0, specs)
                    image = Image("i", "i", properties, disk_format="qcow2")
                    request = request_for(flavor, image, volume_backed=is_bfv)
                    found = prefilters.root_traits(request.keys, told)
                    new = tuple(
                        prefix
                        for name, prefix in prefilters.SINCE.items()
                        if name not in there
                    )
                    self.assertEqual(
                        set(spec.root_required),
                        {t for t in found if not t.startswith(new or "-")},
                    )
                    if not told:
                        self.assertEqual(found, request.demand.root_required)
                    try:
                        theirs = demand_of(RESOURCES.from_request_spec(spec))
                    except exception.Invalid:
                        self.assertIn(row, REFUSED_BEFORE)
                        continue
                    mine = ours(request.demand)
                    if not hasattr(RESOURCES, "_translate_mem_encryption_request"):
                        mine[""][1].difference_update(prefilters.MEMORY.values())
                    self.assertEqual(theirs, mine, option)
                    asked |= found
        self.assertGreater(len(asked), 12, asked)

    def test_ephemeral_and_swap_disks(self):
        for root_gb, other_gb, is_bfv in ((20, 7, False), (20, 7, True), (0, 0, True)):
            spec = states.request_spec("f", 1, 512, {}, {}, is_bfv)
            spec.flavor.root_gb = root_gb
            # 5 GiB, and 1.5 of swap.
            spec.flavor.ephemeral_gb = 5 if other_gb else 0
            spec.flavor.swap = 1536 if other_gb else 0
            of = RESOURCES.from_request_spec
            flavor = Flavor("f", "f", 1, 512, root_gb, {}, other_gb)
            request = request_for(flavor, volume_backed=is_bfv)
            self.assertEqual(demand_of(of(spec)), ours(request.demand))


class RefusedTest(testtools.TestCase):
    def test_flavor_and_image_that_differ(self):
        for key, values in {
            "hw:tpm_version": ("2.0", "1.2"),
            "hw:sound_model": ("virtio", "ich9"),
            "os:secure_boot": ("required", "disabled"),
            "hw:mem_encryption": ("true", "false"),
            "hw:ephemeral_encryption": ("true", "false"),
        }.items():
            flavor = Flavor("f", "f", 2, 2048, 0, {key: values[0]})
            props = {**UEFI, key.replace(":", "_"): values[1]}
            image = Image("i", "i", props)
            error = self.assertRaises(RequestError, request_for, flavor, image)
            self.assertIn("(FlavorImageConflict)", str(error))
            props = {**props, key.replace(":", "_"): values[0]}
            request_for(flavor, dataclasses.replace(image, properties=props))

# SPDX-License-Identifier: Apache-2.0
"""Bugs of Nova, provoked in the Nova that is installed: it has those listed for it."""

from unittest import mock

import os_vif
import testtools
from lxml import etree
from nova import objects
from nova import version as nova_version
from nova.network import model as network_model
from nova.virt.libvirt import migration
from nova.virt.libvirt import vif as libvirt_vif

from nova_perfvm.known_bugs import Release, of_release

# What Nova 32 writes for a VM that is pinned: no iothreadpin.
_STARTED_BEFORE = """
<domain>
  <cputune>
    <vcpupin vcpu="0" cpuset="4"/>
    <emulatorpin cpuset="4"/>
  </cputune>
  <numatune>
    <memory mode="strict" nodeset="1"/>
    <memnode cellid="0" mode="strict" nodeset="1"/>
  </numatune>
</domain>
"""


class KnownBugsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()
        found = of_release(Release.parse(nova_version.version_string()))
        self.listed = {bug.number for bug in found}

    def test_a_pinned_vm_from_before_2026_1_is_migrated_live(self):
        info = objects.LibvirtLiveMigrateNUMAInfo(
            cpu_pins={"0": {2}}, cell_pins={"0": {0}}, emulator_pins={2}
        )
        data = objects.LibvirtLiveMigrateData(dst_numa_info=info)
        xml = etree.fromstring(_STARTED_BEFORE)
        if 2152697 in self.listed:
            with testtools.ExpectedException(AttributeError, ".*NoneType.*"):
                migration._update_numa_xml(xml, data)
        else:
            after = migration._update_numa_xml(xml, data)
            self.assertEqual("2", after.find("./cputune/vcpupin").get("cpuset"))

    def test_queues_of_a_tap_and_of_the_xml(self):
        os_vif.initialize()
        flavor = objects.Flavor(
            vcpus=2, extra_specs={"hw:vif_multiqueue_enabled": "true"}
        )
        image = objects.ImageMeta.from_dict({})
        uuid = "8f1a7c52-0e0b-4d53-9f5c-0b5b3a1f7d10"
        instance = objects.Instance(
            id=1,
            uuid=uuid,
            flavor=flavor,
            project_id="p",
            display_name="vm",
            vm_state="active",
        )
        network = network_model.Network(id=uuid, bridge="br-int", subnets=[])
        vif = network_model.VIF(
            id=uuid,
            address="fa:16:3e:00:00:01",
            network=network,
            type=network_model.VIF_TYPE_OVS,
            details={"ovs_create_tap": True},
            devname="tap8f1a7c52-0e",
        )
        driver = libvirt_vif.LibvirtGenericVIFDriver()
        queues, managed = {}, set()
        for virt_type in ("qemu", "kvm"):
            made = driver.get_config(instance, vif, image, flavor, virt_type)
            queues[virt_type] = made.vhost_queues
            managed.add(getattr(made, "managed", None))
        self.assertEqual({"qemu": None, "kvm": 2}, queues)
        has_image = mock.patch.object(
            objects.Instance, "image_meta", new=image, create=True
        )
        with has_image, mock.patch.object(os_vif, "plug") as plug:
            driver.plug(instance, vif)
        profile = plug.call_args[0][0].port_profile
        # Such a tap is made for several queues, and libvirt opens it as it is.
        several = "multiqueue" in profile and profile.multiqueue
        listed = 2069718 in self.listed
        self.assertEqual((listed, listed), (several, managed == {"no"}))

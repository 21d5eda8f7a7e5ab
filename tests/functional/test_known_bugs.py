# SPDX-License-Identifier: Apache-2.0
"""Bugs of Nova, provoked in the Nova that is installed: it has those listed for it."""

import testtools
from lxml import etree
from nova import objects
from nova import version as nova_version
from nova.virt.libvirt import migration

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

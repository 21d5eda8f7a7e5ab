# SPDX-License-Identifier: Apache-2.0
"""Image properties, beside those that Nova's ImageMetaProps makes of the same texts."""

import fixtures
import testtools
from nova import objects
from nova.objects import fields as nova_fields

from nova_perfvm.facts import image_properties

# Booleans, numbers and synonyms; values of enumerations are added to them.
TEXTS = (
    *("true", "False", "yes", "no", "1", "0", "02", " 3 ", "3.5", "x", "X", ""),
    *("amd64", "AMD64", "i386", "I486", "i586", "x86_32", "x86_32p", "Aarch64"),
    *("xapi", "KVM", "qemu", "pv", "HV", "baremetal", "Xen", "Windows", "linux"),
    *("lsilogicsas", "ParaVirtual", "virtio-scsi", "VIRTIO", "ide", "uefi", ">=8.0"),
    *nova_fields.VIFModel.LEGACY_VALUES,
)


class AsNovaTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()
        # Of texts that are no UUIDs.
        ignored = {"action": "ignore", "category": FutureWarning}
        self.useFixture(fixtures.WarningsFilter([ignored]))
        self.made = objects.ImageMetaProps
        self.lists = {
            name
            for name, field in self.made.fields.items()
            if isinstance(field.AUTO_TYPE, nova_fields.List)
        }

    def test_each_property(self):
        strangers = {"hw_gpu", "os_version", "img_x", "hw_pmux", "xhw_pmu", "mine"}
        self.assertEqual(5, len(self.lists))
        for name in self.made.fields.keys() - self.lists:
            taken, allowed = 0, getattr(self.made.fields[name], "valid_values", ())
            for text in (*TEXTS, *allowed):
                try:
                    theirs = self.made.from_dict({name: text}).get(name)
                except ValueError:
                    # nova-api refuses such an image.
                    continue
                ours = image_properties.typed(name, text)
                self.assertEqual((type(theirs), theirs), (type(ours), ours))
                taken += 1
            self.assertLess(0, taken)
        for name in self.lists | strangers:
            self.assertIsNone(image_properties.typed(name, "x"))

    def test_names(self):
        expected = self.made._legacy_property_map.items()
        expected = {old: new for old, new in expected if new not in self.lists}
        self.assertEqual(expected, image_properties.legacy())
        for found in (
            {"vmware_adaptertype": "ide"},
            {"vmware_adaptertype": "lsilogic"},
            {"vmware_adaptertype": "lsilogic", "hw_disk_bus": "virtio"},
            {"vmware_adaptertype": ""},
            {"architecture": "i686", "hw_architecture": "x86_64"},
        ):
            theirs = self.made.from_dict(found)
            ours = image_properties.novas(found)
            for name in ("hw_disk_bus", "hw_scsi_model", "hw_architecture"):
                self.assertEqual(theirs.get(name), ours.get(name))

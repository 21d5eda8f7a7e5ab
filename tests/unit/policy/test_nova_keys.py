# SPDX-License-Identifier: Apache-2.0
"""The table of Nova's keys, beside the Nova that is installed."""

import pathlib
import sys
from unittest import mock

import fixtures
import testtools
from nova import exception
from nova.api.validation.extra_specs import validators
from nova.objects.image_meta import ImageMetaProps

from nova_perfvm.cloud import nova_rules
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.osc.base import read_policy
from nova_perfvm.policy import loader, nova_keys
from tests import nova_keys as made

# The table is of this Nova, and the first that the project supports is 31.
TABLE_OF = 34
POLICY = """
schema_version: "1.0"
classes:
  c:
    default: true
    extra_specs: {%s}
    image_properties: {%s}
"""
# (extra specs, image properties, the mistake or nothing)
CASES = (
    ("hw:watchdog_action", "reset", ""),
    ("hw:watchdog_action", "explode", "expected one of"),
    ("hw:wachdog_action", "reset", "Nova has no extra spec"),
    ("hw:numa_cpus.7x", "1", "Nova has no extra spec"),
    ("quota:vif_inbound_average", "7", ""),
    ("quota:vif_inbound_average", "many", "expected a whole number"),
    ("hw:serial_port_count", "-1", "from 0 to any"),
    ("hw:redirected_usb_ports", "99", "from 0 to 15"),
    ("pci_passthrough:alias", "a", "expected the form"),
    ("accounting:code", "7", ""),
    ("trait:HW_CPU_X86_AVX", "required", ""),
    ("trait1:HW_CPU_X86_AVX", "wanted", "expected one of"),
    ("trait:HW_CPU_X86_AVVX", "required", "Nova has no extra spec"),
    ("resources:VGPU", "1", ""),
    ("resources:VGPU", "one", "expected a whole number"),
    ("resources:CUSTOM_GPU", "1", ""),
    ("resources:GPU", "1", "Nova has no extra spec"),
    ("trait:", "required", "Nova has no extra spec"),
    ("capabilities:hypervisor_type", "QEMU", ""),
    ("capabilities:cpu_info:arch", "x86_64", ""),
    ("capabilities:cpu_arch", "x86_64", "Nova has no extra spec"),
    ("aggregate_instance_extra_specs:", "1", "Nova has no extra spec"),
)
OF_IMAGES = (
    ("hw_watchdog_action", "reset", ""),
    ("hw_watchdog_action", "explode", "expected one of"),
    ("hw_boot_menu", "perhaps", "expected true or false"),
    ("hw_video_ram", "much", "expected a whole number"),
    ("my_own", "1", "Nova reads no such image property"),
    ("img_hv_requested_version", ">=2.6, <4", ""),
    ("img_hv_requested_version", "new", "expected versions, such as >=2.6"),
    # Nova has these of other names.
    ("hw_numa_cpus", "0-1", "Nova reads no such image property"),
    ("traits_required", "HW_CPU_X86_AVX", "Nova reads no such image property"),
    ("img_mappings", "a", "Nova reads no such image property"),
    ("architecture", "x86_64", "Nova reads it as hw_architecture: write that"),
    ("hypervisor_type", "wrong", "Nova reads it as img_hv_type: write that"),
    ("trait:HW_CPU_X86_AVX", "required", ""),
    ("trait:HW_CPU_X86_AVX", "forbidden", "expected one of required"),
)


class TableTest(testtools.TestCase):
    def test_it_is_the_installed_novas(self):
        """As ``python -m tests.nova_keys`` makes it."""
        release = made.release()
        for kind, keys in made.derived().items():
            listed = {
                name: {what: told for what, told in takes.items() if what != "since"}
                for name, takes in nova_keys.table()[kind].items()
                if takes.get("since", 0) <= release
            }
            if release == TABLE_OF:
                self.assertEqual(keys, listed)
            # Other releases take other values for some keys.
            self.assertEqual(sorted(keys), sorted(listed))


class MistakesTest(testtools.TestCase):
    def found(self, specs, properties):
        policy = loader.parse(POLICY % (specs, properties))
        return [str(mistake) for mistake in nova_rules.key_mistakes(policy)]

    def both(self, specs="", properties=""):
        """Return the mistakes that Nova says, and those that the table says."""
        with mock.patch.dict(sys.modules, {"nova": None}):
            listed = self.found(specs, properties)
        return self.found(specs, properties), listed

    def test_extra_specs(self):
        for key, value, words in CASES:
            for found in self.both(f'"{key}": "{value}"'):
                self.assertEqual(bool(words), bool(found), found)
                self.assertIn(words, "".join(found))
            try:
                validators.validate(key, value)
                refused = False
            except exception.ValidationError:
                refused = True
            self.assertEqual(bool(words), refused)

    def test_image_properties(self):
        for key, value, words in OF_IMAGES:
            for found in self.both("", f'"{key}": "{value}"'):
                self.assertEqual(bool(words), bool(found), found)
                self.assertIn(words, "".join(found))

    def test_every_legacy_name_of_an_image_property(self):
        """Nova makes lists of the others."""
        lists = {"mappings": "img_mappings"}
        lists["block_device_mapping"] = "img_block_device_mapping"
        for key, name in ImageMetaProps._legacy_property_map.items():
            said = nova_keys.fault("image_properties", key, "1")
            renamed = said == f"Nova reads it as {name}: write that"
            self.assertEqual(lists.get(key) != name, renamed, said)

    def test_commands_read_no_such_policy(self):
        path = self.useFixture(fixtures.TempDir()).join("perfvm.yaml")
        pathlib.Path(path).write_text(POLICY % ('"hw:wachdog": "reset"', ""))
        error = self.assertRaises(DocumentError, read_policy, path)
        self.assertIn("line 6: classes.c.extra_specs.hw:wachdog", str(error))

    def test_an_older_nova(self):
        """Its refusal names the first Nova that has the key."""
        one = validators.VALIDATORS.pop("hw:tpm_secret_security")
        self.addCleanup(validators.VALIDATORS.__setitem__, one.name, one)
        (found,) = self.found('"hw:tpm_secret_security": "host"', "")
        self.assertIn("Nova has it from 33 on", found)

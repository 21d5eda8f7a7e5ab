# SPDX-License-Identifier: Apache-2.0
"""Each key of flavors and images that Nova knows is judged, named, or none of placing.

A key that a new Nova brings fails here, until somebody has looked who reads it.
"""

import pathlib
import re

import testtools
from nova.api.validation.extra_specs import validators
from nova.objects import image_meta

import nova_perfvm

ROOT = pathlib.Path(nova_perfvm.__file__).parent
# Where the keys of a request are read.
READERS = ("constants.py", "facts", "diagnose/nova_filters")
# It has the synonyms of values of properties, read or not.
ALL_PROPERTIES = "image_properties.py"

# Of whole namespaces: nova-compute and QEMU read them, and no filter does.
NOT_OF_PLACING = re.compile(
    "hide_hypervisor_id|hw_rng:.*|hw_video:.*|quota:.*|vmware:.*|img_.*|os_(?!secure).*"
)
# Drivers alone read these, when the VM has its host; of devices the models of which are
# traits only under [scheduler]image_metadata_prefilter see prefilters.py.
OF_DRIVERS = {
    *("hw:boot_menu", "hw:hide_hypervisor_id", "hw:redirected_usb_ports"),
    *("hw:usb_model", "hw:watchdog_action", "hw_auto_disk_config", "hw_device_id"),
    "hw_disk_type",
    *("hw_ephemeral_encryption_secret_uuid", "hw_floppy_bus", "hw_input_bus"),
    *("hw_ipxe_boot", "hw_pointer_model", "hw_qemu_guest_agent", "hw_rescue_bus"),
    *("hw_rescue_device", "hw_rng_model", "hw_scsi_model", "hw_time_hpet"),
    *("hw_video_ram",),
    # A trait of the same name is asked for by nobody: ResourceRequest has none.
    "hw:viommu_model",
}
# Judged as a kind, each by its namespace.
BY_NAMESPACE = re.compile(
    "aggregate_instance_extra_specs:.*|capabilities:.*|perfvm:.*|resources.*|trait.*"
)


def read_by_us():
    """Return all that the readers of keys say."""
    files = [
        path
        for name in READERS
        for path in ([ROOT / name] if name.endswith(".py") else (ROOT / name).glob("*"))
        if path.suffix == ".py" and path.name != ALL_PROPERTIES
    ]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


class KeysTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.text = read_by_us()

    def unknown(self, names):
        """Return the keys that nobody reads, and of which nobody said why."""
        return {
            name
            for name in names
            if not {name, name.replace("hw_", "hw:", 1)} & OF_DRIVERS
            and not NOT_OF_PLACING.fullmatch(name)
            and not BY_NAMESPACE.fullmatch(name)
            and not self.said(name)
        }

    def said(self, name):
        # The sockets, cores and threads of a topology are read by one name each.
        topology = re.sub("(sockets|cores|threads)$", "{part}", name)
        names = {name, topology} | {
            one.replace("hw_", "hw:", 1).replace("os_", "os:", 1)
            for one in (name, topology)
        }
        return any(f'"{one}"' in self.text for one in names)

    def test_every_extra_spec(self):
        validators.load_validators()
        names = {
            re.sub(r"\{num\}", "0", found.name)
            for found in validators.VALIDATORS.values()
        }
        self.assertGreater(len(names), 300)
        self.assertEqual(set(), self.unknown(names))

    def test_every_image_property(self):
        names = {
            {"hw_numa_cpus": "hw_numa_cpus.0", "hw_numa_mem": "hw_numa_mem.0"}.get(k, k)
            for k in image_meta.ImageMetaProps.fields
        }
        self.assertGreater(len(names), 60)
        self.assertEqual(set(), self.unknown(names) - {"traits_required"})

    def test_a_key_that_nobody_has_looked_at(self):
        new = {"hw:new", "hw_new", "os_secure_new"}
        self.assertEqual(new, self.unknown({*new, "hw:cpu_policy", "hw_disk_bus"}))

    def test_nothing_is_listed_in_vain(self):
        for name in OF_DRIVERS - {"hw:viommu_model"}:
            self.assertFalse(self.said(name), name)

# SPDX-License-Identifier: Apache-2.0
"""Servers of a class whose root disks are volumes, in a sandbox with Cinder."""

from tests.processes import waiting
from tests.sandbox import base
from tests.sandbox.base import HP

# That of the built-in policy.
TYPE = "nvme-tcp"


class VolumesMixin:
    """For tests of :class:`tests.sandbox.base.SandboxTest`."""

    OPTIONS = {"volumes": True}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.cinder = self.sandbox.connect().block_storage
        if self.cinder.find_type(TYPE) is None:
            self.openstack("volume", "type", "create", TYPE)

    def request(self, flavor):
        asked = super().request(flavor)
        if flavor == HP:
            disk = {"boot_index": 0, "uuid": asked.pop("imageRef"), "volume_size": 1}
            disk |= {"source_type": "image", "destination_type": "volume"}
            disk |= {"volume_type": TYPE, "delete_on_termination": True}
            asked["block_device_mapping_v2"] = [disk]
        return asked

    def delete_all(self):
        super().delete_all()
        waiting.until(lambda: not self.types(), "volumes to go", base.SECONDS)

    def types(self):
        """Return the types of all volumes."""
        return [volume.volume_type for volume in self.cinder.volumes()]

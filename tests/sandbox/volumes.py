# SPDX-License-Identifier: Apache-2.0
"""Servers of a class whose root disks are volumes, in a sandbox with Cinder."""

from nova_perfvm.sandbox.processes import content, waiting
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

    def test_a_root_volume_comes_and_goes_with_its_server(self):
        image = self.sandbox.connect().image.find_image(content.IMAGE).id
        disk = f"source_type=image,uuid={image},destination_type=volume,boot_index=0"
        disk += f",volume_size=1,volume_type={TYPE},delete_on_termination=true"
        made = self.openstack(
            *("server", "create", "--flavor", HP, "--block-device", disk),
            *("--network", content.NETWORK, "--wait", "on-a-volume"),
        )
        self.servers.append(made["id"])
        self.assertEqual("ACTIVE", made["status"])
        self.assert_high_performance(self.show(made["id"]))
        (volume,) = self.cinder.volumes()
        self.assertEqual((TYPE, "in-use"), (volume.volume_type, volume.status))
        (attachment,) = volume.attachments
        self.assertEqual(made["id"], attachment["server_id"])

        self.delete_all()

    def test_a_server_of_an_image_is_refused(self):
        self.request = super().request
        self.boot_refused(HP)
        logs = self.sandbox.layout.logs.glob("nova-scheduler-*.log")
        self.assertIn(
            "request.not_volume_backed", "".join(log.read_text() for log in logs)
        )

# SPDX-License-Identifier: Apache-2.0
"""Root disks as a real Nova shows them, and what the audit makes of them."""

import uuid

from nova.tests.functional.api.client import OpenStackApiException

from nova_perfvm.generate.flavors import generate_flavors
from tests.functional import base
from tests.functional.test_audit import AuditMixin


class TestRootDisks(AuditMixin, base.FunctionalTest):
    """Nova shows the image also of a server whose root disk is a volume."""

    PLACEMENT = "slots"

    def test_volumes_and_images(self):
        self.cloud.start_configured("hp1", self.policy, "dedicated", memory_gb=500)
        self.cloud.start_configured("hp2", self.policy, "dedicated", memory_gb=500)
        original = self.boot(host="hp1")
        snapshot = self.cloud.api.post_server_action(
            original.id, {"createImage": {"name": "snapshot"}}
        )
        # The filter knows better than the API shows.
        of_snapshot = self.boot(image=snapshot["image_id"], from_volume=False)
        both = self.boot(properties={"imageRef": self.cloud.image})
        for server in (of_snapshot, both):
            self.assertTrue(self.cloud.api.get_server(server.id)["image"])
        self.assertEqual((0, []), self.audit())

        (flavor,) = (f for f in generate_flavors(self.policy) if f.name == base.HP_64)
        specs = dict(flavor.extra_specs)
        self.cloud.create_flavor("local", flavor.vcpus, flavor.memory_mb, 20, specs)
        local = self.boot("local", from_volume=False, az="nova:hp2")
        volume = {"volumeAttachment": {"volumeId": str(uuid.uuid4())}}
        self.cloud.api.api_post(f"/servers/{local.id}/os-volume_attachments", volume)
        self.assertEqual(
            (1, [("audit.not_of_class", f"{local.name} ({local.id})")]), self.audit()
        )

        # Nova refuses a resize, so the remedy is another server.
        resize = {"resize": {"flavorRef": base.HP_64}}
        (row,) = [row for row in self.rows if row["Code"] == "audit.not_of_class"]
        self.assertIn(f"--flavor {base.HP_64} --image IMAGE --boot-from", row["Remedy"])
        self.assertNotIn("server resize", row["Remedy"])
        failed = self.assertRaises(
            OpenStackApiException, self.cloud.api.post_server_action, local.id, resize
        )
        self.assertIn("Resize to zero disk flavor is not allowed", str(failed))
        self.servers.delete(local)
        self.boot(host="hp2")
        self.assertEqual((0, []), self.audit())

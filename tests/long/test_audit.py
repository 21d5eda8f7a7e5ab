# SPDX-License-Identifier: Apache-2.0
"""Violations that unit tests of the audit's checks have, in a real Nova."""

import pathlib
import uuid

import fixtures

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.cloud import answers
from nova_perfvm.sandbox.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base
from tests.functional.elastic import ElasticTest
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

        local = self.boot(from_volume=False, az="nova:hp2")
        volume = {"volumeAttachment": {"volumeId": str(uuid.uuid4())}}
        self.cloud.api.api_post(f"/servers/{local.id}/os-volume_attachments", volume)
        self.assertEqual(
            (1, [("audit.not_of_class", f"{local.name} ({local.id})")]), self.audit()
        )


class TestUnits(AuditMixin, ElasticTest):
    def test_elastic_hosts(self):
        for host in ("h1", "h2"):
            self.cloud.start_host(host)
            self.enroll(host)
        self.boot(host="h1")
        self.boot(base.GENERAL_2, host="h2")
        self.assertEqual((0, []), self.audit())

        view = self.view("h1")
        self.put(view.root, "aggregates", aggregates=[])
        self.put(view.children[0], "traits", traits=[])

        status, found = self.audit()
        self.assertEqual(2, status)
        self.assertLessEqual(
            {(codes.HOST_NOT_ISOLATED, "h1"), (codes.CHILDREN_DIFFER, "h1")},
            set(found),
        )

    def test_a_server_with_the_units_of_another_class(self):
        """One that holds a child whole leaves the other to high-performance VMs."""
        self.cloud.start_host("h1")
        self.enroll("h1")
        server = self.boot(base.GENERAL_2)
        self.assertEqual((0, []), self.audit())

        first, second = sorted(self.view("h1").children, key=lambda c: c.name)
        body = answers.allocation(self.api, server.id)
        body["allocations"][first.uuid]["resources"][const.RC_UNIT] = 1000
        del body["allocations"][second.uuid]
        self.api.placement("PUT", f"/allocations/{server.id}", body)

        name = f"{server.name} ({server.id})"
        self.assertEqual((1, [(codes.CLAIMED_TOO_MUCH, name)]), self.audit())
        # Placement does not keep them apart any more, only the filter does.
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        self.assertEqual("h1", self.boot().host)
        status, found = self.audit()
        self.assertEqual(2, status)
        self.assertIn((codes.CLASSES_MIXED, "h1"), found)

    def test_servers_without_units_on_a_host_that_is_not_enrolled(self):
        """As rollback leaves them, or a compute service that was deleted."""
        self.cloud.start_host("h1")
        self.enroll("h1")
        server = self.boot()
        self.assertEqual((0, []), self.audit())

        self.unenroll("h1", strip=True)

        expected = (2, [(codes.NOT_CLAIMED, f"{server.name} ({server.id})")])
        path = str(pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "file")
        for delete in (False, True):
            if delete:
                self.cloud.api.delete_flavor(base.HP_64)
            self.assertEqual(0, self.run_command("snapshot", "save", path)[0])
            for options in ((), ("--snapshot", path)):
                with self.subTest(flavor_deleted=delete, options=options):
                    self.assertEqual(expected, self.audit(*options))

        # What the remedy says.
        self.enroll("h1", backfill=True)
        self.assertEqual((0, []), self.audit())

# SPDX-License-Identifier: Apache-2.0
"""Hosts made elastic while VMs without units run on them."""

import fixtures

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import Allocate
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.errors import CloudError, RefusedError
from nova_perfvm.facts.snapshot import DISABLED_REASON
from tests.functional import base
from tests.functional.elastic import APPLIER, PLAIN_GENERAL, PLAIN_HP, ElasticTest


class BackfillCase(ElasticTest):
    def setUp(self):
        super().setUp()
        self.create_plain_flavors()
        self.cloud.start_host("h1")

    def backfill(self, **options):
        return self.enroll("h1", backfill=True, **options)


class TestBackfill(BackfillCase):
    def test_high_performance_vms(self):
        first, second = self.boot_before(PLAIN_HP), self.boot_before(PLAIN_HP)
        before = [self.allocations(server) for server in (first, second)]

        exc = self.assertRaises(RefusedError, self.enroll, "h1")
        self.assertIn(first.name, str(exc))
        self.assertIn("--backfill", str(exc))
        self.assert_ordinary("h1")

        self.backfill()

        self.assert_elastic("h1")
        self.assertEqual({"a": [1000], "b": [1000]}, self.units("h1"))
        for server, had in zip((first, second), before, strict=True):
            has = self.allocations(server)
            self.assertEqual(had, {"h1": has.pop("h1")})
            self.assertEqual([{const.RC_UNIT: 1000}], list(has.values()))
        self.boot_refused(base.GENERAL_2)
        self.servers.delete(first)
        self.servers.delete(second)
        self.assertEqual({"a": [], "b": []}, self.units("h1"))
        self.boot(base.GENERAL_2)

    def test_general_vms(self):
        """A run that fails leaves the host closed, and the service as it was."""
        self.boot(PLAIN_GENERAL)
        server = self.boot(PLAIN_GENERAL)
        original = Applier.apply

        def apply(applier, change):
            if isinstance(change, Allocate):
                self.assertEqual(("disabled", DISABLED_REASON), self.service("h1"))
                raise CloudError("Placement is gone")
            original(applier, change)

        with fixtures.MonkeyPatch(f"{APPLIER}.apply", apply):
            self.assertRaises(CloudError, self.backfill)

        self.assertEqual(("enabled", None), self.service("h1"))
        self.boot_refused()
        self.boot_refused(PLAIN_GENERAL)
        off = {"status": "disabled", "disabled_reason": "a fan is broken"}
        self._set_service(off)
        self.backfill()
        self.assertEqual(tuple(off.values()), self.service("h1"))
        self._set_service({"status": "enabled"})

        self.assert_elastic("h1")
        self.assertEqual({"a": [1, 1], "b": [1, 1]}, self.units("h1"))
        self.boot_refused()
        self.boot(base.GENERAL_2)
        # It runs as before, and is stopped, started and deleted as ever.
        self.servers.delete(server)
        self.assertEqual({"a": [1, 1], "b": [1, 1]}, self.units("h1"))

    def _set_service(self, body):
        number = self.view("h1").compute.service
        self.api.nova("PUT", f"/os-services/{number}", body)

# SPDX-License-Identifier: Apache-2.0
"""Hosts made elastic while VMs without units run on them."""

import fixtures

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import Allocate
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.errors import CloudError, RefusedError
from nova_perfvm.facts.snapshot import DISABLED_REASON
from nova_perfvm.sandbox.embedded import FILTERS_WITHOUT_PERFVM
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

    def test_what_cannot_be(self):
        self.cloud.create_flavor("pinned-4", 4, 4096, 0, base.PINNED)
        with_filter = (PLAIN_HP, PLAIN_GENERAL)
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        for flavors, words in (
            (with_filter, "move the others away"),
            (("pinned-4",), "is not as VMs of a class of the policy are"),
        ):
            with self.subTest(words):
                servers = [self.boot(flavor) for flavor in flavors]

                exc = self.assertRaises(RefusedError, self.backfill)

                self.assertIn(words, str(exc))
                for server in servers:
                    self.assertIn(server.name, str(exc))
                self.assert_ordinary("h1")
                for server in servers:
                    self.servers.delete(server)

        # Nor what is in the middle of a move.
        self.cloud.start_host("h2")
        server = self.boot(PLAIN_GENERAL, host="h1")
        self.servers.cold_migrate(server, "h2")

        for host in ("h1", "h2"):
            exc = self.assertRaises(RefusedError, self.enroll, host, backfill=True)
            self.assertIn("confirm or revert it", str(exc))
            self.assert_ordinary(host)

    def test_vms_that_have_no_units(self):
        """However it comes: the host closes until they are given some."""
        original, slipped = Applier.apply, []

        def apply(applier, change):
            original(applier, change)
            if getattr(change, "opens", False):
                # As on a request that was under way when the host was isolated.
                slipped.append(self.boot(base.GENERAL_2))
                self._lose_units(slipped[0])

        with fixtures.MonkeyPatch(f"{APPLIER}.apply", apply):
            self.assertRaises(RefusedError, self.enroll, "h1")
        self.assertFalse(self.view("h1").enrolled)
        self.boot_refused()
        self.boot_refused(PLAIN_GENERAL)
        self.backfill()
        self.assert_elastic("h1")

        # As by a forced move.
        (server,) = slipped
        self._lose_units(server)
        self.assertEqual({"a": [], "b": []}, self.units("h1"))
        self._assert_given_back(server, {"a": [1], "b": [1]})
        # As when a conductor dies between noting a VM active and saying so.
        self._lose_all(server, {"a": [1], "b": [1]})
        self._lose_all(self.boot(base.HP_64), {"a": [1000], "b": []})

    def _lose_all(self, server, units):
        before = self.allocations(server)
        self.api.placement("DELETE", f"/allocations/{server.id}")
        self._assert_given_back(server, units)
        after = self.allocations(server)
        self.assertEqual(before.pop("h1"), after.pop("h1"))
        self.assertCountEqual(before.values(), after.values())
        # Nova deletes it, and with it all that was allocated.
        self.servers.delete(server)
        self.assertEqual({"a": [], "b": []}, self.units("h1"))

    def _assert_given_back(self, server, units):
        exc = self.assertRaises(RefusedError, self.enroll, "h1")
        self.assertIn(server.name, str(exc))
        self.backfill()
        self.assert_elastic("h1")
        self.assertEqual(units, self.units("h1"))

    def _lose_units(self, server):
        found = answers.allocation(self.api, server.id)
        root = self.view("h1").root.uuid
        body = {
            "allocations": {
                root: {"resources": found["allocations"][root]["resources"]}
            },
            "project_id": found["project_id"],
            "user_id": found["user_id"],
            "consumer_generation": found["consumer_generation"],
        }
        self.api.placement("PUT", f"/allocations/{server.id}", body)

# SPDX-License-Identifier: Apache-2.0
"""Hosts made elastic and given back by runs that die, are refused, or crossed."""

import fixtures

from nova_perfvm import findings as codes
from nova_perfvm.changes.steps import Allocate
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.errors import CloudError, RefusedError
from nova_perfvm.facts.snapshot import DISABLED_REASON
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.elastic import (
    APPLIER,
    PLAIN_GENERAL,
    PLAIN_HP,
    DeathError,
    ElasticTest,
)
from tests.functional.test_backfill import BackfillCase


class TestBackfill(BackfillCase):
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

    def test_death_between_any_two_steps(self):
        self.boot(PLAIN_GENERAL)
        self.boot(PLAIN_GENERAL)
        disabled = 0
        for _ in range(40):
            try:
                with self.die_after(1):
                    self.backfill()
                break
            except DeathError:
                view = self.view("h1")
                self.assertTrue(view.closed or not view.enrolled)
                disabled += view.compute.interrupted
                if view.enrolled:
                    units = {"a": [1, 1], "b": [1, 1]}
                    self.assertEqual(units, self.units("h1"))

        self.assertGreater(disabled, 5)
        self.assert_elastic("h1")
        self.assertEqual({"a": [1, 1], "b": [1, 1]}, self.units("h1"))

    def test_vms_that_move_away_meanwhile(self):
        """Whether they lack units only, or have lost all that they had."""
        self.cloud.start_host("h2")
        servers = [self.boot_before(PLAIN_GENERAL, host="h1") for _ in range(4)]
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        original = Applier.apply
        for lost, pair in ((False, servers[:2]), (True, servers[2:])):
            moved = []

            def apply(applier, change, pair=pair, moved=moved):
                original(applier, change)
                here = [s for s in pair if s.id != getattr(change, "server", "")]
                if len(here) == 1 and not moved:
                    moved.append(self.servers.live_migrate(here[0], "h2"))

            for server in pair if lost else ():
                self.api.placement("DELETE", f"/allocations/{server.id}")
            with fixtures.MonkeyPatch(f"{APPLIER}.apply", apply):
                self.backfill()
            (away,) = moved
            self.assertEqual({"h2"}, self.allocations(away).keys())
            self.assert_elastic("h1")

    def test_what_cannot_be(self):
        self.cloud.create_flavor("pinned-4", 4, 4096, 0, base.PINNED)
        with_filter = (PLAIN_HP, PLAIN_GENERAL)
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        for flavors, words in (
            (with_filter, "move the others away"),
            (("pinned-4",), "matches no class of the policy"),
        ):
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

        # The source has the migration's allocation, the target the server's.
        for host, words in (("h1", "revert a resize"), ("h2", "revert it")):
            exc = self.assertRaises(RefusedError, self.enroll, host, backfill=True)
            self.assertIn(f"confirm or {words}", str(exc))
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


class TestEnroll(ElasticTest):
    def test_death_between_any_two_steps(self):
        self.create_plain_flavors()
        self.cloud.start_host("h1")
        states = []
        for _ in range(30):
            try:
                with self.die_after(1):
                    self.enroll("h1")
                break
            except DeathError:
                view = self.view("h1")
                states.append((view.closed, view.enrolled))
                if not view.enrolled:
                    # Not "No valid host" while Placement has not heard of the
                    # trait: there Nova's scheduler fails.
                    self.assertEqual("ERROR", self.cloud.boot(base.HP_64).status)
                if view.closed:
                    self.boot_refused(PLAIN_GENERAL)

        # Closed to the one kind before it opens to the other.
        self.assertEqual(sorted(states), states)
        self.assertNotIn((False, True), states)
        self.assertGreater(states.count((True, False)), 5)
        self.assert_elastic("h1")


class TestUnenroll(ClientMixin, ElasticTest):
    def test_death_between_any_two_steps(self):
        self.create_plain_flavors()
        self.cloud.start_host("h1")
        self.enroll("h1")
        for _ in range(30):
            try:
                with self.die_after(1):
                    self.unenroll("h1")
                break
            except DeathError:
                view = self.view("h1")
                if view.closed:
                    self.boot_refused(PLAIN_GENERAL)
                self.boot_refused()

        self.assert_ordinary("h1")

    def test_a_child_that_is_taken_again_meanwhile(self):
        """Another run enrolls the host again, and VMs come."""
        self.cloud.start_host("h1")
        self.enroll("h1")
        original, servers = API.set_parent, []

        def set_parent(api, uuid, name, parent):
            if not servers:
                self.enroll("h1")
                servers.extend([self.boot(), self.boot()])
            original(api, uuid, name, parent)

        with fixtures.MonkeyPatch("nova_perfvm.cloud.api.API.set_parent", set_parent):
            exc = self.assertRaises(RefusedError, self.unenroll, "h1")

        self.assertIn("carry units", str(exc))
        self.assertEqual({"a": [1000], "b": [1000]}, self.units("h1"))
        view = self.view("h1")
        self.assertEqual(2, len(view.tree[1:]))
        self.enroll("h1")
        self.assert_elastic("h1")

        # As when that run dies before it puts the child back.
        child = view.children[0]
        for command in ("enroll", "unenroll"):
            self.api.set_parent(child.uuid, child.name, None)
            found = self.orphans()
            self.assertEqual([child.name], list(found))
            evidence, remedy = found[child.name]
            self.assertIn("outside any host's tree", evidence)
            self.assertEqual("openstack perfvm host enroll h1", remedy)
            if command == "enroll":
                self.assertEqual(1, self.enroll("h1"))
                self.assert_elastic("h1")
        self.assertIn(
            "carry units", str(self.assertRaises(RefusedError, self.unenroll, "h1"))
        )
        self.unenroll("h1", strip=True)
        self.assert_ordinary("h1")
        self.assertEqual({}, self.orphans())
        for server in servers:
            self.assertEqual({"h1"}, self.allocations(server).keys())

    def orphans(self):
        """Return evidence and remedy of each orphaned child of the audit."""
        _, rows, _ = self.run_json("audit", *self.policy_file())
        return {
            row["Subject"]: (row["Observed"], row["Remedy"])
            for row in rows
            if row["Code"] == codes.ORPHANED_CHILD
        }

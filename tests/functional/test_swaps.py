# SPDX-License-Identifier: Apache-2.0
"""Servers that trade hosts by a short stop of one, on a real Nova and Placement."""

import pathlib

import fixtures

from nova_perfvm.cloud.migrate import MigrationRun
from nova_perfvm.facts.snapshot import OFFLOADED
from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.elastic import DeathError, ElasticTest
from tests.functional.minutes import MinutesPass

HIGH, GENERAL = base.HP_64, base.GENERAL_2


class SwapsCase(ClientMixin, ElasticTest):
    """An elastic host of two slots that a general server blocks, and a full one."""

    def setUp(self):
        super().setUp()
        for name, slots in (("large", 2), ("small", 1)):
            self.cloud.start_host(name, "2x20")
            self.enroll(name, slots=slots)
        self.useFixture(MinutesPass(self.cloud))
        self.general = self.boot(GENERAL, host="large")
        self.high = self.boot(HIGH, host="small")
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.record = str(directory / "plan.json")

    def plan(self, *arguments):
        """Return the exit status, the rows, and what was said."""
        return self.run_json("plan", *arguments, *self.policy_file())

    def free(self, *options):
        return self.plan("free", "--flavor", HIGH, *options)

    def execute(self):
        options = ("--allow-stop", "--execute", "--yes", "--record", self.record)
        return self.free(*options)

    def resume(self):
        return self.plan("resume", self.record, "--yes")

    def before(self, action, do):
        """Do something when Nova is asked for an action for the first time."""
        original, done = MigrationRun._act, []

        def act(run, move, body, *more):
            if action in body and not done:
                done.append(True)
                do()
            original(run, move, body, *more)

        return fixtures.MockPatchObject(MigrationRun, "_act", act)

    def set_status(self, host, status):
        (service,) = self.cloud.api.get_services(host=host, binary="nova-compute")
        self.cloud.api.put_service(service["id"], {"status": status})

    def hosts(self):
        """Return status and host of the general server, and of the other."""
        shown = map(self.servers.show, (self.general, self.high))
        return [(server.status, server.host) for server in shown]

    def found(self):
        """Return what the audit finds."""
        _, rows, _ = self.run_json("audit", *self.policy_file())
        return {(row["Code"], row["Subject"]) for row in rows}

    def assert_traded(self):
        self.assertEqual([("ACTIVE", "small"), ("ACTIVE", "large")], self.hosts())
        self.assert_general(self.general)
        self.assert_high_performance(self.high)
        self.assertEqual("large", self.boot(HIGH).host)


class TestSwap(SwapsCase):
    def test_one_that_fails_at_first(self):
        status, rows, said = self.free()
        self.assertEqual((2, []), (status, rows), said)
        self.assertIn(f"a short stop of {self.general.name}", said)
        before = self.found()

        def stop():
            self.servers.act(self.high, {"os-stop": None}, "SHUTOFF")

        with self.before("os-migrateLive", stop):
            status, rows, said = self.execute()

        self.assertEqual(1, status, said)
        self.assertIn("is copied to Glance and back", said)
        self.assertIn("409", said)
        # The one that was shelved is back where it was.
        self.assertEqual([("ACTIVE", "large"), ("SHUTOFF", "small")], self.hosts())
        self.assertEqual({"pending"}, {row["State"] for row in rows})
        self.assertNotIn("is shelved and off", said)
        # It is not stopped again while the other one cannot move.
        status, _, said = self.resume()
        self.assertEqual(1, status)
        self.assertIn("Nova would later refuse to live-migrate", said)
        self.assertEqual([("ACTIVE", "large"), ("SHUTOFF", "small")], self.hosts())
        self.servers.act(self.high, {"os-start": None}, "ACTIVE")

        status, rows, said = self.resume()

        self.assertEqual(0, status, said)
        moves = [(r["Migration"], r["From"], r["To"], r["State"]) for r in rows]
        self.assertEqual(
            [
                ("shelve", "large", "", "done"),
                ("live", "small", "large", "done"),
                ("unshelve", "", "small", "done"),
            ],
            moves,
        )
        self.assertEqual(before, self.found())
        self.assert_traded()


class TestInterrupted(SwapsCase):
    def test_a_crash_and_a_target_that_is_gone(self):
        def die():
            raise DeathError

        with self.before("os-migrateLive", die):
            self.assertRaises(DeathError, self.execute)
        self.assertEqual([(OFFLOADED, None), ("ACTIVE", "small")], self.hosts())

        with self.before("unshelve", lambda: self.set_status("small", "disabled")):
            status, _, said = self.resume()

        self.assertEqual(1, status, said)
        self.assertIn("Nova did not unshelve the server", said)
        self.assertIn(f"openstack server unshelve {self.general.id}", said)
        self.assertEqual([(OFFLOADED, None), ("ACTIVE", "large")], self.hosts())
        status, _, said = self.resume()
        self.assertEqual(1, status, said)
        self.assertIn("small no longer takes it", said)
        self.set_status("small", "enabled")

        status, _, said = self.resume()

        self.assertEqual(0, status, said)
        self.assert_traded()

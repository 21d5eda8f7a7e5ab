# SPDX-License-Identifier: Apache-2.0
"""All that can come between a plan and its end, on a real Nova and Placement."""

import contextlib
import os
import pathlib
import signal
import threading
import time

import fixtures
import testtools
from nova.virt.libvirt import driver as libvirt_driver

from nova_perfvm.changes.migrations import record
from nova_perfvm.cloud import migrate
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.documents import textfile
from tests import nova_differences
from tests.functional.client import ClientMixin
from tests.functional.elastic import DeathError
from tests.functional.test_plan_commands import PlansCase
from tests.functional.test_plan_execution import (
    DRIVER,
    LIMIT_S,
    DeviationCase,
    InterruptedCase,
    PlanTest,
)

STRANGER = "11111111-1111-4111-8111-111111111111"


class TestMoves(PlanTest):
    def test_room_of_a_cold_move_is_there_at_once(self):
        """Of a class with a cap, as the source counts the server no more."""
        kept, moved = self.boot(host="h1"), self.boot(host="h1")
        outcome = self.execute(self.begin(self.move(moved, "h2", live=False)))

        self.assertEqual("", outcome.why)
        self.assertEqual(1, self.minutes.waits)
        self.assertEqual("h1", self.boot(host="h1").host)
        self.assertEqual(("ACTIVE", "h1"), self.host(kept))


class TestDeviations(DeviationCase):
    def test_server_deleted(self):
        one, two = self.boot(host="h1"), self.boot(host="h1")
        execution = self.begin(self.move(one, "h2"), self.move(two, "h3"))
        watched = self.at("done", lambda: self.servers.delete(two))

        left = self.stopped("was deleted", execution, watched=watched)

        self.assertEqual(["done", "pending"], self.states(left))
        self.assertEqual(("ACTIVE", "h2"), self.host(one))

    def test_scheduler_refuses(self):
        """What the rules allowed a moment before."""
        server = self.boot(host="h1")
        for live in (True, False):
            execution = self.begin(self.move(server, "h2", live=live))
            watched = self.at("asked", lambda: self.disable("h2"))

            left = self.stopped("did not move", execution, watched=watched)

            self.assertEqual(["pending"], self.states(left))
            self.assertEqual(("ACTIVE", "h1"), self.host(server))
            self.disable("h2", "enabled")
        outcome = self.execute(left)
        self.assertEqual("", outcome.why)
        self.assertEqual(("ACTIVE", "h2"), self.host(server))

    def test_migration_fails(self):
        """On the target, when nova-scheduler has allowed it."""
        server = self.boot(host="h1")
        execution = self.begin(self.move(server, "h2"))

        def fail(*_args, **_options):
            raise RuntimeError("no such bridge")

        with fixtures.MonkeyPatch(f"{DRIVER}.pre_live_migration", fail):
            left = self.stopped("did not move", execution)

        self.assertEqual(["pending"], self.states(left))
        self.assertEqual(("ACTIVE", "h1"), self.host(server))
        self.assertEqual(["done"], self.states(self.execute(left).execution))

    def test_somebody_else_moves_it(self):
        one = self.boot(host="h1")
        execution = self.begin(self.move(one, "h2"))
        self.servers.cold_migrate(one, "h3")

        left = self.stopped("somebody else", execution)
        self.servers.confirm(one)
        left = self.stopped("ACTIVE on h3", left)
        self.servers.live_migrate(one, "h2")
        # It is where it was to go, whoever did it.
        self.assertEqual(["done"], self.states(self.execute(left).execution))

    def test_audit_finds_something_new(self):
        server = self.boot(host="h1")
        execution = self.begin(self.move(server, "h2"))

        def plant():
            (provider,) = [
                host.provider
                for host in read_snapshot(self.api).hosts
                if host.host == "h2"
            ]
            body = {
                "allocations": {provider: {"resources": {"PCPU": 1}}},
                "project_id": STRANGER,
                "user_id": STRANGER,
                "consumer_generation": None,
            }
            self.api.placement("PUT", f"/allocations/{STRANGER}", body)

        with fixtures.MonkeyPatch("nova_perfvm.cloud.migrate._SETTLE_S", 1):
            left = self.stopped(
                "audit.leaked_allocation", execution, watched=self.at("asked", plant)
            )
        self.assertEqual(["asked"], self.states(left))
        self.api.placement("DELETE", f"/allocations/{STRANGER}")
        self.assertEqual(["done"], self.states(self.execute(left).execution))


class TestInterrupted(InterruptedCase):
    def test_by_its_user(self):
        one, two = self.boot(host="h1"), self.boot(host="h1")
        execution = self.begin(self.move(one, "h2"), self.move(two, "h3"))
        stopping = {"stopping": lambda: bool(self.kept)}

        outcome = self.execute(execution, watched=stopping)

        self.assertTrue(outcome.interrupted)
        self.assertEqual(["done", "pending"], self.states(outcome.execution))
        self.assertEqual(("ACTIVE", "h2"), self.host(one))
        self.assertEqual(("ACTIVE", "h1"), self.host(two))
        outcome = self.execute(outcome.execution)
        self.assertEqual(["done", "done"], self.states(outcome.execution))

    def test_before_nova_was_asked(self):
        server = self.boot(host="h1")
        with self.die_in("_act"):
            self.assertRaises(
                DeathError, self.execute, self.begin(self.move(server, "h2"))
            )
        self.assertEqual(["asked"], self.states(self.kept[-1]))
        self.assertEqual(("ACTIVE", "h1"), self.host(server))

        self.assertEqual(["done"], self.states(self.execute(self.kept[-1]).execution))
        self.assertEqual(("ACTIVE", "h2"), self.host(server))

    def test_while_nova_is_at_it(self):
        """And for those who have no patience."""
        server = self.boot(host="h1")
        execution = self.begin(self.move(server, "h2"))
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        original = libvirt_driver.LibvirtDriver.live_migration

        def wait(*args, **options):
            go_on.wait(LIMIT_S)
            original(*args, **options)

        with fixtures.MonkeyPatch(f"{DRIVER}.live_migration", wait):
            with fixtures.MonkeyPatch(f"{migrate.__name__}.PATIENCE_MIN", 1 / 60):
                outcome = self.execute(execution)
            self.assertIn("Nova has not finished", outcome.why)
            self.assertEqual(["asked"], self.states(outcome.execution))
            with self.die_in("_show"):
                self.assertRaises(DeathError, self.execute, outcome.execution)
            self.assertIn("somebody else", self.execute(execution).why)
            timer = threading.Timer(1, go_on.set)
            timer.start()
            outcome = self.execute(outcome.execution)
            timer.join()
        self.assertEqual(("", ["done"]), (outcome.why, self.states(outcome.execution)))
        self.assertEqual(("ACTIVE", "h2"), self.host(server))


class TestTwoAtOnce(PlanTest):
    def test_the_same_plan(self):
        """Both have looked, and ask in the same moment."""
        one, two = self.boot(host="h1"), self.boot(host="h1")
        execution = self.begin(self.move(one, "h2"), self.move(two, "h3"))
        together = threading.Barrier(2)
        met, outcomes = set(), []

        def keep(found):
            if self.states(found)[0] == "asked" and threading.get_ident() not in met:
                met.add(threading.get_ident())
                with contextlib.suppress(threading.BrokenBarrierError):
                    together.wait(LIMIT_S)

        def run():
            outcomes.append(self.execute(execution, watched={"keep": keep}))

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        self.assertFalse(together.broken)
        self.assertEqual(
            {("ACTIVE", "h2"), ("ACTIVE", "h3")}, {self.host(one), self.host(two)}
        )
        stopped = [o for o in outcomes if o.why]
        self.assertLess(len(stopped), 2, outcomes)
        # Each server was moved once.
        for server in (one, two):
            query = f"/os-migrations?instance_uuid={server.id}"
            found = self.cloud.api.api_get(query).body["migrations"]
            self.assertEqual(["completed"], [m["status"] for m in found])
        for outcome in stopped or outcomes:
            ended = self.execute(outcome.execution)
            self.assertEqual(
                ("", ["done"] * 2), (ended.why, self.states(ended.execution))
            )


class TestResume(ClientMixin, PlanTest):
    def setUp(self):
        super().setUp()
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = str(directory / "plan.json")
        self.one, self.two = self.boot(host="h1"), self.boot(host="h1")
        execution = self.begin(self.move(self.one, "h2"), self.move(self.two, "h3"))
        self.write(execution)

    def write(self, execution):
        pathlib.Path(self.path).write_text(record.dumps(execution))

    def resume(self, *options):
        """Return the exit status, the rows, and what was said."""
        found = ["plan", "resume", self.path, "--policy", self.write_policy()]
        return self.run_json(*found, *options)

    def test_something_is_in_the_way(self):
        """Then nothing further is done, until it is away."""
        self._what_it_does_not_begin_with()
        other = self.boot(host="h3"), self.boot(host="h3")
        status, rows, said = self.resume("--yes")

        self.assertEqual(1, status)
        self.assertEqual(["done", "pending"], [row["State"] for row in rows])
        self.assertEqual(
            (f"{self.one.name} ({self.one.id})", "h1", "h2", "live"),
            tuple(rows[0][key] for key in ("Server", "From", "To", "Migration")),
        )
        self.assertIn("h3 no longer takes it", rows[1]["Note"])
        self.assertIn("1 of 2 migrations are done, and 1 remain", said)
        self.assertIn(f"openstack perfvm plan resume {self.path}", said)
        self.servers.delete(other[0])
        status, rows, said = self.resume("--yes")
        self.assertEqual(0, status, said)
        self.assertEqual(["done", "done"], [row["State"] for row in rows])
        self.assertIn("2 of 2 migrations are done", said)
        self.assertEqual(("ACTIVE", "h3"), self.host(self.two))
        self.assertEqual(["done", "done"], self.states(record.read(self.path)))
        status, rows, said = self.resume("--yes")
        self.assertEqual((0, 2), (status, len(rows)))
        self.assertIn("nothing to do", said)

    def _what_it_does_not_begin_with(self):
        execution = record.read(self.path)
        status, rows, said = self.resume()
        self.assertEqual((1, []), (status, rows))
        self.assertIn("no terminal to ask on: add --yes", said)
        with textfile.exclusively(self.path):
            status, _, said = self.resume("--yes")
        self.assertEqual(1, status)
        self.assertIn("another process is working on", said)
        other = self.write_policy(managed_hosts="labelled")
        status, _, said = self.resume("--yes", "--policy", other)
        self.assertEqual(1, status)
        self.assertIn("made by another policy", said)
        pathlib.Path(self.path).write_text("{}")
        status, _, said = self.resume("--yes")
        self.assertEqual(1, status)
        self.assertIn("schema_version: missing", said)
        self.write(execution)
        self.assertEqual(("ACTIVE", "h1"), self.host(self.one))

    @testtools.skipUnless(
        nova_differences.tests_in_native_threads(),
        "under eventlet the signal ends what Nova does in this thread, too",
    )
    def test_interrupted(self):
        """Once: the migration under way is finished; twice: Nova does that."""
        original = libvirt_driver.LibvirtDriver.live_migration
        times, go_on = [2], threading.Event()
        self.addCleanup(go_on.set)

        def interrupt(*args, **options):
            for _ in range(times.pop()):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
            go_on.wait(LIMIT_S)
            original(*args, **options)

        handler = signal.getsignal(signal.SIGINT)
        with fixtures.MonkeyPatch(f"{DRIVER}.live_migration", interrupt):
            status, rows, said = self.resume("--yes")
            self.assertEqual((130, "asked"), (status, rows[0]["State"]), said)
            self.assertIn("stopped: left to Nova", said)
            go_on.set()
            self.assertEqual(handler, signal.getsignal(signal.SIGINT))
            times.append(1)
            status, rows, said = self.resume("--yes")
        # It was the last one, so nothing remains.
        self.assertEqual(0, status, said)
        self.assertEqual(["done", "done"], [row["State"] for row in rows])
        self.assertIn("finishing the migration under way", said)
        self.assertEqual(("ACTIVE", "h3"), self.host(self.two))


class TestDrain(PlansCase):
    def test_a_host_is_emptied(self):
        one, two = self.boot(host="large"), self.boot(host="large")
        self.servers.act(two, {"os-stop": None}, "SHUTOFF")

        status, rows, said = self.plan("drain", "large", "--execute", "--yes")

        self.assertEqual((0, {"done"}), (status, {r["State"] for r in rows}), said)
        self.assertEqual({"live", "cold"}, {row["Migration"] for row in rows})
        for server, expected in ((one, "ACTIVE"), (two, "SHUTOFF")):
            shown = self.servers.show(server)
            self.assertEqual((expected, "small"), (shown.status, shown.host))
        # Nothing is asked where there is nothing to do.
        self.assertEqual((0, []), self.plan("drain", "large", "--execute")[:2])

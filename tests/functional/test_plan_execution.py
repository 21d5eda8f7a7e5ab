# SPDX-License-Identifier: Apache-2.0
"""Plans carried out on a real Nova and Placement, and what can come between."""

import fixtures
from nova.api.openstack import api_version_request

from nova_perfvm.changes.migrations.execution import begin
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.cloud import migrate
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.migrate import Watcher
from nova_perfvm.cloud.snapshot import read_snapshot
from tests.functional import base
from tests.functional.client import SDKMixin
from tests.functional.elastic import DeathError
from tests.functional.minutes import MinutesPass

DRIVER = "nova.virt.libvirt.driver.LibvirtDriver"
# It ends a wait for what never comes.
LIMIT_S = 300


class ThreeHostsCase(SDKMixin, base.FunctionalTest):
    """A cloud of dedicated hosts with slots, and an administrator's client."""

    PLACEMENT = "slots"

    def setUp(self):
        super().setUp()
        for name in ("h1", "h2", "h3"):
            self.cloud.start_configured(name, self.policy, "dedicated")
        self.api = API(self.connection("admin", "admin,member,reader"))


class PlanTest(ThreeHostsCase):
    """Plans made by hand."""

    def setUp(self):
        super().setUp()
        self.kept = []
        self.minutes = self.useFixture(MinutesPass(self.cloud))

    def move(self, server, target, *, source=None, live=True):
        return Move(
            server=server.id,
            name=server.name,
            source=source or self.servers.show(server).host,
            target=target,
            live=live,
            memory_mb=65536,
            pinned=True,
        )

    def begin(self, *moves):
        return begin(self.policy.digest, "test", moves)

    def execute(self, execution, **options):
        watched = {"keep": self.kept.append} | options.pop("watched", {})
        return migrate.MigrationRun(
            self.api,
            self.policy,
            read_snapshot(self.api),
            execution,
            watcher=Watcher(**watched),
            **options,
        ).carry_out()

    def states(self, execution):
        return [found.state for found in execution.moves]

    def host(self, server):
        shown = self.servers.show(server)
        return shown.status, shown.host


class TestMoves(PlanTest):
    def test_live_and_cold_moves_in_their_order(self):
        one, two = self.boot(host="h1"), self.boot(host="h1")
        self.servers.act(two, {"os-stop": None}, "SHUTOFF")
        # By it known bugs are looked for before each move.
        newest = api_version_request.max_api_version().get_string()
        self.assertEqual(newest, read_snapshot(self.api).microversion)
        execution = self.begin(
            self.move(one, "h2"),
            self.move(two, "h3", live=False),
            self.move(one, "h3", source="h2"),
        )
        told = []

        outcome = self.execute(execution, watched={"tell": told.append})

        self.assertEqual(("", False), (outcome.why, outcome.interrupted))
        self.assertEqual(["done"] * 3, self.states(outcome.execution))
        self.assertEqual(("ACTIVE", "h3"), self.host(one))
        self.assertEqual(("SHUTOFF", "h3"), self.host(two))
        self.assertEqual(
            [
                ["asked", "pending", "pending"],
                ["done", "pending", "pending"],
                ["done", "asked", "pending"],
                ["done", "done", "pending"],
                ["done", "done", "asked"],
                ["done", "done", "done"],
            ],
            [self.states(kept) for kept in self.kept],
        )
        self.assertEqual(f"1 of 3: {one.name}", told[0])


class DeviationCase(PlanTest):
    """Something comes between: nothing further is started."""

    def at(self, state, action):
        """Return what does something when the first move comes to a state."""
        done = []

        def keep(execution):
            self.kept.append(execution)
            if execution.moves[0].state == state and not done:
                done.append(True)
                action()

        return {"keep": keep}

    def disable(self, host, status="disabled"):
        (service,) = self.cloud.api.get_services(host=host, binary="nova-compute")
        self.cloud.api.put_service(service["id"], {"status": status})

    def stopped(self, words, execution, **options):
        """Look that an execution stops before the end; return how far it came."""
        outcome = self.execute(execution, **options)
        self.assertIn(words, outcome.why)
        self.assertFalse(outcome.interrupted)
        self.assertEqual(self.kept[-1], outcome.execution)
        (note,) = [found.note for found in outcome.execution.moves if found.note]
        self.assertTrue(outcome.why.endswith(f": {note}"), outcome.why)
        return outcome.execution


class TestDeviations(DeviationCase):
    def test_target_disabled_down_or_full(self):
        one, two = self.boot(host="h1"), self.boot(host="h1")
        execution = self.begin(self.move(one, "h2"), self.move(two, "h2"))
        watched = self.at("done", lambda: self.disable("h2"))

        left = self.stopped("disabled", execution, watched=watched)
        self.assertEqual(["done", "pending"], self.states(left))
        self.disable("h2", "enabled")
        self.cloud.fail_host("h2", stop=True)
        left = self.stopped("down", left)
        self.cloud.recover_host("h2")
        other = self.boot(host="h2")
        left = self.stopped("no longer takes it", left)
        self.assertEqual(["done", "pending"], self.states(left))
        self.assertEqual(("ACTIVE", "h1"), self.host(two))

        self.servers.delete(other)
        outcome = self.execute(left)
        self.assertEqual("", outcome.why)
        self.assertEqual(("ACTIVE", "h2"), self.host(two))


class InterruptedCase(PlanTest):
    """A run ends where it may, and another goes on from what it has written."""

    def die_in(self, method):
        """Let the process die there, without any clean-up."""

        def die(*_args, **_options):
            raise DeathError(method)

        return fixtures.MonkeyPatch(
            f"nova_perfvm.cloud.migrate.MigrationRun.{method}", die
        )


class TestInterrupted(InterruptedCase):
    def test_before_a_cold_migration_is_confirmed(self):
        server = self.boot(host="h1")
        execution = self.begin(self.move(server, "h2", live=False))
        with self.die_in("_confirm"):
            self.assertRaises(DeathError, self.execute, execution)
        self.assertEqual(("VERIFY_RESIZE", "h2"), self.host(server))
        # To one who knows nothing of it, it is somebody else's.
        self.assertIn("somebody else", self.execute(execution).why)

        self.assertEqual(["done"], self.states(self.execute(self.kept[0]).execution))
        self.assertEqual(("ACTIVE", "h2"), self.host(server))

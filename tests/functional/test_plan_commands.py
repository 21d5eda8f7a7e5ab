# SPDX-License-Identifier: Apache-2.0
"""Plans carried out by commands on a real Nova and Placement, and resumed."""

import pathlib

import fixtures

from nova_perfvm.changes.migrations import record
from nova_perfvm.documents import textfile
from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.minutes import MinutesPass
from tests.functional.test_plan_execution import PlanTest


class ResumeCase(ClientMixin, PlanTest):
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


class TestResume(ResumeCase):
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
        self.assertIn("nobody is there to be asked: add --yes", said)
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


class TestPlans(ClientMixin, base.FunctionalTest):
    """``plan free`` and ``plan drain``, which carry out what they have planned."""

    PLACEMENT = "slots"
    FLAVORS = (base.HP_64, base.HP_200)

    def setUp(self):
        super().setUp()
        # A NUMA node of the small one has memory for the smallest VM only.
        for name, memory_gb in (("small", 220), ("large", 450)):
            self.cloud.start_configured(
                name, self.policy, "dedicated", memory_gb=memory_gb
            )
        self.useFixture(MinutesPass(self.cloud))
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = directory / "plan.json"

    def plan(self, *arguments):
        """Return the exit status, the rows, and what was said."""
        return self.run_json("plan", *arguments)

    def test_room_for_a_server_that_was_refused(self):
        servers = self.boot(host="large"), self.boot(host="large")
        self.boot_refused(base.HP_200)
        free = ["free", "--flavor", base.HP_200, "--boot-from-volume"]
        status, rows, said = self.plan(*free)
        self.assertEqual((0, 1), (status, len(rows)), said)

        record_at = ["--record", str(self.path)]
        status, rows, said = self.plan(*free, "--execute", "--yes", *record_at)

        self.assertEqual((0, ["done"]), (status, [r["State"] for r in rows]), said)
        self.assertEqual((), record.read(str(self.path)).remaining)
        hosts = sorted(self.servers.show(server).host for server in servers)
        self.assertEqual(["large", "small"], hosts)
        self.assertEqual("large", self.boot(base.HP_200).host)

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

# SPDX-License-Identifier: Apache-2.0
"""Commands that make hosts elastic, several at once, check that, and take it back."""

import contextlib
import threading

import fixtures

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.changes import steps as do
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.facts.snapshot import CREATED, isolating
from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.elastic import (
    APPLIER,
    PLAIN_GENERAL,
    PLAIN_HP,
    CreatedAtOnce,
    DeathError,
    ElasticTest,
)

LIMIT_S = 300


class TestCommands(ClientMixin, ElasticTest):
    def setUp(self):
        super().setUp()
        self.create_plain_flavors()
        self.cloud.start_host("h1")

    def test_enroll_and_unenroll(self):
        self._errors_are_one_line()
        enroll = ["host", "enroll", "h1", *self.policy_file()]

        self.assert_command(0, "would put h1 into aggregate", *enroll, "--dry-run")
        self.assert_command(1, "add --yes", *enroll)
        self.assert_ordinary("h1")
        self.assert_command(0, "h1 is enrolled", *enroll, "--yes")
        self.assert_elastic("h1")
        self.assert_command(0, "h1: nothing to do", *enroll, "--yes")
        server = self.boot(base.GENERAL_2)
        unenroll = ["host", "unenroll", "h1", "--yes"]
        self.assert_command(1, server.name, *unenroll)
        self.servers.delete(server)
        self.assert_command(0, "no longer enrolled", *unenroll)
        self.assert_ordinary("h1")
        aggregates = {found.name for found in answers.aggregates(self.api)}
        self.assertEqual({const.POLICY_AGGREGATE}, aggregates)
        self.assertEqual(0, self.unenroll("h1"))
        self.boot_before(PLAIN_HP)

    def _errors_are_one_line(self):
        enroll = ["host", "enroll", *self.policy_file(), "--yes"]
        member = {"user": "member", "roles": "member,reader"}
        for words, arguments, identity in (
            ("no compute host 'nowhere'", [*enroll, "nowhere"], {}),
            ("rights of an administrator", [*enroll, "h1"], member),
            ("placement: slots", ["host", "enroll", "h1", "--yes"], {}),
            ("gives a host 0 to 2", [*enroll, "h1", "--slots", "3"], {}),
        ):
            status, stdout, stderr = self.run_command(*arguments, **identity)
            self.assertEqual((1, ""), (status, stdout))
            self.assertEqual(1, len(stderr.splitlines()), stderr)
            self.assertIn(words, stderr)

    def test_preflight(self):
        server = self.boot(PLAIN_GENERAL)
        nova, placement = self.files(
            "[scheduler]\nenable_isolated_aggregate_filtering = True\n"
            f"[perfvm]\npolicy_file = {self.path}\n",
            "[placement]\nallocation_conflict_retry_count = 1\n",
        )
        check = ["preflight", *self.policy_file()]
        files = ["--nova-conf", nova, "--placement-conf", placement]

        status, rows, _ = self.run_json(*check, "h1")
        results = {row["Code"]: row for row in rows}
        self.assertEqual(1, status)
        for code, expected, words in (
            (codes.ISOLATION_UNKNOWN, "unknown", "no API shows it"),
            (codes.RETRY_COUNT_UNKNOWN, "unknown", "no API shows it"),
            (codes.TO_BACKFILL, "warning", server.name),
            (codes.FLAVOR_WITHOUT_UNITS, "warning", server.name),
        ):
            row = results[code]
            self.assertEqual(expected, row["Level"])
            self.assertIn(words, f"{row['Subject']}: {row['Observed']}")

        self.servers.delete(server)
        self.enroll("h1")
        # Of either class, and one that no host took.
        self.cloud.start_host("h2")
        self.enroll("h2")
        self.boot(base.GENERAL_2, host="h1")
        self.boot(base.HP_64, host="h2")
        self.boot_refused(base.HP_64, host="h1")
        self.assert_command(0, "policy.", *check, *files)
        _, placement = self.files("", "[placement]\n")
        asked = ["--nova-conf", nova, "--placement-conf", placement]
        status, rows, _ = self.run_json(*check, *asked)
        results = {row["Code"]: row for row in rows}
        retries = results[codes.RETRY_COUNT]
        self.assertEqual((2, "failure"), (status, retries["Level"]))
        self.inflate_child(self.view("h1"))
        self.assert_command(2, "failure", *check, *files)

    def test_several_hosts_at_once(self):
        """The aggregate is new, and one host is in the way."""
        hosts = ["h1", "h2", "h3", "h4", "taken"]
        for host in hosts[1:]:
            self.cloud.start_host(host)
        server = self.boot(PLAIN_GENERAL, host="taken")
        enroll = ["host", "enroll", *hosts, *self.policy_file(), "--yes"]
        together = threading.Barrier(4)
        original = Applier.apply

        def apply(applier, change):
            if isinstance(change, do.AddHost):
                # Nobody gets on unless all four are at it.
                together.wait(LIMIT_S)
            original(applier, change)

        with CreatedAtOnce(), fixtures.MonkeyPatch(f"{APPLIER}.apply", apply):
            status, stdout, stderr = self.run_command(*enroll)

        self.assertEqual(1, status)
        self.assertFalse(together.broken)
        self.assertEqual(
            [f"h{n} is enrolled" for n in (1, 2, 3, 4)],
            sorted(line.partition(":")[0] for line in stdout.splitlines()),
        )
        line, recorded = stderr.splitlines()
        self.assertEqual(f"recorded: policy sha256 {self.policy.digest[:8]}", recorded)
        self.assertTrue(line.startswith("taken: taken has VMs without units"), line)
        self.assertIn(server.name, line)
        for host in hosts[:4]:
            self.assert_elastic(host)
        self.assert_ordinary("taken")
        (aggregate,) = (
            a for a in answers.aggregates(self.api) if a.name != const.POLICY_AGGREGATE
        )
        self.assertEqual(
            isolating("CUSTOM_PERFVM_ELASTIC_2") | CREATED, aggregate.metadata
        )
        self.assertEqual(set(hosts[:4]), aggregate.hosts)
        self.boot(base.HP_64, host="h3")

        # Units of VMs that run, and giving all back, go side by side as well.
        self.assert_command(0, "taken is enrolled", *enroll, "--backfill")
        self.servers.delete(server)
        unenroll = ["host", "unenroll", *hosts, "--yes"]
        status, stdout, stderr = self.run_command(*unenroll)
        *ended, last = stdout.splitlines()
        self.assertEqual((1, 4), (status, len(ended)), stderr)
        self.assertIn("8 empty providers will stay until nova-compute", last)
        self.assertTrue(stderr.startswith("h3: VMs on h3 carry units"), stderr)
        for host in ("h1", "h2", "h4", "taken"):
            self.assert_ordinary(host)
        self.assert_elastic("h3")

    def test_children_that_stay(self):
        """Until nova-compute has forgotten them; who runs it next hears of them."""
        self.enroll("h1")
        unenroll = ("host", "unenroll", "h1", "--yes")
        rollback = ("rollback", "--strip-units", "--yes")

        # Both are out of the tree, and the host is in its aggregate still.
        with contextlib.suppress(DeathError), self.die_after(7):
            self.unenroll("h1")
        self.assertNotEqual((), self.view("h1").isolated_by)
        named = "2 empty providers will stay"
        for command in (unenroll, unenroll, rollback):
            self.assert_command(0, named, *command)
        for command in (unenroll, rollback):
            self.enroll("h1")
            self.assert_command(0, named, *command, "--delete-children")
            self.assert_ordinary("h1")

    def test_rollback_leaves_aggregates_of_others(self):
        self.cloud.start_host("h2")
        for name, members in (("rack1", ["h2"]), ("rack2", [])):
            aggregate = self.cloud.api.post_aggregate({"aggregate": {"name": name}})
            path = f"/os-aggregates/{aggregate['id']}/action"
            metadata = {"metadata": isolating("CUSTOM_PERFVM_ELASTIC_2")}
            self.api.nova("POST", path, {"set_metadata": metadata})
            for host in members:
                self.api.nova("POST", path, {"add_host": {"host": host}})
        self.enroll("h1")
        self.enroll("h2")
        names = {a.name: a.hosts for a in answers.aggregates(self.api)}
        self.assertEqual(
            {"rack1": {"h2"}, "rack2": set(), "perfvm-elastic-2": {"h1"}}, names
        )

        status, _, stderr = self.run_command("rollback", "--yes")

        self.assertEqual(0, status, stderr)
        for host in ("h1", "h2"):
            self.assert_ordinary(host)
        left = [a.name for a in answers.aggregates(self.api)]
        self.assertEqual(["rack1", "rack2"], sorted(left))
        for name in left:
            self.assertIn(f"openstack aggregate delete {name}", stderr)
        self.assertNotIn("perfvm-elastic-2", stderr)

    def test_rollback_with_vms_running(self):
        self.cloud.start_host("h2")
        self.cloud.start_host("plain")
        self.enroll("h1")
        self.enroll("h2")
        high = self.boot(host="h1")
        general = self.boot(base.GENERAL_2, host="h2")
        before = [self.allocations(server) for server in (high, general)]

        self.assert_command(1, high.name, "rollback", "--yes")
        self.assert_command(1, "rollback --strip-units", "rollback", "--yes")
        drain = "openstack perfvm plan drain h1 --execute"
        self.assert_command(1, drain, "host", "unenroll", "h1", "--yes")
        self.assert_command(
            0, "would take the units out", "rollback", "--strip-units", "--dry-run"
        )
        self.assert_elastic("h1")
        status, _, stderr = self.run_command("rollback", "--strip-units", "--yes")

        self.assertEqual(0, status, stderr)
        # What it cannot change is said.
        self.assertIn(base.HP_64, stderr)
        self.assertIn(high.name, stderr)
        for host in ("h1", "h2"):
            self.assert_ordinary(host)
        self.assertEqual((), answers.aggregates(self.api))
        for server, had in zip((high, general), before, strict=True):
            self.assertEqual("ACTIVE", self.servers.show(server).status)
            (host,) = (name for name in had if name == server.host)
            self.assertEqual({host: had[host]}, self.allocations(server))
        self.assert_high_performance(high)
        self.assert_command(0, "nothing to do", "rollback", "--yes")

# SPDX-License-Identifier: Apache-2.0
"""Hosts listed, and the policy compared with a real Nova and Placement."""

import threading

import fixtures

from nova_perfvm import constants as const
from nova_perfvm.cloud import answers, policy_record
from nova_perfvm.cloud.api import API
from nova_perfvm.facts.recorded_policy import RecordedPolicy
from nova_perfvm.policy import loader
from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.elastic import ElasticTest

LIMIT_S = 300
CONF = """\
[filter_scheduler]
enabled_filters = PerfVMFilter,NUMATopologyFilter
[perfvm]
policy_file = {}
"""


class TestPolicyCommands(ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def rows(self, status, *arguments):
        ended, rows, stderr = self.run_json(*arguments)
        self.assertEqual(status, ended, stderr)
        return rows

    def test_hosts_and_policy(self):
        self.cloud.start_configured("h1", self.policy, "dedicated")
        self.cloud.start_host("h2", shared="0-39")
        self.boot()
        server = self.boot()

        first, second = self.rows(0, "host", "list")
        self.assertEqual(
            ["h1", "up", "dedicated", 2, 2, 2, "high-performance", ""],
            list(first.values()),
        )
        self.assertEqual(
            ["h2", "shared", None, "general"],
            [second[key] for key in ("Host", "Mode", "Slots", "Classes")],
        )
        shown = self.rows(0, "host", "show", "h1")
        self.assertIn(const.TRAIT_HIGH_PERFORMANCE, shown["traits"])
        self.assertIn(f"h1 {const.RC_SLOT}: 2 of 2 used", shown["inventories"])
        self.assertIn(server.name, shown["servers"])
        said = "there is no compute host 'h9' (the nearest: h1, h2): see openstack"
        self.assert_command(1, said, "host", "show", "h9")
        # What no API tells is null for programs, and no word for people.
        for command in (["list"], ["show", "h2"]):
            status, table, _ = self.run_command("host", *command)
            self.assertEqual((0, False), (status, "None" in table), table)

        self._check()
        self._diff()

    def _check(self):
        rows = self.rows(1, "policy", "check")
        # Each that counts has a code, and with that in the policy it is a note.
        counts = {"warning", "unknown"}
        counting = list(dict.fromkeys(r["Code"] for r in rows if r["Level"] in counts))
        unknown = ["options.filters_unknown", "options.enforced_unknown"]
        self.assertEqual(["policy.flavors_differ", *unknown], counting)
        accepting = self.write_policy(accept=counting)
        noted = {r["Code"]: r for r in self.rows(0, "policy", "check", accepting)}
        for code in counting:
            self.assertEqual("note", noted[code]["Level"])
            self.assertIn("accepted in the policy", noted[code]["Observed"])
        wrong = self.write_policy(accept=["policy.flavor_differs"])
        hint = "expected the code of a finding"
        self.assert_command(2, hint, "policy", "check", wrong)
        self.assert_command(0, "create", "flavor", "sync", "--yes")
        (conf,) = self.files(CONF.format(self.write_policy()))
        self.assert_command(0, "note", "policy", "check", "--nova-conf", conf)
        rows = self.rows(0, "policy", "check", "--nova-conf", conf)
        self.assertEqual({"note"}, {row["Level"] for row in rows})
        # A policy need not list flavors; all else is judged as before.
        classes = self.policy.as_document()["classes"]
        for vm_class in classes.values():
            vm_class.pop("flavors")
        unlisted = self.write_policy(classes=classes)
        # Another one is not what nova-scheduler enforces.
        (failure, *others) = self.rows(
            2, "policy", "check", unlisted, "--nova-conf", conf
        )
        self.assertEqual("options.not_enforced", failure["Code"])
        self.assertEqual(rows, others)
        (conf,) = self.files(CONF.format(unlisted))
        arguments = ("policy", "check", unlisted, "--nova-conf", conf)
        self.assertEqual(rows, self.rows(0, *arguments))

    def _diff(self):
        classes = self.policy.as_document()["classes"]
        old = self.write_policy()
        classes["high-performance"]["max_per_host"] = 1
        new = self.write_policy(classes=classes)
        self.assertEqual([], self.rows(0, "policy", "diff", old, old))
        rows = self.rows(0, "policy", "diff", old, new)
        self.assertEqual(
            ["class", "host", "host", "host"], [row["Type"] for row in rows]
        )
        self.assertIn("max_per_host is 1", rows[-1]["New"])


class TestPolicyOfACloud(ClientMixin, ElasticTest):
    """An elastic cloud, and commands that know its policy, another one, or none."""

    POLICY = None

    def setUp(self):
        super().setUp()
        self.cloud.start_host("h1")
        self.digest = self.policy.digest[:8]

    def said(self, *arguments, policy=None, status=0):
        """Run a command with a policy; return what it printed, stdout and stderr."""
        named = () if policy is None else ("--policy", policy)
        ended, *printed = self.run_command(*arguments, *named)
        self.assertEqual(status, ended, printed)
        return printed

    def test_a_policy_that_nobody_named(self):
        """The built-in one would take the units from all flavors of the cloud."""
        built_in = f"policy: built-in (sha256 {loader.load().digest[:8]})\n"
        self.said("flavor", "sync", "--yes", policy=self.path)
        self.assertEqual(
            f"policy: {self.path} (sha256 {self.digest})\n", self.policy_said
        )
        for command in (
            ("flavor", "sync", "--dry-run"),
            ("flavor", "sync", "--yes"),
            ("image", "sync", "--dry-run"),
            ("host", "enroll", "h1", "--dry-run"),
            ("host", "enroll", "h1", "h2", "--yes"),
            ("plan", "drain", "h1", "--execute", "--yes"),
        ):
            status, stdout, stderr = self.run_command(*command)
            self.assertNotEqual(0, status)
            self.assertEqual(("", ""), (stdout, self.policy_said))
            self.assertIn("no policy is named", stderr)
            self.assertEqual(1, len(stderr.splitlines()), stderr)
        self.assert_ordinary("h1")
        # What only looks says that it is the built-in one, and not the recorded one.
        _, stderr = self.said("host", "list")
        self.assertEqual(built_in, self.policy_said)
        self.assertIn(f"by another policy, {self.path} (sha256 {self.digest}", stderr)

    def recorded(self):
        """Return what the cloud keeps of its policy, and no host of it."""
        (found,) = (a for a in self.aggregates() if a.name == const.POLICY_AGGREGATE)
        self.assertEqual(frozenset(), found.hosts)
        metadata = dict(found.metadata)
        self.assertRegex(
            metadata.pop("perfvm:policy_at"), r"^20\d\d-\d\d-\d\dT.*\+00:00$"
        )
        self.assertEqual({"perfvm:policy", "perfvm:policy_name"}, metadata.keys())
        return metadata["perfvm:policy"], metadata["perfvm:policy_name"]

    def aggregates(self):
        return answers.aggregates(self.api)

    def test_another_policy(self):
        """A cloud that was changed by one policy takes another only if that is said."""
        first, second = self.path, self.write_policy(elastic={"slots": 4})
        mine, other = (loader.load(path).digest for path in (first, second))
        sync = ("flavor", "sync", "--yes")
        _, stderr = self.said("flavor", "sync", "--dry-run", policy=first)
        self.assertIn(f"would record policy sha256 {mine[:8]}", stderr)
        self.assertEqual((), self.aggregates())
        self.said(*sync, policy=first)
        self.assertEqual((mine, first), self.recorded())
        self.said("host", "enroll", "h1", "--yes", policy=first)
        before = self.aggregates()
        self.assertEqual(
            {const.POLICY_AGGREGATE, "perfvm-elastic-2"}, {a.name for a in before}
        )
        self.assert_elastic("h1")
        server = self.boot(base.GENERAL_2)

        named = f"{first} (sha256 {mine[:8]}, recorded 20"
        for status, *command in (
            (1, "flavor", "sync", "--dry-run"),
            (1, *sync),
            (1, "image", "sync", "--yes"),
            (1, "host", "enroll", "h1", "--yes"),
            (3, "plan", "drain", "h1", "--execute", "--yes"),
        ):
            stdout, stderr = self.said(*command, policy=second, status=status)
            refusal = stderr.splitlines()[-1]
            self.assertIn(named, refusal)
            self.assertIn(f"than {second} (sha256 {other[:8]})", refusal)
            self.assertIn("--policy-changed", refusal)
            self.assertEqual("", stdout)
        self.assertEqual(before, self.aggregates())
        # Named, the built-in one is another policy as well.
        _, stderr = self.said(*sync, policy="builtin", status=1)
        self.assertIn(f"than built-in (sha256 {loader.load().digest[:8]})", stderr)
        for command in (("host", "list"), ("audit",), ("preflight",)):
            for policy in (first, second):
                _, stdout, stderr = self.run_command(*command, "--policy", policy)
                # The aggregate is nothing that the audit wonders at.
                self.assertNotIn("perfvm-policy", stdout)
                self.assertEqual(
                    int(policy == second),
                    stderr.count(
                        f"warning: the cloud was changed by another policy, {named}"
                    ),
                )

        self.said(*sync, "--policy-changed", policy=second)
        self.assertEqual((other, second), self.recorded())
        self.said(*sync, policy=first, status=1)
        self.said(*sync, policy=second)
        self.servers.delete(server)
        stdout, _ = self.said("rollback", "--yes")
        self.assertIn("delete aggregate perfvm-policy", stdout)
        self.assertEqual((), self.aggregates())

    def record_at_once(self, meets, *digests):
        """Record several digests; return what each is told of the cloud's.

        :param meets: which requests to Nova wait for each other: a method, and the
            end of a path
        """
        together, ended = threading.Barrier(2), []
        original = API.nova

        def nova(api, method, path, *arguments, **options):
            met = method == meets[0] and path.endswith(meets[1])
            if met:
                together.wait(LIMIT_S)
            found = original(api, method, path, *arguments, **options)
            if met and meets[1] == "/action":
                together.wait(LIMIT_S)
            return found

        def record(digest):
            api = API(self.connection("admin", "admin,member,reader"))
            ended.append(policy_record.record(api, digest, "a").digest)

        with fixtures.MonkeyPatch("nova_perfvm.cloud.api.API.nova", nova):
            threads = [threading.Thread(target=record, args=(d,)) for d in digests]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(LIMIT_S)
        self.assertFalse(together.broken)
        return ended

    def test_two_record_one_at_the_same_moment(self):
        """Nova answers one of them with an error; both find the other's work."""
        one = "a" * 64
        found = self.record_at_once(("POST", "/os-aggregates"), one, one)
        self.assertEqual([one] * 2, found)
        self.assertEqual(1, len(self.aggregates()))
        # Another one that came meanwhile stays, and is told.
        seen, third = RecordedPolicy("c" * 64), ("b" * 64, "\u00e4" * 300)
        there = policy_record.record(self.api, *third, seen)
        self.assertEqual(one, there.digest)
        policy_record.record(self.api, *third, there)
        self.assertEqual(("b" * 64, "?" * 255), self.recorded())

    def test_two_record_different_ones_at_the_same_moment(self):
        """Both see none; whose digest is not the one that stays is told."""
        found = self.record_at_once(("POST", "/action"), "a" * 64, "b" * 64)
        self.assertEqual([self.recorded()[0]] * 2, found)

    def test_nothing_to_do_by_a_policy_that_changed(self):
        """It is recorded all the same: healing refuses it as long as it is not."""
        self.cloud.start_host("h2")
        self.said("flavor", "sync", "--yes", policy=self.path)
        self.said("host", "enroll", "h1", "h2", "--yes", policy=self.path)
        classes = self.policy.as_document()["classes"]
        for vcpus, *command in (
            (18, "flavor", "sync"),
            (16, "host", "enroll", "h1", "h2"),
        ):
            classes["high-performance"]["former_vcpus"] = [vcpus]
            policy = self.write_policy(classes=classes)
            before = self.recorded()
            changed = (*command, "--policy-changed")
            printed = self.said(*changed, "--dry-run", policy=policy)
            self.assertIn("would record policy sha256", printed[-1])
            self.assertEqual(before, self.recorded())
            printed = self.said(*changed, policy=policy)
            self.assertIn("nothing to do", "".join(printed))
            self.assertEqual((loader.load(policy).digest, policy), self.recorded())

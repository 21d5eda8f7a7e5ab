# SPDX-License-Identifier: Apache-2.0
"""Hosts listed, and the policy compared with a real Nova and Placement."""

import json

from nova_perfvm import constants as const
from nova_perfvm.policy import loader
from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.elastic import ElasticTest


class TestPolicyCommands(ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def rows(self, status, *arguments):
        ended, stdout, stderr = self.run_command(*arguments, "-f", "json")
        self.assertEqual(status, ended, stderr)
        return json.loads(stdout)

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
        self.assert_command(1, "no compute host h9", "host", "show", "h9")

        self._check()
        self._diff()

    def _check(self):
        rows = self.rows(1, "policy", "check")
        before = {row["Check"]: row for row in rows}
        self.assertEqual("WARNING", before["Flavors"]["Result"])
        self.assertEqual("UNKNOWN", before["Filters"]["Result"])
        self.assertIn(loader.load().digest, rows[0]["Details"])
        # Each that counts has a code, and with that in the policy it is a note.
        counting = [r["Code"] for r in rows if r["Result"] in {"WARNING", "UNKNOWN"}]
        self.assertEqual(["policy.flavors_differ", "options.filters_unknown"], counting)
        accepting = self.write_policy(accept=counting)
        noted = {r["Code"]: r for r in self.rows(0, "policy", "check", accepting)}
        for code in counting:
            self.assertEqual("NOTE", noted[code]["Result"])
            self.assertIn("accepted in the policy", noted[code]["Details"])
        wrong = self.write_policy(accept=["policy.flavor_differs"])
        hint = "did you mean policy.flavors_differ"
        self.assert_command(3, hint, "policy", "check", wrong)
        self.assert_command(0, "create", "flavor", "sync", "--yes")
        (conf,) = self.files(
            "[filter_scheduler]\nenabled_filters = PerfVMFilter,NUMATopologyFilter\n"
        )
        self.assert_command(0, "NOTE", "policy", "check", "--nova-conf", conf)
        results = {
            row["Check"]: row["Result"]
            for row in self.rows(0, "policy", "check", "--nova-conf", conf)
        }
        # That of the policy is the built-in one's advice.
        self.assertEqual("NOTE", results.pop("Policy"))
        self.assertEqual("NOTE", results.pop("Filters"))
        self.assertEqual({"SUCCESS"}, set(results.values()))
        # A policy need not list flavors; all else is judged as before.
        classes = self.policy.as_document()["classes"]
        for vm_class in classes.values():
            vm_class.pop("flavors")
        unlisted = self.write_policy(classes=classes)
        arguments = ("policy", "check", unlisted, "--nova-conf", conf)
        rows = {row["Check"]: row["Result"] for row in self.rows(0, *arguments)}
        self.assertEqual(results, {k: v for k, v in rows.items() if k in results})

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
            with self.subTest(command):
                status, stdout, stderr = self.run_command(*command)
                self.assertNotEqual(0, status)
                self.assertEqual(("", ""), (stdout, self.policy_said))
                self.assertIn("no policy is named", stderr)
                self.assertEqual(1, len(stderr.splitlines()), stderr)
        self.assert_ordinary("h1")
        # What only looks says that it is the built-in one.
        self.said("host", "list")
        self.assertEqual(built_in, self.policy_said)

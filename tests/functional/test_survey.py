# SPDX-License-Identifier: Apache-2.0
"""A survey of a real Nova and Placement, by those who may read all, some and little."""

import json
import pathlib

import fixtures
from oslo_policy import policy as oslo_policy

from nova_perfvm.cloud import rights
from nova_perfvm.facts.snapshot import ASSUMED
from nova_perfvm.policy import loader
from nova_perfvm.sandbox.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base, client

PINNED_20 = "pinned-20"
READER = {"user": "reader", "roles": "reader"}
MIGRATIONS = "os_compute_api:os-migrations:index"


class TestSurvey(client.ClientMixin, base.FunctionalTest):
    """Of a cloud with pinned VMs that knows nothing of the project."""

    CLOUD = None
    FLAVORS = ()
    POLICY = None

    def setUp(self):
        super().setUp()
        self.start_cloud(enabled_filters=FILTERS_WITHOUT_PERFVM)
        self.cloud.create_flavor(PINNED_20, 20, 65536, 0, base.PINNED)
        self.cloud.create_flavor("plain", 2, 4096, 0, {})
        self.cloud.start_host("pool1", dedicated="0-39")
        self.cloud.start_host("pool2", dedicated="0-39")
        self.cloud.start_host("g1", shared="0-39")
        self.boot(PINNED_20, host="pool1")
        self.boot("plain", host="g1")
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def survey(self, *options, **identity):
        """Return the exit status, {(part, what): number} and what was said."""
        status, stdout, stderr = self.run_command(
            "survey", "-f", "json", *options, **identity
        )
        rows = json.loads(stdout)
        found = {(row["Part"], row["What"]): row["Number"] for row in rows}
        return status, found, stderr

    def test_an_administrator_sees_all(self):
        path = self.directory / "perfvm.yaml"
        asked = []
        request = client.session.Session.request

        def watched(self, url, method, *arguments, **options):
            asked.append(method)
            return request(self, url, method, *arguments, **options)

        self.useFixture(
            fixtures.MonkeyPatch("keystoneauth1.session.Session.request", watched)
        )
        status, found, said = self.survey("--policy-out", str(path))

        # There is no Glance beside this cloud.
        self.assertEqual(1, status)
        self.assertIn("not seen: images", said)
        self.assertGreater(len(asked), 10)
        self.assertEqual({"GET"}, set(asked))
        self.assertEqual(2, found["hosts", "2x20 dedicated"])
        self.assertEqual(1, found["hosts", "2x20 open"])
        self.assertEqual(1, found["pinned VMs", "20 vCPUs"])
        slots = [found["slots", what] for what in ("used", "free", "unfit", "possible")]
        self.assertEqual([1, 3, 0, 2], slots)
        self.assertIn(("findings", "audit.no_multiqueue"), found)
        policy = loader.load(path)
        (vm_class,) = policy.pinned_classes
        self.assertEqual(20, vm_class.vcpus)
        self.assertEqual("labelled", policy.managed_hosts)
        self.assertEqual(
            0, self.run_command("policy", "show", "--policy", str(path))[0]
        )

    def test_a_reader_is_told_what_it_takes(self):
        status, found, said = self.survey(**READER)

        self.assertEqual(1, status)
        for what in ("hypervisors", "services", "servers", "providers", "aggregates"):
            self.assertIn(("gaps", what), found)
            self.assertIn(rights.RULES[what][0], said)
        self.assertIn("no policy can be proposed", said)
        self.assertNotIn(("slots", "used"), found)

        page = self.directory / "page.html"
        options = ("-f", "html", "--output", str(page))
        status, _, said = self.run_command("survey", *options, **READER)
        self.assertEqual(1, status, said)
        self.assertIn("os_compute_api:os-hypervisors:list-detail", page.read_text())
        # Where a policy is asked for, none is no report.
        path = self.directory / "perfvm.yaml"
        options = ("--policy-out", str(path))
        status, _, said = self.run_command("survey", *options, **READER)
        self.assertEqual(3, status)
        self.assertIn("no policy is written", said)
        self.assertFalse(path.exists())

    def test_a_role_of_these_rules_sees_all_but_the_pins(self):
        self._let("auditor")
        identity = {"user": "auditor", "roles": "reader,auditor"}

        status, found, said = self.survey(**identity)

        self.assertEqual(1, status)
        gaps = {what for part, what in found if part == "gaps"}
        # Of Placement no role but that of administrators is one here.
        self.assertEqual(
            {
                *("images", "providers", "names", "topologies"),
                *("NUMA nodes, CPU sets", "nova.conf, placement.conf"),
            },
            gaps,
        )
        self.assertEqual(3, found["hosts", "2x20 open"])
        self.assertEqual(1, found["pinned VMs", "20 vCPUs"])
        self.assertNotIn("audit.not_pinned", said)
        self.assertIn(ASSUMED, json.dumps(self._hosts(identity)))

    def _hosts(self, identity):
        _, stdout, _ = self.run_command("survey", "-f", "html", **identity)
        return stdout

    def _let(self, role):
        """Let a role read what the table of rules says, as policy.yaml would."""
        # Only beside a cloud that runs.
        from nova import policy

        enforcer = policy.get_enforcer()
        rules = {
            name: f"rule:context_is_admin or role:{role}"
            for names in rights.RULES.values()
            for name in names
            if name.startswith("os_compute_api:")
        }
        self.assertLess(6, len(rules))
        # Nova 31 has one rule for one's own migrations and those of others.
        known = {*enforcer.registered_rules, f"{MIGRATIONS}:all_projects"}
        self.assertIn(MIGRATIONS, enforcer.registered_rules)
        self.assertEqual(set(), rules.keys() - known)
        before = dict(enforcer.rules)
        self.addCleanup(enforcer.set_rules, oslo_policy.Rules(before), True, False)
        parsed = oslo_policy.Rules.from_dict(rules)
        enforcer.set_rules(oslo_policy.Rules({**before, **parsed}), True, False)

# SPDX-License-Identifier: Apache-2.0
"""The commands with the rights that doc/source/admin/rights.rst says they need."""

import pathlib
import re

import fixtures
import yaml
from nova.tests import fixtures as nova_fixtures
from placement import policy as placement_policy

from tests import programs
from tests.functional import base, client
from tests.functional.glance import GlanceFixture

PAGE = pathlib.Path(__file__).parents[2] / "doc/source/admin/rights.rst"
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+")
AUDITOR = {"user": "ann", "roles": "reader,auditor"}
MANAGER = {"user": "ben", "roles": "manager,member,reader"}
# One line, with the rule.
REFUSED = (
    r"^\w+: GET \S+: 403: .*(placement|os_compute_api):\S+ .*"
    r"rights of an administrator: .* policy\.yaml .*\n$"
)
# The commands that read a cloud, as they are called, and what they end with.
READING = {
    "audit": ([], 0),
    "capacity show": ([], 0),
    "explain": (["--flavor", base.HP_64], 0),
    "known-bugs": (["--to", "34"], 0),
    "map": ([], 0),
    "metrics": ([], 0),
    "plan defragment": (["--budget", "1"], 2),
    "plan drain": (["hp1"], 0),
    "plan free": (["--flavor", base.HP_64], 0),
    "plan what-if": (["--remove", "hp2"], 0),
    "survey": ([], 0),
    "host list": ([], 0),
    "host show": (["hp1"], 0),
    "policy check": ([], 1),
    "policy diff": (["builtin", "builtin"], 0),
    "preflight": ([], 1),
    "server check": (["--host", "hp1"], 0),
    "snapshot save": (["-"], 0),
}
CHANGING = {"flavor sync": [], "plan drain": ["hp1", "--execute"]}


class OwnRules(nova_fixtures.RealPolicyFixture):
    """Nova's rules as they are by default, but for some."""

    def __init__(self, rules):
        super().__init__()
        self.rules = rules

    def _prepare_policy(self):
        self.policy_file = self.useFixture(fixtures.TempDir()).join("policy.yaml")
        pathlib.Path(self.policy_file).write_text(yaml.safe_dump(self.rules))


class TestRights(client.ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def setUp(self):
        super().setUp()
        self.glance = self.useFixture(GlanceFixture())
        for name in ("hp1", "hp2"):
            self.cloud.start_configured(name, self.policy, "dedicated")
        self.server = self.boot(host="hp1")
        self.text = PAGE.read_text()
        self.project = self.cloud.api.project_id

    def connection(self, user, roles):
        made = super().connection(user, roles)
        auth = made.session.auth
        auth._project = auth._headers["X-Auth-Project-Id"] = self.project
        return made

    def set_rules(self, nova, placement):
        self.useFixture(OwnRules(nova))
        conf = self.cloud._services.placement.fixture.conf_fixture
        path = self.useFixture(fixtures.TempDir()).join("policy.yaml")
        pathlib.Path(path).write_text(yaml.safe_dump(placement))
        conf.config(group="oslo_policy", policy_file=path, enforce_new_defaults=True)
        placement_policy.reset()
        placement_policy.init(conf.conf)

    def page_rules(self):
        """Return the rules for Nova and for Placement that the page shows."""
        shown = r"\.\. code-block:: yaml\n\n((?:    .*\n)+)"
        return map(yaml.safe_load, re.findall(shown, self.text))

    def page_rows(self):
        """Return the commands of each row of the page's table."""
        for row in self.text.split("   * - ")[2:]:
            commands, _, _ = row.partition("\n     - ")
            commands, _, _ = commands.partition(";")
            yield set(re.findall("``([^`]+)``", commands))

    def test_the_page_has_each_command_that_asks_a_cloud(self):
        rows = list(self.page_rows())
        named = set().union(*rows)
        self.assertEqual(len(named), sum(map(len, rows)))
        self.assertEqual(set(READING), rows[0] | rows[1])
        client = programs.COMMANDS["openstack"].keys()
        script = programs.COMMANDS["nova-perfvm"].keys()
        self.assertEqual(set(), named - client)
        # The console script has no cloud.
        self.assertEqual(set(), client - named - script - {"help"})

    def test_who_only_reads(self):
        """By the page's rules it sees what an administrator sees, and changes nothing.

        Not so with Nova's and Placement's own rules, whatever other role it is.
        """
        self.set_rules(*self.page_rules())
        for name, (arguments, status) in READING.items():
            called = [*name.split(), *arguments]
            expected, printed, _ = self.run_command(*called)
            ended, same, said = self.run_command(*called, **AUDITOR)
            self.assertEqual((status, status), (expected, ended), f"{name}: {said}")
            self.assertNotIn("not seen: ", said, name)
            # These have the time in them, as a number, or compressed.
            if name not in {"map", "metrics", "snapshot save"}:
                self.assertEqual(TIME.sub("", printed), TIME.sub("", same), name)
        for name, arguments in CHANGING.items():
            called = [*name.split(), *arguments, "--yes", "--policy", "builtin"]
            ended, _, said = self.run_command(*called, **AUDITOR)
            self.assertIn("rights of an administrator", said, name)
            self.assertIn(ended, (1, 3), name)
        self.assertEqual("hp1", self.servers.show(self.server).host)
        self.set_rules({}, {})
        for name, (arguments, _) in READING.items():
            called = [*name.split(), *arguments]
            ended, printed, said = self.run_command(*called, **MANAGER)
            self.assertIn(ended, (1, 3), name)
            self.assertEqual("", printed, name)
            self.assertRegex(said, REFUSED)

    def test_pins_of_others_are_said_to_be_hidden(self):
        self.set_rules(*self.page_rules())
        self.project = "another"
        status, printed, said = self.run_command("audit", **AUDITOR)
        self.assertEqual(0, status, printed)
        self.assertIn("not seen: pins: unknown for 1 server", said)
        self.assertIn("audit.not_seen\n    pins: unknown for 1 server", printed)
        self.assertIn("0 failure, 0 warning", said)

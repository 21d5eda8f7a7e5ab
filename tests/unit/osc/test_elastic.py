# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import pathlib
import types

import fixtures
import testtools
import yaml
from cliff.app import App
from cliff.commandmanager import CommandManager

from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.facts.recorded_policy import RecordedPolicy
from nova_perfvm.facts.snapshot import DISABLED_REASON, Provider
from nova_perfvm.osc import elastic, policy_cloud
from tests import console
from tests.unit.changes.elastic import POLICY, ROOT, server, view
from tests.unit.facts.snapshot.clouds import Cloud

COMMANDS = {
    "enroll": elastic.EnrollHost,
    "unenroll": elastic.UnenrollHost,
    "rollback": elastic.Rollback,
    "preflight": elastic.Preflight,
    "check": policy_cloud.CheckCloudPolicy,
}


class Commands(CommandManager):
    """Those of this module, as the client has them."""

    def load_commands(self, namespace):
        for name, command in COMMANDS.items():
            self.add_command(name, command)


class CloudCommandCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch("logging.root.handlers", []))
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.policy = directory / "perfvm.yaml"
        self.policy.write_text(yaml.safe_dump(POLICY.as_document()))
        self.answer("policy_record.read", RecordedPolicy(POLICY.digest))

    def run_command(self, *arguments):
        """Return the exit status, and what is said on stderr."""
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()) as stderr,
        ):
            app = App("", "1", Commands("nova_perfvm.none"))
            app.client_manager = types.SimpleNamespace(perfvm=None)
            status = app.run([*arguments, "--policy", str(self.policy)])
        return status, console.without_policy(stderr.getvalue())

    def answer(self, name, value):
        """Let a function that looks at the cloud give a value, or raise it."""

        def give(*_arguments, **_options):
            if isinstance(value, Exception):
                raise value
            return value

        self.useFixture(fixtures.MonkeyPatch(f"nova_perfvm.cloud.{name}", give))


class RefusedTest(CloudCommandCase):
    ENABLE = "openstack compute service set --enable h1 nova-compute"

    def see(self, *servers, **facts):
        seen = view(*servers, **facts)
        self.answer("live_hosts.read_host", seen)
        self.answer("live_hosts.hypervisors", [])
        self.answer("rollback.read_snapshot", seen.cloud)

    def test_what_a_run_that_was_cut_off_has_left(self):
        off = {"enabled": False, "disabled_reason": DISABLED_REASON}
        self.answer("answers.aggregates", [])
        self.answer("answers.names", frozenset())
        child = Provider(
            "c", "h1_perfvm_a", 1, allocations={"a": {"X": 1}}, parent=ROOT, root=ROOT
        )
        for arguments, facts in (
            (["enroll", "h1", "--yes"], {}),
            (["enroll", "h1", "--dry-run"], {}),
            (["unenroll", "h1", "--yes"], {"others": (child,)}),
            (["rollback", "--yes"], {"others": (child,)}),
        ):
            with self.subTest(arguments):
                self.see(server("a"), service=off, **facts)
                status, stderr = self.run_command(*arguments)
                self.assertEqual(1, status)
                self.assertIn("units", stderr)
                self.assertIn(self.ENABLE, stderr)
                self.see(server("a"), **facts)
                status, stderr = self.run_command(*arguments)
                self.assertEqual(1, status)
                self.assertNotIn(self.ENABLE, stderr)


class ChecksTest(CloudCommandCase):
    def test_nothing_could_be_looked_at(self):
        self.answer("snapshot.read_snapshot", CloudError("Placement does not answer"))
        self.answer("flavors.plan", CloudError("Nova does not answer"))
        for command, words in (
            (["preflight"], "Placement does not answer"),
            (["preflight", "--nova-conf", "/no"], "/no cannot be read"),
            (["check"], "Nova does not answer"),
        ):
            with self.subTest(command):
                status, stderr = self.run_command(*command)
                self.assertEqual((3, words), (status, stderr[: len(words)]))

    def test_what_decides(self):
        cloud = Cloud(POLICY)
        cloud.add_host("h1", "open")
        self.answer("snapshot.read_snapshot", cloud.snapshot())
        # What no API shows is not taken for right.
        self.assertEqual(1, self.run_command("preflight", "h1")[0])
        status, stderr = self.run_command("preflight", "h2")
        self.assertEqual(3, status)
        self.assertIn("there is no compute host 'h2' (the nearest: h1)", stderr)

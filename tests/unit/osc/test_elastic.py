# SPDX-License-Identifier: Apache-2.0


import fixtures
import yaml

from nova_perfvm.facts.recorded_policy import RecordedPolicy
from nova_perfvm.facts.snapshot import DISABLED_REASON, Provider
from tests import console
from tests.directory import DirectoryCase
from tests.unit.changes.elastic import POLICY, ROOT, server, view
from tests.unit.facts.snapshot.clouds import Cloud
from tests.unit.osc import invocations

# What asks it is replaced.
CLOUD = object()


class CloudCommandCase(DirectoryCase):
    def setUp(self):
        super().setUp()
        self.policy = self.directory / "perfvm.yaml"
        self.policy.write_text(yaml.safe_dump(POLICY.as_document()))
        self.answer("policy_record.read", RecordedPolicy(POLICY.digest))

    def run_command(self, *arguments):
        """Return the exit status, and what is said on stdout and stderr."""
        arguments = [*arguments, "--policy", self.policy]
        status, stdout, stderr = invocations.run("openstack", arguments, CLOUD)
        return status, stdout, console.without_policy(stderr)

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
            (["host", "enroll", "h1", "--yes"], {}),
            (["host", "enroll", "h1", "--dry-run"], {}),
            (["host", "unenroll", "h1", "--yes"], {"others": (child,)}),
            (["rollback", "--yes"], {"others": (child,)}),
        ):
            with self.subTest(arguments):
                self.see(server("a"), service=off, **facts)
                status, _, stderr = self.run_command(*arguments)
                self.assertEqual(1, status)
                self.assertIn("units", stderr)
                self.assertIn(self.ENABLE, stderr)
                self.see(server("a"), **facts)
                status, _, stderr = self.run_command(*arguments)
                self.assertEqual(1, status)
                self.assertNotIn(self.ENABLE, stderr)


class ChecksTest(CloudCommandCase):
    def test_what_decides(self):
        cloud = Cloud(POLICY)
        cloud.add_host("h1", "open")
        self.answer("snapshot.read_snapshot", cloud.snapshot())
        # What no API shows is not taken for right.
        self.assertEqual(1, self.run_command("preflight", "h1")[0])
        for words, *arguments in (
            ("there is no compute host 'h2' (the nearest: h1)", "h2"),
            ("/no cannot be read", "--nova-conf", "/no"),
        ):
            status, _, stderr = self.run_command("preflight", *arguments)
            self.assertEqual(3, status)
            self.assertIn(words, stderr)

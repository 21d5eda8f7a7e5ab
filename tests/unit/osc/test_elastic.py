# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import re

import fixtures
import yaml

from nova_perfvm.changes.steps import Plan
from nova_perfvm.facts.recorded_policy import RecordedPolicy
from nova_perfvm.facts.snapshot import DISABLED_REASON, Provider
from nova_perfvm.policy import loader
from tests import console
from tests.directory import DirectoryCase
from tests.unit.changes.elastic import POLICY, ROOT, server, view
from tests.unit.facts.snapshot.clouds import Cloud
from tests.unit.measure import hosts
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
        drain = "openstack perfvm plan drain h1 --execute"
        for arguments, facts, words in (
            (["host", "enroll", "h1", "--yes"], {}, "without units"),
            (["host", "enroll", "h1", "--dry-run"], {}, "without units"),
            (["host", "unenroll", "h1", "--yes"], {"others": (child,)}, drain),
            (["rollback", "--yes"], {"others": (child,)}, "rollback --strip-units"),
        ):
            self.see(server("a"), service=off, **facts)
            status, _, stderr = self.run_command(*arguments)
            self.assertEqual(1, status)
            self.assertIn(words, stderr)
            self.assertIn(self.ENABLE, stderr)
            self.see(server("a"), **facts)
            status, _, stderr = self.run_command(*arguments)
            self.assertEqual(1, status)
            self.assertNotIn(self.ENABLE, stderr)


class CollectedTest(CloudCommandCase):
    """Of a host that is to be enrolled by NUMA node."""

    def setUp(self):
        super().setUp()
        policy = dataclasses.replace(loader.load(), placement="cells")
        self.policy.write_text(yaml.safe_dump(policy.as_document()))
        self.answer("live_hosts.hypervisors", [])
        self.answer("live_hosts.detached_children", [])
        self.answer("policy_record.read", None)

    def enroll(self, cpus, found, *options):
        """Try it on a host with so many CPUs, by what was collected there."""
        self.answer("live_hosts.read_host", view(total=cpus, resource="PCPU"))
        path = self.directory / "h1.json"
        path.write_text(hosts.as_json(dataclasses.replace(found, hostname="h1")))
        arguments = ("host", "enroll", "h1", "--dry-run", "--collected", path)
        return self.run_command(*arguments, *options)

    def test_cpus_of_each_node(self):
        conf = self.directory / "nova.conf"
        conf.write_text("[compute]\ncpu_dedicated_set = 1-19,22-39\n")
        for cpus, options, expected in ((40, (), "20, 20"), (37, (conf,), "19, 18")):
            named = [word for path in options for word in ("--nova-conf", path)]
            status, steps, stderr = self.enroll(cpus, hosts.host(vms=0), *named)
            self.assertEqual(0, status, stderr)
            found = re.findall(r"CUSTOM_PERFVM_CELL_CPU (\d+)", steps)
            self.assertEqual(expected, ", ".join(found), steps)

    def test_what_does_not_agree_with_placement(self):
        status, _, stderr = self.enroll(36, hosts.host())
        self.assertEqual(1, status)
        for words in ("40 dedicated CPUs, and Placement counts 36", "--nova-conf"):
            self.assertIn(words, stderr)

    def test_what_was_not_read(self):
        blind = dataclasses.replace(hosts.host(), files={})
        status, _, stderr = self.enroll(40, blind)
        self.assertEqual(1, status)
        self.assertIn("h1.json: ", stderr)
        self.assertIn("was not collected", stderr)


class ChecksTest(CloudCommandCase):
    def test_what_nova_conf_says_of_the_policy(self):
        cloud = Cloud(POLICY)
        cloud.add_host("h1", "dedicated")
        self.answer("snapshot.read_snapshot", cloud.snapshot())
        self.answer("flavors.plan", Plan())
        conf, policy = self.directory / "nova.conf", self.policy
        off, unlike = "options.mode_observe", "options.not_enforced"
        for lines, code in (
            (f"policy_file = {policy}\nmode = enforce", None),
            (f"policy_file = {policy}\nmode = observe", off),
            (f"policy_file = {policy}\nmode = observ", unlike),
            ("mode = enforce", unlike),
            ("policy_file =", unlike),
            (f"policy_file = {conf}", unlike),
            (f"policy_file = {policy}2", "options.enforced_unknown"),
        ):
            conf.write_text(f"[perfvm]\n{lines}\n")
            for command in (("preflight",), ("policy", "check")):
                _, stdout, stderr = self.run_command(
                    *command, "--nova-conf", str(conf), "-f", "json"
                )
                found = {row["Code"] for row in json.loads(stdout)}
                mine = found & {off, unlike, "options.enforced_unknown"}
                self.assertEqual({code} - {None}, mine, stderr)

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

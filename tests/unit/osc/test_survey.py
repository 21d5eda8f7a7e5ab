# SPDX-License-Identifier: Apache-2.0
"""The survey of a saved snapshot, and of hosts, by the console script."""

import csv
import io
import json

import fixtures

from nova_perfvm.osc.formats import survey
from nova_perfvm.policy import TYPE_TO_CHOOSE, loader
from tests.unit.changes.test_recover import scattered
from tests.unit.diagnose.survey import clouds
from tests.unit.osc.base import CommandCase
from tests.unit.osc.test_audit import EVIL
from tests.unit.page_elements import Elements


class SurveyCase(CommandCase):
    def setUp(self):
        super().setUp()
        self.policy = self.directory / "perfvm.yaml"

    def survey(self, cloud, *options):
        return self.run_command("survey", "--snapshot", self.save(cloud), *options)


class SurveyTest(SurveyCase):
    def test_the_policy_of_each_cloud_is_proved(self):
        for make in clouds.ALL:
            status = self.survey(make(), "--policy-out", self.policy)
            self.assertEqual(0, status, self.stderr)
            text = self.policy.read_text()
            # As an operator does, where Cinder cannot tell.
            loader.parse(text.replace(TYPE_TO_CHOOSE, "nvme-tcp"))
            self.assertIn("\n# vcpus: ", text)
            self.survey(make(), "-f", "html")
            self.assertIn("What would it bring me?", Elements(self.stdout).text)

    def test_a_volume_type_to_choose_stops_all_that_read_the_policy(self):
        cloud = clouds.empty()
        cloud.parts["volume_types"] = ("fast", "slow")
        self.assertEqual(0, self.survey(cloud, "--policy-out", self.policy))
        self.assertIn("write the volume_type before flavor sync", self.stderr)
        self.assertIn("of Cinder's types: fast, slow", self.stderr)
        self.assertIn("Cinder's types: fast, slow", self.policy.read_text())
        for command, *words in (
            ("policy check", "policy", "check", self.policy),
            ("flavor generate", "flavor", "generate", "--policy", self.policy),
        ):
            self.assertNotEqual(0, self.run_command(*words), command)
            self.assertIn("disk.volume_type: found 'CHOOSE_A", self.stderr, command)
            self.assertIn("(openstack volume type list)", self.stderr, command)
        text = self.policy.read_text().replace(TYPE_TO_CHOOSE, "fast")
        self.policy.write_text(text)
        self.assertEqual(0, self.run_command("policy", "check", self.policy))

    def test_another_size(self):
        for vcpus, status, words in (
            ("4", 0, ""),
            ("64", 3, "of 2x20 has room"),
            ("0", 3, "'0': expected a whole number above 0"),
        ):
            self.policy.unlink(missing_ok=True)
            options = ("--vcpus", vcpus, "--policy-out", self.policy)
            self.assertEqual(status, self.survey(clouds.pools(), *options))
            self.assertIn(words, self.stderr)
            self.assertEqual(status == 0, self.policy.exists())

    def test_figures_in_each_format(self):
        self.assertEqual(0, self.survey(scattered(), "-f", "json"))
        rows = {(r["Part"], r["What"]): r for r in json.loads(self.stdout)}
        won = rows["slots", "recoverable"]
        self.assertEqual(2, won["Number"])
        self.assertIn("by 2 migrations", won["Details"])
        cloud = clouds.pools()
        cloud.parts["gaps"] = ("images: no Glance",)
        # Gaps are the exit status.
        self.assertEqual(1, self.survey(cloud, "-f", "json"))
        self.assertIn("not seen: images: no Glance", self.stderr)
        rows = {(r["Part"], r["What"]): r["Number"] for r in json.loads(self.stdout)}
        self.assertEqual(4, rows["hosts", "2x20 dedicated"])
        self.assertEqual(3, rows["slots", "unfit"])
        self.assertIn("slots: 3 used, 2 free, 3 unfit", self.stderr)
        self.survey(cloud, "-f", "csv")
        self.assertEqual(len(rows) + 1, len(list(csv.reader(io.StringIO(self.stdout)))))

    def test_hosts_to_convert(self):
        """h1, h2 and h3 have 1, 2 and 3 VMs of 2 vCPUs on 48 CPUs."""
        for what, ratio, hosts, words in (
            ("as Placement", (), ["h0", "h1", "h2"], "6 more on 3 hosts that can be"),
            (
                "sparser",
                ("--max-ratio", "0.05"),
                ["h0"],
                "2 more on 1 host that can be",
            ),
        ):
            status = self.survey(clouds.shared_only(), "-f", "json", *ratio)
            self.assertEqual(0, status, self.stderr)
            rows = json.loads(self.stdout)
            found = {r["What"]: r["Details"] for r in rows if r["Part"] == "convert"}
            self.assertEqual(hosts, list(found), what)
            for host, details in found.items():
                command = ("plan drain", host, "--policy perfvm.yaml", *ratio)
                moved = {"h0": "", "h1": "1 server: ", "h2": "3 servers: "}[host]
                planned = f"openstack perfvm {' '.join(command)}"
                self.assertEqual(f"{moved}{planned}", details, what)
            numbers = {r["What"]: r["Number"] for r in rows if r["Part"] == "slots"}
            self.assertEqual(2 * len(hosts), numbers["convertible"], what)
            self.assertEqual(8, numbers["possible"], what)
            self.assertIn(words, self.stderr, what)
            self.assertIn("vCPUs for each CPU, on", self.stderr, what)
        self.survey(clouds.shared_only(), "-f", "html", *ratio)
        self.assertIn("1 host to convert", Elements(self.stdout).text)
        self.assertNotIn("plan drain h1 ", self.stdout)

    def test_with_a_policy_of_ones_own(self):
        self.survey(clouds.pools(), "--policy-out", self.policy)
        mine = str(self.policy)
        self.assertEqual(0, self.survey(clouds.pools(), "--policy", mine))
        self.assertNotIn("| policy ", self.stdout)
        other = ("--policy-out", self.directory / "other")
        self.assertEqual(3, self.survey(clouds.pools(), "--policy", mine, *other))
        self.assertIn("a policy is proposed only without it", self.stderr)
        # As after `eval "$(python -m tests.sandbox openrc)"`, which names one.
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY", mine))
        self.assertEqual(0, self.survey(clouds.pools(), *other), self.stderr)
        self.assertTrue(other[1].exists())
        # Without a proposal it is the one to judge by.
        self.survey(clouds.pools())
        self.assertIn(f"policy: {mine} (sha256", self.stderr)
        self.assertNotIn("| policy ", self.stdout)

    def test_mistakes(self):
        path = self.save(clouds.pools())
        for words, *options in (
            ("cannot read /no", "--collected", "/no"),
            ("not JSON", "--snapshot", __file__),
            ("cannot write /no/no", "--snapshot", path, "--output", "/no/no"),
        ):
            self.assert_refused(3, words, "survey", *options)


class PageTest(SurveyCase):
    def page(self, cloud):
        status = self.survey(cloud, "-f", "html")
        self.assertLess(status, 2, self.stderr)
        found = Elements(self.stdout)
        self.assertEqual([], found.faults)
        return found.text

    def test_all_parts_are_there(self):
        text = self.page(clouds.pools())
        for words in (
            "Slots for VMs of 20 vCPUs",
            "Not seen",
            "VMs with CPUs of their own",
            "failure: audit.classes_mixed (1)",
            "A policy for this cloud",
            "schema_version: '1.0'",
            "The way there",
            "openstack perfvm flavor sync --policy perfvm.yaml",
            "node 1: 4 of 20 CPUs",
        ):
            self.assertIn(words, text)

    def test_findings_of_a_kind_are_together_and_many_are_counted(self):
        text = self.page(scattered())
        self.assertEqual(1, text.count("audit.no_multiqueue ("))
        self.assertIn("audit.no_multiqueue (3)", text)
        self.assertIn("2 migrations, in their order", text)
        self.assertRegex(text, r"b\d: h\d to h\d\s*openstack .*server migrate")
        cloud = clouds.pools()
        for number in range(20):
            cloud.add_host(f"x{number}")
            cloud.add_pinned(f"x{number}", f"x{number}", "db.4")
        text = self.page(cloud)
        self.assertIn(f"and {22 - survey.MOST_FINDINGS} more of these", text)

    def test_names_of_anybody(self):
        cloud = clouds.pools()
        name = EVIL.replace("\n", "") + "<script>alert(1)</script>"
        cloud.add_flavor(name, 20, 64, {**clouds.PINNED, name: "x"})
        cloud.add_pinned(name, "p3", name)
        cloud.parts["gaps"] = (f"images: {name}",)
        self.page(cloud)
        self.assertNotIn("<script>", self.stdout)
        self.assertNotIn("\x1b", self.stdout)
        self.survey(cloud, "--policy-out", self.policy)
        self.assertNotIn("\x1b", self.policy.read_text())
        loader.load(self.policy)

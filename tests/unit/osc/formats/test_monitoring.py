# SPDX-License-Identifier: Apache-2.0
"""Metrics, and the alerts and the dashboard that use them."""

import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys

import fixtures
import testtools
import yaml
from prometheus_client import parser

from nova_perfvm.diagnose import overview
from nova_perfvm.facts.snapshot import Inventory
from nova_perfvm.osc.formats import monitoring
from tests.unit.facts.snapshot.clouds import HP, POLICY, Cloud

ROOT = pathlib.Path(__file__).parents[4]
RULES = ROOT / "etc/nova_perfvm/prometheus/perfvm.rules.yml"
RULE_LIST = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
DASHBOARD = ROOT / "etc/nova_perfvm/grafana/perfvm.json"
# Words of PromQL that stand where a metric may.
WORDS = {
    *("absent", "and", "by", "on", "or", "sum", "time", "topk", "unless", "without"),
}
MINUTES = 180


def small():
    """Return a cloud in which nothing is wrong and something is free."""
    cloud = Cloud()
    for name in ("hp1", "hp2"):
        cloud.add_host(name)
    cloud.add_hp("a", "hp1")
    cloud.add_host("g1", "shared")
    cloud.change_inventories("g1", DISK_GB=Inventory(4000, 4000))
    return cloud


def metrics(cloud):
    return monitoring.overview(overview.look(POLICY, cloud.snapshot()))


def names(expression):
    """Return the metrics of an expression, whose syntax promtool knows."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\b(?:by|without|on)\s*\([^)]*\)|\[[^]]*\]", "", bare)
    return set(re.findall(r"[a-zA-Z_:][\w:]*", bare)) - WORDS


def written():
    """Return the names of all metrics that there are."""
    return set(re.findall(r"^# TYPE (\w+) ", metrics(small()), re.MULTILINE))


class PromtoolCase(testtools.TestCase):
    def promtool(self, *arguments, given=None):
        """Run promtool; return what it says."""
        program = shutil.which("promtool")
        if program is None:
            why = "no promtool: Debian's package prometheus has it"
            print(f"SKIPPED {self.id()}: {why}", file=sys.stderr)  # noqa: T201
            self.skipTest(why)
        return subprocess.run(
            [program, *map(str, arguments)],
            check=False,
            input=given,
            capture_output=True,
            text=True,
        )

    def assert_good(self, *arguments, given=None):
        done = self.promtool(*arguments, given=given)
        self.assertEqual(0, done.returncode, f"{done.stdout}\n{done.stderr}")

    def file(self, document):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).join("file.yml"))
        path.write_text(yaml.safe_dump(document))
        return path


class DocumentedTest(testtools.TestCase):
    """The page lists what there is."""

    def setUp(self):
        super().setUp()
        self.text = (ROOT / "doc/source/admin/monitoring.rst").read_text()

    def listed(self, pattern):
        return re.findall(rf"^   \* - ``{pattern}``$", self.text, re.MULTILINE)

    def test_every_metric_with_its_labels(self):
        documented = {
            name: set(labels.split(", ")) if labels else set()
            for name, labels in self.listed(r"(perfvm_(?!filter_)\w+)(?:{([\w, ]+)})?")
        }
        found = {
            sample.name: set(sample.labels)
            for family in parser.text_string_to_metric_families(metrics(small()))
            for sample in family.samples
        }
        self.assertEqual(found, documented)

    def test_every_alert(self):
        alerts = [rule["alert"] for rule in RULE_LIST]
        self.assertEqual(alerts, self.listed(r"(PerfVM\w+)"))


class MetricsTest(PromtoolCase):
    def test_samples(self):
        text = metrics(small())
        self.assert_good("check", "metrics", given=text)
        samples = {
            (sample.name, *sample.labels.values()): sample.value
            for family in parser.text_string_to_metric_families(text)
            for sample in family.samples
        }
        hp = "high-performance"
        for name, host, expected in (
            *(("", "hp1", 2), ("_used", "hp1", 1), ("_free", "hp1", 1)),
            *(("_unfit", "hp1", 0), ("", "g1", 0)),
        ):
            self.assertEqual(expected, samples[f"perfvm_slots{name}", host, hp], name)
        self.assertEqual(2, samples["perfvm_hosts_accepting", HP, hp])
        refused = {
            key[-1]: value
            for key, value in samples.items()
            if key[:-1] == ("perfvm_hosts_refusing", HP, hp)
        }
        # Also those of no host, so that each series is there from the start.
        self.assertEqual(set(overview.CODES), set(refused))
        self.assertEqual(1, refused["placement.trait_missing"])
        self.assertEqual(3, samples["perfvm_audit_hosts",])

    def test_names_are_labels(self):
        cloud = small()
        evil = 'h"} 1\nforged 2\\'
        cloud.add_host(evil)
        families = parser.text_string_to_metric_families(metrics(cloud))
        found = {s.labels.get("host") for f in families for s in f.samples}
        self.assertIn(evil, found)


class AlertsTest(PromtoolCase):
    """The rules on series of the clouds that they are about, by Prometheus itself."""

    def firing(self, cloud, taken_at=MINUTES * 60):
        """Return the alerts of a cloud that has been so for some hours."""
        text = metrics(cloud)
        stamp = r"^(perfvm_audit_timestamp_seconds) \d+$"
        text = re.sub(stamp, rf"\1 {taken_at}", text, flags=re.MULTILINE)
        series = [
            {"series": name, "values": f"{value}x{MINUTES}"}
            for name, value in (
                line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#"
            )
        ]
        return self.fired(series)

    def fired(self, series):
        # Each is said not to fire; promtool names those that do.
        document = {
            "rule_files": [str(RULES)],
            "evaluation_interval": "1m",
            "tests": [
                {
                    "interval": "1m",
                    "input_series": series,
                    "alert_rule_test": [
                        {
                            "eval_time": f"{MINUTES}m",
                            "alertname": rule["alert"],
                            "exp_alerts": [],
                        }
                        for rule in RULE_LIST
                    ],
                }
            ],
        }
        done = self.promtool("test", "rules", self.file(document))
        said = done.stdout + done.stderr
        found = set(re.findall(r"alertname: ?(\w+)", said))
        self.assertEqual(done.returncode != 0, bool(found), said)
        return found

    def test_every_alert_fires_in_its_cloud_alone(self):
        self.assert_good("check", "rules", RULES)
        failing, warning, taken, few, unfit = (small() for _ in range(5))
        failing.add_hp("b", "hp2", count=0)
        warning.change_inventories("hp1", CUSTOM_PERFVM_SLOT=None)
        free = (("hp1", 1), ("hp2", 0), ("hp2", 1))
        full = [(f"full{number}", node) for number in range(10) for node in (0, 1)]
        for number in range(10):
            few.add_host(f"full{number}")
        for cloud, places in ((taken, free), (few, (*full, *free[:2]))):
            for host, node in places:
                cloud.add_hp(f"{host}-{node}", host, first=20 * node, node=node)
        unfit.hosts["hp2"] = dataclasses.replace(unfit.hosts["hp2"], enabled=False)
        none = {"PerfVMNoFreeSlot", "PerfVMFlavorRefused"}
        seen = set()
        for found, expected, others in (
            (self.firing(small()), set(), {rule["alert"] for rule in RULE_LIST}),
            (self.firing(failing), {"PerfVMAuditFailure"}, none),
            (self.firing(warning), {"PerfVMAuditWarning"}, none),
            (self.firing(taken), none, {"PerfVMFewFreeSlots"}),
            (self.firing(few), {"PerfVMFewFreeSlots"}, {"PerfVMNoFreeSlot"}),
            (self.firing(unfit), {"PerfVMSlotsUnfit"}, none),
            (self.firing(small(), taken_at=0), {"PerfVMNotLookedAt"}, none),
            (self.fired([]), {"PerfVMNeverLookedAt"}, {"PerfVMNotLookedAt"}),
        ):
            self.assertLessEqual(expected, found)
            self.assertEqual(set(), found & others)
            seen |= expected
        self.assertEqual({rule["alert"] for rule in RULE_LIST}, seen)


class DashboardTest(PromtoolCase):
    def setUp(self):
        super().setUp()
        self.dashboard = json.loads(DASHBOARD.read_text())
        self.panels = self.dashboard["panels"]

    def expressions(self):
        return [target["expr"] for p in self.panels for target in p["targets"]]

    def test_metrics_that_are_used_are_those_that_are_written(self):
        self.assertEqual(written(), set().union(*map(names, self.expressions())))
        for rule in RULE_LIST:
            used = names(rule["expr"])
            self.assertNotEqual(set(), used)
            self.assertEqual(set(), used - written(), rule)

    def test_prometheus_knows_every_expression(self):
        rules = [
            {"record": f"panel:{number}", "expr": expression}
            for number, expression in enumerate(self.expressions())
        ]
        rules_file = self.file({"groups": [{"name": "panels", "rules": rules}]})
        self.assert_good("check", "rules", rules_file)

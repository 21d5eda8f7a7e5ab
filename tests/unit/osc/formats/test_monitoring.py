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
            for name, labels in self.listed(r"(perfvm_\w+)(?:{([\w, ]+)})?")
        }
        found = {
            sample.name: set(sample.labels)
            for family in parser.text_string_to_metric_families(metrics(small()))
            for sample in family.samples
        }
        self.assertEqual(found, documented)

    def test_every_alert(self):
        (group,) = yaml.safe_load(RULES.read_text())["groups"]
        alerts = [rule["alert"] for rule in group["rules"]]
        self.assertEqual(alerts, self.listed(r"(PerfVM\w+)"))


class MetricsTest(PromtoolCase):
    def setUp(self):
        super().setUp()
        self.text = metrics(small())
        self.samples = {
            (sample.name, *sample.labels.values()): sample.value
            for family in parser.text_string_to_metric_families(self.text)
            for sample in family.samples
        }

    def test_slots_of_each_host(self):
        found = [
            self.samples[f"perfvm_slots{name}", "hp1", "high-performance"]
            for name in ("", "_used", "_free", "_unfit")
        ]
        self.assertEqual([2, 1, 1, 0], found)
        self.assertEqual(0, self.samples["perfvm_slots", "g1", "high-performance"])

    def test_hosts_that_accept_and_refuse(self):
        named = (HP, "high-performance")
        self.assertEqual(2, self.samples["perfvm_hosts_accepting", *named])
        refused = {
            key[-1]: value
            for key, value in self.samples.items()
            if key[:-1] == ("perfvm_hosts_refusing", *named)
        }
        # Also those of no host, so that each series is there from the start.
        self.assertEqual(set(overview.CODES), set(refused))
        self.assertEqual(1, refused["placement.trait_missing"])

    def test_the_audits_are_with_them(self):
        self.assertEqual(3, self.samples["perfvm_audit_hosts",])

    def test_promtool_takes_them(self):
        self.assert_good("check", "metrics", given=self.text)
        done = self.promtool("check", "metrics", given="a_total 1\nb{ 2\n")
        self.assertNotEqual(0, done.returncode)

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
        alerts = [
            rule["alert"]
            for group in yaml.safe_load(RULES.read_text())["groups"]
            for rule in group["rules"]
        ]
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
                            "alertname": alert,
                            "exp_alerts": [],
                        }
                        for alert in alerts
                    ],
                }
            ],
        }
        done = self.promtool("test", "rules", self.file(document))
        said = done.stdout + done.stderr
        found = set(re.findall(r"alertname: ?(\w+)", said))
        self.assertEqual(done.returncode != 0, bool(found), said)
        return found

    def test_promtool_takes_them(self):
        self.assert_good("check", "rules", RULES)

    def test_nothing_fires_where_nothing_is_wrong(self):
        self.assertEqual(set(), self.firing(small()))

    def test_a_failure(self):
        cloud = small()
        cloud.add_hp("b", "hp2", count=0)
        self.assertIn("PerfVMAuditFailure", self.firing(cloud))

    def test_a_warning(self):
        cloud = small()
        cloud.change_inventories("hp1", CUSTOM_PERFVM_SLOT=None)
        self.assertIn("PerfVMAuditWarning", self.firing(cloud))

    def test_no_slot_is_free(self):
        cloud = small()
        for number, (host, node) in enumerate((("hp1", 1), ("hp2", 0), ("hp2", 1))):
            cloud.add_hp(f"b{number}", host, first=20 * node, node=node)
        fired = self.firing(cloud)
        self.assertIn("PerfVMNoFreeSlot", fired)
        self.assertIn("PerfVMFlavorRefused", fired)
        self.assertNotIn("PerfVMFewFreeSlots", fired)

    def test_few_slots_are_free(self):
        cloud = small()
        for number in range(10):
            cloud.add_host(f"full{number}")
            for node in (0, 1):
                name = f"full{number}"
                cloud.add_hp(f"{name}-{node}", name, first=20 * node, node=node)
        for host, node in (("hp1", 1), ("hp2", 0)):
            cloud.add_hp(f"{host}-more", host, first=20 * node, node=node)
        fired = self.firing(cloud)
        self.assertIn("PerfVMFewFreeSlots", fired)
        self.assertNotIn("PerfVMNoFreeSlot", fired)

    def test_slots_are_unfit(self):
        cloud = small()
        cloud.hosts["hp2"] = dataclasses.replace(cloud.hosts["hp2"], enabled=False)
        self.assertIn("PerfVMSlotsUnfit", self.firing(cloud))

    def test_nobody_has_looked(self):
        self.assertIn("PerfVMNotLookedAt", self.firing(small(), taken_at=0))
        self.assertEqual({"PerfVMNeverLookedAt"}, self.fired([]))

    def test_every_alert_has_a_test_that_fires_it(self):
        source = pathlib.Path(__file__).read_text()
        for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]:
            self.assertIn(f'"{rule["alert"]}"', source)

    def test_they_use_metrics_that_are_written(self):
        used = set()
        for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]:
            self.assertNotEqual(set(), names(rule["expr"]), rule)
            used |= names(rule["expr"])
            self.assertIn("summary", rule["annotations"])
        self.assertEqual(set(), used - written())


class DashboardTest(PromtoolCase):
    def setUp(self):
        super().setUp()
        self.dashboard = json.loads(DASHBOARD.read_text())
        self.panels = self.dashboard["panels"]

    def expressions(self):
        return [target["expr"] for p in self.panels for target in p["targets"]]

    def test_panels_are_whole_and_do_not_overlap(self):
        self.assertGreater(len(self.panels), 8)
        taken, numbers, titles = set(), set(), set()
        for panel in self.panels:
            self.assertIn(panel["type"], {"stat", "table", "timeseries"})
            self.assertEqual({"defaults", "overrides"}, panel["fieldConfig"].keys())
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            mine = {
                (place["x"] + x, place["y"] + y)
                for x in range(place["w"])
                for y in range(place["h"])
            }
            self.assertEqual(set(), taken & mine, panel["title"])
            taken |= mine
            references = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(set(references)), len(references))
            self.assertGreater(len(references), 0)
            for target in panel["targets"]:
                self.assertEqual("${datasource}", target["datasource"]["uid"])
                table = panel["type"] == "table"
                self.assertEqual("table" if table else "time_series", target["format"])
            numbers.add(panel["id"])
            titles.add(panel["title"])
        self.assertEqual(len(self.panels), len(numbers))
        self.assertEqual(len(self.panels), len(titles))

    def test_expressions_use_metrics_that_are_written(self):
        used = set().union(*map(names, self.expressions()))
        self.assertEqual(set(), used - written())
        # What is written is shown, too.
        self.assertEqual(set(), written() - used)

    def test_variables_are_there_and_of_labels_that_are_written(self):
        variables = {v["name"]: v for v in self.dashboard["templating"]["list"]}
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(self.panels)))
        self.assertEqual(set(variables), used)
        text = metrics(small())
        for variable in variables.values():
            if variable["type"] == "query":
                (found,) = re.findall(
                    r"^label_values\((\w+), (\w+)\)$", variable["query"]["query"]
                )
                self.assertRegex(text, rf"(?m)^{found[0]}{{[^}}]*\b{found[1]}=")

    def test_prometheus_knows_every_expression(self):
        rules = [
            {"record": f"panel:{number}", "expr": expression}
            for number, expression in enumerate(self.expressions())
        ]
        rules_file = self.file({"groups": [{"name": "panels", "rules": rules}]})
        self.assert_good("check", "rules", rules_file)

    def test_a_metric_that_is_not_written_would_be_found(self):
        self.assertEqual({"node_load1"}, names("sum by (x) (node_load1[5m])"))
        self.assertEqual({"a", "b"}, names('a{b="c"} / on (d) (b > 0)'))

# SPDX-License-Identifier: Apache-2.0

import json
import re
from dataclasses import replace

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure import samples
from nova_perfvm.measure.report import content, page
from nova_perfvm.measure.report.plots import plots
from nova_perfvm.measure.statistics.verdict import Verdict
from tests.directory import DirectoryCase
from tests.unit.measure import guests, hosts, published
from tests.unit.page_elements import Elements

EVIL = "</script><img src=x onerror=alert(1)>"
FACTORS = (0.99, 1.01, 1.0, 0.995, 1.005)


class ReportTest(DirectoryCase):
    def file(self, name, document):
        path = self.directory / name
        text = document if isinstance(document, str) else json.dumps(document)
        path.write_text(text)
        return str(path)

    def measured(self, measurements, run=None):
        text = samples.dumps(samples.Samples(tuple(measurements)))
        document = json.loads(text) | ({"run": run} if run is not None else {})
        return self.file("run.json", document)

    def ly(self, run=None):
        found = published.ly_alone() + published.ly_two()
        return self.measured(published.repeated(found, FACTORS), run)

    def test_verdicts_are_those_of_compare_worst_first(self):
        found = content.read([self.ly()])
        self.assertGreater(found.count(Verdict.PASS), 10)
        self.assertGreater(found.count(Verdict.FAIL), 0)
        text = page.html(found)
        order = re.findall(r'<td class="\w+">(fail|inconclusive|pass)</td>', text)
        self.assertEqual(len(found.comparisons), len(order))
        ranks = [("fail", "inconclusive", "pass").index(word) for word in order]
        self.assertEqual(sorted(ranks), ranks)
        # LY's tail is the first that is seen.
        (first, *_) = re.findall(r'<td class="failure">fail</td><td>(.*?)</td>', text)
        self.assertEqual("cpu.latency_max_ms", first)
        overall = '<p class="verdict failure">fail</p>'
        self.assertLess(text.index(overall), text.index('class="counts"'))
        summary = f"{found.count(Verdict.PASS)} pass, "
        self.assertTrue(content.summary(found).startswith(summary))

    def test_machines(self):
        idle = {"/proc/interrupts": guests.interrupts([], cpus=42)}
        host = hosts.as_json(guests.having(hosts.host(), idle))
        host = self.file("host.json", host)
        guest = self.file("guest.json", hosts.as_json(guests.guest()))
        found = content.read([self.ly()], [host, guest])
        self.assertEqual(
            [("host compute1", 0), ("host compute1", 1)],
            [(node.who, node.node) for node in found.nodes],
        )
        for number, node in enumerate(found.nodes, 1):
            vm, own = f"rgw{number}", set(hosts.own_cpus(number))
            for what in ("vCPU", "emulator"):
                pins = {p.cpu for p in node.pins if (p.vm, p.what) == (vm, what)}
                self.assertEqual(own, pins)
        (spread,) = found.spreads
        self.assertEqual("guest vm1", spread.who)
        self.assertIn("virtio0-input.0", {name for name, _ in spread.fired})
        # The host has no interrupt with a number: that is said.
        self.assertEqual(1, len(found.not_shown))
        self.assertIn("none fired", page.html(found))

    def test_a_record_has_its_machines_and_failures(self):
        look = {
            "hostname": "h",
            "kernel": "6.1",
            "cpu_model": "Xeon",
            "governor": None,
            "versions": {"sysbench": "1.0.20"},
            "collected": json.loads(hosts.as_json(guests.guest())),
            "clock": {"offset_s": 0.0123, "uncertainty_s": 0.0004},
        }
        failure = {"where": "1/vms/fio", "who": "vm1", "reason": "no", "stderr": EVIL}
        run = {"sessions": [{"targets": {"vm1": look}}], "failures": [failure]}
        found = content.read([self.ly(run)])
        self.assertEqual("+12.3 ms ± 0.4", found.machines[0].clock)
        self.assertEqual("unknown", found.machines[0].governor)
        self.assertEqual(["vm1"], [spread.who for spread in found.spreads])
        text = page.html(found)
        self.assertIn("<h2>Not measured</h2>", text)
        self.assertNotIn(EVIL, text)

    def test_what_was_not_measured_is_no_pass(self):
        measured = [
            published.measurement(who, "cpu.events_per_second", 4, value)
            for who, value in (("host", 100), ("vm", 99))
        ]
        failure = {"where": "1/vms/fio", "who": "vm1", "reason": "no", "stderr": ""}
        for failures, verdict in (([], "pass"), ([failure], "inconclusive")):
            repeated = published.repeated(measured, FACTORS)
            file = self.measured(repeated, {"failures": failures})
            text = page.html(content.read([file]))
            (overall,) = re.findall(r'<p class="verdict \w+">(\w+)</p>', text)
            self.assertEqual(verdict, overall)

    def test_what_a_record_lacks(self):
        for run in (
            {"sessions": 1, "failures": "x"},
            {"sessions": [1, {"targets": 2}, {"targets": {"a": 3}}], "failures": [4]},
            {"sessions": [{"targets": {"a": {"collected": {}, "versions": 1}}}]},
        ):
            page.html(content.read([self.ly(run)]))
        self.assertRaises(PerfVMError, content.read, [self.file("x", "[]")])
        self.assertRaises(PerfVMError, content.read, [self.file("x", "{")])
        host = [m for m in published.ly_alone() if m.who == "host"]
        found = content.read([self.measured(host)])
        self.assertIn("no measurement of a VM", page.html(found))
        self.assertIn("nothing compared", content.summary(found))

    def test_names_are_text(self):
        plain = Elements(page.html(content.read([self.ly()])))
        evil = [
            replace(m, who=EVIL if m.who == "vm1" else m.who, tool_version=EVIL)
            for m in published.repeated(published.ly_two(), FACTORS)
        ]
        host = hosts.as_json(hosts.renamed(hosts.host(), 2, EVIL))
        host = self.file("host.json", host)
        found = content.read([self.measured(evil)], [host])
        text = page.html(found)
        seen = Elements(text)
        self.assertEqual([], seen.named("img"))
        self.assertEqual(len(plain.named("script")), len(seen.named("script")))
        self.assertIn(EVIL, seen.text)
        # The data of the plots is whole.
        (data,) = re.findall(
            r'<script type="application/json" id="plots">(.*?)</script>', text
        )
        self.assertIn(EVIL, json.dumps(json.loads(data)))

    def test_the_page(self):
        """It needs nothing else; what scrolls can be reached; plots are tables, too."""
        found = content.read([self.ly()])
        seen = Elements(page.html(found))
        self.assertEqual([], seen.faults)
        self.assertTrue(seen.allowed.startswith("default-src 'none'; "))
        self.assertNotIn("unsafe-eval", seen.allowed)
        scrolling = [d for d in seen.named("div") if d.get("class") == "scroll"]
        self.assertEqual({"0"}, {div["tabindex"] for div in scrolling})
        self.assertTrue(all(div["aria-label"] for div in scrolling))
        count = len(list(plots(found)))
        self.assertEqual(count, len(seen.named("figure")))
        self.assertEqual(count, len(seen.named("details")))

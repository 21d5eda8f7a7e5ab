# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
import re
from dataclasses import replace

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure import samples
from nova_perfvm.measure.prove import proof
from nova_perfvm.measure.report import answer, content, page, plot
from tests.directory import DirectoryCase
from tests.unit.measure import published
from tests.unit.measure.prove.sound import Case
from tests.unit.page_elements import Elements

EVIL = "</script><img src=x onerror=alert(1)>"
FACTORS = (0.99, 1.01, 1.0, 0.995, 1.005) * 4


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

    def test_the_worst_comes_first(self):
        found = content.read([self.ly()])
        groups = plot.groups(found.comparisons)
        # LY's tail is the first that is seen.
        self.assertEqual("cpu.latency_max_ms", groups[0].metric)
        worst = [group.rows[0].comparison.level for group in groups]
        self.assertEqual(sorted(worst, reverse=True), worst)
        for group in groups:
            levels = [row.comparison.level for row in group.rows]
            self.assertEqual(sorted(levels, reverse=True), levels)
        rows = sum(len(group.rows) for group in groups) + len(found.scaling)
        text = page.html(found)
        order = re.findall(r'<td class="\w+">(fail|inconclusive|pass)</td>', text)
        self.assertEqual(rows, len(order))
        overall = '<p class="verdict unknown">measured, not a proof</p>'
        self.assertLess(text.index(overall), text.index('class="counts"'))

    def test_what_ran_beside_busy_vms_is_told_apart(self):
        alone = [replace(m, at_once=1) for m in published.ly_alone()]
        noisy = [
            replace(m, loaded_neighbours=1) for m in alone if m.machine.kind == "guest"
        ]
        found = content.read([self.measured([*alone, *noisy])])
        for group in plot.groups(found.comparisons):
            names = [row.name.partition(" threads, ")[2] for row in group.rows]
            self.assertEqual(["1 at once", "beside 1 busy"], sorted(names))
        said = {str(answer.finding(row)) for row in found.comparisons}
        self.assertEqual(len(found.comparisons), len(said))

    def test_the_answer_is_the_worst_vm_of_each_kind(self):
        found = content.read([self.ly()])
        self.assertEqual(
            "2 VMs at once reach 0.90 CPU, 0.78 memory, 0.64 network of their share "
            "(at least 0.70)",
            answer.answer(found.comparisons),
        )
        once = content.read([self.measured(published.ly_alone())]).comparisons
        self.assertEqual(
            "1 VM reaches 0.98 CPU, 0.85 memory, 0.81 disk of its share (at least "
            "0.70); cpu.latency_max_ms is 20.27 times the host's (at most 2.00)",
            answer.answer(once),
        )

    def test_dots_are_where_their_ratios_are(self):
        axis = plot.Axis(0.5, 2.0)
        middle = (plot.LEFT + plot.RIGHT) / 2
        for ratio, x in ((0.5, plot.LEFT), (1, middle), (2, plot.RIGHT)):
            self.assertEqual(x, axis.x(ratio))
            self.assertTrue(axis.has(ratio))
        # What is beyond stays at the end, and has none.
        self.assertEqual(plot.RIGHT, axis.x(50))
        self.assertFalse(axis.has(50))
        for group in plot.groups(content.read([self.ly()]).comparisons):
            self.assertGreater(len(group.axis.ticks), 3)
            ratios = [row.comparison.judged.ratio for row in group.rows]
            target = group.rows[0].comparison.target
            self.assertTrue(all(map(group.axis.has, [target, 1, *ratios])))

    def test_a_record_has_its_machines_and_failures(self):
        look = {
            "hostname": "h",
            "kernel": "6.1",
            "cpu_model": "Xeon",
            "governor": None,
            "versions": {"sysbench": "1.0.20"},
            "clock": {"offset_s": 0.0123, "uncertainty_s": 0.0004},
        }
        failure = {"where": "1/vms/fio", "who": "vm1", "reason": "no", "stderr": EVIL}
        run = {"sessions": [{"targets": {"vm1": look}}], "failures": [failure]}
        found = content.read([self.ly(run)])
        tools, clock = "sysbench 1.0.20", "+12.3 ms ± 0.4"
        machine = ("vm1", "h", "6.1", "Xeon", "unknown", tools, clock)
        self.assertEqual((machine,), found.machines)
        text = page.html(found)
        self.assertIn("1/vms/fio: vm1", text)
        self.assertNotIn(EVIL, text)

    def test_what_was_not_measured_is_said(self):
        measured = [
            published.measurement(who, "cpu.events_per_second", 4, value)
            for who, value in (("host", 100), ("vm", 99))
        ]
        failure = {"where": "1/vms/fio", "who": "vm1", "reason": "no", "stderr": ""}
        for failures in ([], [failure]):
            repeated = published.repeated(measured, FACTORS)
            file = self.measured(repeated, {"failures": failures})
            text = page.html(content.read([file]))
            said = "not all was measured: 1 failed" in text
            self.assertEqual(bool(failures), said)

    def test_scaling(self):
        whole = samples.Samples(tuple(published.ly_two()), (published.rps(),))
        found = content.read([self.file("all.json", samples.dumps(whole))])
        text = page.html(found)
        self.assertIn("api, linearity", text)
        self.assertEqual([], Elements(text).faults)

    def test_a_record_of_a_proof_is_read_as_measurements(self):
        """Also one of a version before, which has other keys."""
        case = Case()
        path = str(self.directory / "proof.json")
        record = case.record()
        proof.write(path, record, proof.judged(record))
        rows = content.read([path]).comparisons
        self.assertEqual({"vm1", "vm2"}, {row.who for row in rows})
        document = json.loads(pathlib.Path(path).read_text())
        measured = document["measured"]
        of_host = [
            one for one in measured["measurements"] if one["machine"]["kind"] == "host"
        ]
        before = {
            "kind": "proof",
            "schema_version": "1.0",
            "flavor": document["flavor"],
            "measured": measured
            | {
                "measurements": [
                    one for one in measured["measurements"] if one not in of_host
                ]
            },
            "baseline": measured | {"measurements": of_host},
            "certificate": {"verdict": "certified"},
        }
        found = content.read([self.file("before.json", before)])
        self.assertEqual(
            [(row.group, row.judged) for row in rows],
            [(row.group, row.judged) for row in found.comparisons],
        )
        self.assertIn("measured, not a proof", page.html(found))

    def test_what_a_record_lacks(self):
        for run in (
            {"sessions": 1, "failures": "x"},
            {"sessions": [1, {"targets": 2}, {"targets": {"a": 3}}], "failures": [4]},
            {"sessions": [{"targets": {"a": {"versions": 1}}}]},
        ):
            self.assertRaises(PerfVMError, content.read, [self.ly(run)])
        self.assertRaises(PerfVMError, content.read, [self.file("x", "[]")])
        self.assertRaises(PerfVMError, content.read, [self.file("x", "{")])
        for measured in ({}, {"measured": {}}, {"measured": "x"}, {"measured": [1]}):
            record = {"kind": "proof", "schema_version": "1.0"} | measured
            file = self.file("x", record)
            error = self.assertRaises(PerfVMError, content.read, [file])
            self.assertIn("x: measured: ", str(error))
        host = [m for m in published.ly_alone() if m.who == "host"]
        error = self.assertRaises(PerfVMError, content.read, [self.measured(host)])
        self.assertIn("no measurement of a VM", str(error))

    def test_names_are_text(self):
        evil = [
            replace(m, who=EVIL if m.who == "vm1" else m.who, tool_version=EVIL)
            for m in published.repeated(published.ly_two(), FACTORS)
        ]
        found = content.read([self.measured(evil)])
        text = page.html(found)
        seen = Elements(text)
        self.assertEqual([], seen.named("img"))
        self.assertEqual([], seen.named("script"))
        self.assertIn(EVIL, seen.text)

    def test_the_page(self):
        """It needs nothing else; what scrolls can be reached."""
        found = content.read([self.ly()])
        seen = Elements(page.html(found))
        self.assertEqual([], seen.faults)
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        self.assertEqual(policy, seen.allowed)
        scrolling = [d for d in seen.named("div") if d.get("class") == "scroll"]
        self.assertEqual({"0"}, {div["tabindex"] for div in scrolling})
        self.assertTrue(all(div["aria-label"] for div in scrolling))
        self.assertEqual(len(found.comparisons), len(seen.named("g")))

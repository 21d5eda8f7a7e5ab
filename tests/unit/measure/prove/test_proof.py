# SPDX-License-Identifier: Apache-2.0

import json
import re
from dataclasses import replace

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.measure.prove import page, proof
from nova_perfvm.measure.samples import Samples
from tests.directory import DirectoryCase
from tests.unit.measure import hosts
from tests.unit.measure.prove import faults, proof_file
from tests.unit.measure.prove.sound import FLAVOR, Case
from tests.unit.measure.prove.test_judge import with_fault
from tests.unit.page_elements import Elements


def write_to(path, case):
    """Write a case as a proof's record."""
    record = case.record()
    proof.write(path, record, proof.judged(record))


class ProofTest(DirectoryCase):
    def setUp(self):
        super().setUp()
        self.path = self.directory / "proof.json"

    def test_the_line_answers_whatever_the_verdict(self):
        title = f"{FLAVOR} on compute1: 2 VMs at once reach 0.9@ CPU, "
        rest = "0.8@ memory, 0.9@ network of their share (at least 0.70)"
        late = "1 wake-up in 1,000 is @ times as late as on the host (at most 2.00)"
        far = "a memory access takes @ times as long as on the host (at most 1.43)"
        half = title.replace("0.9@", "0.4@")
        slow = "vm1: cpu.events_per_second with 20 threads 2 times worse"
        tail = "scheduling.loaded.latency_p99_9_us with 20 threads 20 times worse"
        for fault, line in (
            (None, f"PROVEN {title}{rest}; {far}, {late}; 1 other warning"),
            (slow, f"REFUTED {half}{rest}: CPU"),
            (f"vm2: {tail}", f"REFUTED {title}{rest}: {late}"),
            (
                "vm1: 4 queues on the host",
                f"REFUTED {title}{rest}: compute1: instance-@4@",
            ),
            (
                "vm1: its pages were not read",
                f"NOT PROVEN {title}{rest}: compute1: @numa_maps@",
            ),
        ):
            with self.subTest(fault):
                case = with_fault(fault) if fault else Case()
                wanted = re.escape(line).replace("@", ".+")
                self.assertRegex(proof.line(case.judged()), f"^{wanted}$")

    def test_the_record_alone_is_judged_the_same(self):
        for case in (Case(), with_fault("vm1: 4 queues on the host")):
            write_to(str(self.path), case)
            judged = case.judged()
            again = proof.judged(proof_file.read(str(self.path)))
            self.assertEqual(judged.inputs, again.inputs)
            self.assertEqual(judged.verdict, again.verdict)
            verdict = json.loads(self.path.read_text())["verdict"]
            self.assertEqual(proof.line(judged), verdict["line"])
            self.assertEqual(len(judged.reasons), len(verdict["reasons"]))
        self.assertEqual(0o600, self.path.stat().st_mode & 0o777)

    def test_a_foreign_baseline_is_no_proof(self):
        case = Case()
        of_host = [m for m in case.measured if m.machine.kind == "host"]
        case.measured = [m for m in case.measured if m.machine.kind == "guest"]
        case.baseline = Samples(tuple(of_host))
        judged = case.judged()
        self.assertEqual(3, judged.exit_status)
        line = proof.line(judged)
        self.assertTrue(line.startswith("measured, not a proof: foreign baseline"))
        # What the VMs reach of it is told nevertheless.
        self.assertIn("2 VMs at once reach 0.95 CPU", line)

    def test_what_is_no_record(self):
        write_to(str(self.path), Case())
        whole = json.loads(self.path.read_text())
        for key in ("made_of", "flavor", "policy", "host", "guests", "measured"):
            text = json.dumps({k: v for k, v in whole.items() if k != key})
            (self.directory / "other.json").write_text(text)
            path = str(self.directory / "other.json")
            error = self.assertRaises(DocumentError, proof_file.read, path)
            self.assertIn(key, str(error))


class PageTest(DirectoryCase):
    def html(self, case):
        record = case.record()
        return page.html(record, proof.judged(record))

    def test_it_is_whole_escaped_and_begins_with_the_verdict(self):
        case = Case()
        evil = "<script>alert(1)</script>"
        case.host = hosts.renamed(case.host, 1, evil)
        text = self.html(case)
        self.assertNotIn("<script", text)
        self.assertIn("&lt;script&gt;alert(1)", text)
        (_, body) = text.split("<body>")
        self.assertLess(body.index('class="verdict ok">PROVEN'), 200)
        self.assertEqual([], Elements(text).faults)
        self.assertIn("default-src 'none'", text)
        self.assertIn("a forged file is not detected", text)
        self.assertIn("each vCPU has a core of its own", text)

    def test_conditions_come_second(self):
        case = Case()
        faults.always(1, {hosts.CLOCK: "hpet\n"})(case)
        text = self.html(case)
        self.assertIn('class="verdict ok">PROVEN with 1 condition<', text)
        (before, _) = text.partition("<h2>Conditions</h2>")[::2]
        self.assertLess(before.index("verdict ok"), before.rindex("</p>"))
        self.assertEqual(1, before.partition("<body>")[2].count("<p"))
        self.assertLess(text.index("hpet"), text.index("<h2>Warnings"))

    def test_why_it_is_refuted_comes_before_what_was_promised(self):
        text = self.html(with_fault("vm1: 4 queues on the host"))
        self.assertIn('class="verdict failure">REFUTED', text)
        why = text.index("hypervisor.interface_queues")
        self.assertLess(why, text.index("Promised"))

    def test_a_measurement_looks_like_none(self):
        case = with_fault("vm1: 4 queues on the host")
        case.baseline = Samples()
        case = replace(case)
        text = self.html(case)
        verdict = 'class="verdict unknown">measured, not a proof: foreign baseline'
        self.assertIn(verdict, text)

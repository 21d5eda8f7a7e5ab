# SPDX-License-Identifier: Apache-2.0

import json
from dataclasses import replace

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.measure.prove import proof
from nova_perfvm.measure.samples import Samples
from nova_perfvm.measure.statistics.verdict import OF_CERTIFICATE
from tests.directory import DirectoryCase
from tests.unit.measure import hosts
from tests.unit.measure.prove import planted
from tests.unit.measure.prove.sound import FLAVOR, Case

MADE_AT = "2026-11-22T10:30:00+00:00"


def write_to(path, case, baseline=None):
    """Write a case as a proof's record; return what was judged."""
    measured = Samples(tuple(case.measured), run=case.run)
    return proof.write(
        path,
        policy=case.policy,
        flavor=case.flavor,
        seen=(
            json.loads(hosts.as_json(case.host)),
            [json.loads(hosts.as_json(guest)) for guest in case.guests],
        ),
        measured=measured,
        baseline=baseline,
        made_at=MADE_AT,
    )


class ProofTest(DirectoryCase):
    def setUp(self):
        super().setUp()
        self.path = str(self.directory / "proof.json")

    def write(self, case, baseline=None):
        return write_to(self.path, case, baseline)

    def planted(self, name):
        case = Case()
        planted.BY_NAME[name].plant(case)
        return case

    def test_proven(self):
        line = proof.verdict(self.write(Case()))
        self.assertIn(f"PROVEN {FLAVOR} on compute1: 2 VMs at once: ", line)
        reached = r"0\.9\d of the host's CPU, 0\.[89]\d of the host's memory, "
        self.assertRegex(line, reached + r"0\.9\d of their share of the network ")
        self.assertRegex(line, r"latency_p99_9_us 1\.[23]\d times the host's; disk")
        self.assertIn("(at least 0.70 is asked)", line)

    def test_refuted_and_not_proven(self):
        for fault, words in (
            ("vm1: 4 queues on the host", f"REFUTED {FLAVOR} on compute1: compute1: "),
            ("vm1: its pages were not read", f"NOT PROVEN {FLAVOR} on compute1: "),
        ):
            line = proof.verdict(self.write(self.planted(fault)))
            self.assertTrue(line.startswith(words), line)
            self.assertNotIn("\n", line)

    def test_the_record_alone_is_judged_the_same(self):
        for case in (Case(), self.planted("vm1: 4 queues on the host")):
            judged = self.write(case)
            found = proof.read(self.path)
            again = proof.inputs_of(found, self.path, 3600)
            self.assertEqual(judged.inputs, again)
            word = OF_CERTIFICATE[judged.level]
            self.assertEqual(word, found.certificate["verdict"])
        self.assertEqual(0o600, (self.directory / "proof.json").stat().st_mode & 0o777)

    def test_a_baseline_of_a_host_alike(self):
        case = Case()
        run = json.loads(json.dumps(case.run).replace("compute1", "compute2"))
        # The run of the VMs does not know the host.
        seen, steps = case.run["sessions"][0]["targets"], case.run["steps"]
        del seen["node0"], seen["node1"]
        case.run["steps"] = [s for s in steps if s["targets"] == ["vm1", "vm2"]]
        of_host = [m for m in case.measured if m.machine.kind == "host"]
        case.measured = [m for m in case.measured if m.machine.kind == "guest"]
        judged = self.write(case, Samples(tuple(of_host), run=run))
        self.assertEqual((), judged.reasons)
        # Another CPU is not alike.
        other = [
            replace(m, machine=replace(m.machine, cpu_model="EPYC")) for m in of_host
        ]
        judged = self.write(case, Samples(tuple(other), run=run))
        self.assertIn("REFUTED", proof.verdict(judged))
        self.assertIn("EPYC", proof.verdict(judged))
        # What VMs did beside it is not known.
        judged = self.write(case, Samples(tuple(of_host)))
        self.assertNotIn("PROVEN h", proof.verdict(judged).removeprefix("NOT "))

    def test_what_is_no_record(self):
        self.write(Case())
        whole = json.loads((self.directory / "proof.json").read_text())
        for key in ("flavor", "policy", "host", "guests", "measured"):
            text = json.dumps({k: v for k, v in whole.items() if k != key})
            (self.directory / "other.json").write_text(text)
            path = str(self.directory / "other.json")
            error = self.assertRaises(DocumentError, proof.read, path)
            self.assertIn(key, str(error))

# SPDX-License-Identifier: Apache-2.0

import json

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import scenario
from nova_perfvm.measure.bench.record import Record, RecordError
from nova_perfvm.measure.samples import Machine, Measurement
from tests.directory import DirectoryCase

TEXT = """\
schema_version: "1.0"
repeats: 2
warm_up: 1
targets: {host: {kind: host}}
groups: {alone: [host]}
tools: {sysbench_cpu: {threads: [4], seconds: 1}}
"""
SCENARIO = scenario.parse(TEXT)
WARM_UP, FIRST, SECOND = SCENARIO.steps(1)


def measurement(value, number=1):
    return Measurement(
        who="host",
        machine=Machine("host", node=0),
        tool="sysbench",
        tool_version="1.0.20",
        metric="cpu.events_per_second",
        unit="1/s",
        better="higher",
        threads=4,
        value=value,
        round=number,
        at_once=1,
    )


class RecordTest(DirectoryCase):
    def setUp(self):
        super().setUp()
        self.path = self.directory / "run.json"

    def begun(self):
        """Return a record with a warm-up and a round in it, on the disk."""
        found = Record.begin(str(self.path), SCENARIO)
        found.session("2026-11-22T10:00:00Z", {"host": {"kernel": "6.1.0"}})
        found.step(WARM_UP, (), {"started_apart_s": 0.0})
        found.step(FIRST, [measurement(7.5)], {"started_apart_s": 0.25})
        found.save()
        return found

    def document(self):
        return json.loads(self.path.read_text())

    def test_what_is_saved(self):
        """What compare reads, and beside it how it was made."""
        self.begun()
        (found,) = samples.load(str(self.path)).measurements
        self.assertEqual(measurement(7.5), found)
        run = self.document()["run"]
        self.assertEqual(SCENARIO.as_document(), run["scenario"])
        targets = {"host": {"kernel": "6.1.0"}}
        session = {"started_at": "2026-11-22T10:00:00Z", "targets": targets}
        self.assertEqual([session], run["sessions"])
        self.assertEqual(
            [
                {
                    "key": step.key,
                    "warm_up": warm_up,
                    "targets": list(step.runs),
                    "started_apart_s": apart_s,
                }
                for step, warm_up, apart_s in (
                    (WARM_UP, True, 0.0),
                    (FIRST, False, 0.25),
                )
            ],
            run["steps"],
        )

    def test_a_new_run_replaces_no_file(self):
        self.begun()
        before = self.path.read_bytes()
        error = self.assertRaises(RecordError, Record.begin, str(self.path), SCENARIO)
        self.assertIn("go on with it by --resume", str(error))
        self.assertEqual(before, self.path.read_bytes())

    def test_where_nothing_can_begin(self):
        path = str(self.directory)
        error = self.assertRaises(RecordError, Record.begin, path, SCENARIO)
        self.assertIn("or name another", str(error))

    def test_resume(self):
        self.begun()
        self.path.chmod(0o644)
        found = Record.resume(str(self.path), SCENARIO)
        self.assertEqual({WARM_UP.key, FIRST.key}, found.done)
        found.session("2026-11-22T11:00:00Z", {})
        found.step(SECOND, [measurement(8.0, 2)], {})
        found.save()
        values = [m.value for m in samples.load(str(self.path)).measurements]
        self.assertEqual([7.5, 8.0], values)
        self.assertEqual(2, len(self.document()["run"]["sessions"]))
        # What was collected on targets is in it.
        self.assertEqual(0o600, self.path.stat().st_mode & 0o777)

    def test_what_the_steps_are_made_by_is_kept(self):
        found = self.begun()
        found.run["working_set_mb"] = 132
        found.save()
        again = Record.resume(str(self.path), SCENARIO)
        kept = (again.run["seed"], again.run["working_set_mb"])
        self.assertEqual((found.run["seed"], 132), kept)
        other = Record("other.json", SCENARIO)
        self.assertNotEqual(found.run["seed"], other.run["seed"])

    def test_what_failed_is_forgotten_when_it_is_tried_again(self):
        found = self.begun()
        found.fail(SECOND.title, "host", "exit code 7", "broken")
        found.save()
        expected = {
            "where": SECOND.title,
            "who": "host",
            "reason": "exit code 7",
            "stderr": "broken",
        }
        self.assertEqual([expected], found.run["failures"])
        self.assertEqual([expected], self.document()["run"]["failures"])
        again = Record.resume(str(self.path), SCENARIO)
        self.assertEqual([], again.run["failures"])

    def test_resume_of_what_cannot_be_gone_on_with(self):
        self.begun()
        other = scenario.parse(TEXT.replace("repeats: 2", "repeats: 3"))
        error = self.assertRaises(RecordError, Record.resume, str(self.path), other)
        self.assertIn("another scenario (repeats differ)", str(error))
        document = self.document()
        document["measurements"][0]["value"] = -1
        for text, words in (
            (json.dumps(document), "found -1"),
            ('{"measurements": []}', "is not from bench run"),
            ('{"run": {}}', "is not from bench run"),
            ("[]", "expected a mapping"),
            ("{", "not JSON"),
        ):
            self.path.write_text(text)
            error = self.assertRaises(
                PerfVMError, Record.resume, str(self.path), SCENARIO
            )
            self.assertIn(words, str(error))

    def test_a_place_that_takes_no_file(self):
        found = Record.begin(str(self.path.parent / "none" / "run.json"), SCENARIO)
        error = self.assertRaises(PerfVMError, found.save)
        self.assertIn("cannot write", str(error))

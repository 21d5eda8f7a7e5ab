# SPDX-License-Identifier: Apache-2.0

import json
import pathlib

import fixtures
import testtools

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.measure import samples
from nova_perfvm.measure.report import content
from tests.unit.measure import published


def document(**changed):
    measured = json.loads(samples.dumps(samples.Samples((published.ly_two()[0],))))
    measured["measurements"][0] |= changed
    return json.dumps(measured)


class SamplesTest(testtools.TestCase):
    def assert_mistakes(self, expected, text):
        error = self.assertRaises(DocumentError, samples.loads, text, "run.json")
        self.assertEqual(expected, [str(problem) for problem in error.mistakes])
        self.assertIn("run.json", str(error))

    def test_written_and_read(self):
        whole = published.samples()
        self.assertEqual(whole, samples.loads(samples.dumps(whole)))

    def test_what_may_be_left_out(self):
        given = {
            "who": "vm1",
            "machine": {"kind": "guest"},
            "tool": "sysbench",
            "tool_version": "1.0.20",
            "metric": "cpu.events_per_second",
            "unit": "1/s",
            "better": "higher",
            "threads": 4,
            "value": 3663.93,
        }
        text = json.dumps({"schema_version": "1.0", "measurements": [given]})
        (found,) = samples.loads(text).measurements
        self.assertEqual((1, 1, None), (found.round, found.repeat, found.at_once))
        self.assertIsNone(found.machine.kernel)

    def test_every_mistake_has_its_place(self):
        self.assert_mistakes(
            [
                "measurements.0.machine.kinds: unknown key; did you mean kind?",
                "measurements.0.machine.kind: missing; expected one of 'host', 'guest'",
                (
                    "measurements.0.better: found 'more', expected one of 'higher', "
                    "'lower'"
                ),
                "measurements.0.threads: found 0, expected a whole number from 1 up",
                (
                    "measurements.0.value: found 0, expected a number above 0 (a run "
                    "that failed has no value: repeat it)"
                ),
            ],
            document(value=0, threads=0, better="more", machine={"kinds": "guest"}),
        )

    def test_no_samples(self):
        error = self.assertRaises(DocumentError, samples.load, "/nowhere")
        self.assertIn("cannot read", str(error))
        text = document(value=1).replace('"value": 1', '"value": 1e999')
        error = self.assertRaises(DocumentError, samples.loads, text)
        self.assertIn("value: found inf, expected a number above 0", str(error))
        self.assert_mistakes(
            ["(top level): expected measurements, or scale_out"],
            '{"schema_version": "1.0"}',
        )
        for text in ("", "{", '{"a": NaN}', "[" * 100_000):
            error = self.assertRaises(DocumentError, samples.loads, text)
            self.assertEqual(1, len(error.mistakes))

    def test_what_contradicts_itself(self):
        first = published.ly_two()[0]
        whole = json.loads(samples.dumps(samples.Samples((first,) * 4)))
        other = whole["measurements"]
        other[1] |= {"round": 2, "unit": "1/h"}
        other[2] |= {"round": 3, "machine": {"kind": "guest"}}
        self.assert_mistakes(
            [
                (
                    "measurements.1: cpu.events_per_second is in 1/h with higher "
                    "values better here, and in 1/s with higher values better "
                    "before: use one for all"
                ),
                (
                    "measurements.2.machine.kind: host is a guest here and a host "
                    "before: give each its own name"
                ),
                (
                    "measurements.3: measurement 0 is of the same run (host, "
                    "cpu.events_per_second, 1 threads, round 1, repeat 1): remove one "
                    "of them"
                ),
            ],
            json.dumps(whole),
        )

    def test_several_files(self):
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        paths = []
        for who in ("host", "vm1"):
            path = root / f"{who}.json"
            mine = tuple(m for m in published.ly_two() if m.who == who)
            path.write_text(samples.dumps(samples.Samples(mine)))
            paths.append(str(path))
        found = content.read(paths).comparisons
        self.assertEqual({"vm1"}, {row.who for row in found})
        # The same file is not there twice, a copy of it is.
        self.assertEqual(found, content.read([*paths, paths[0]]).comparisons)
        copy = root / "copy.json"
        copy.write_text((root / "host.json").read_text())
        error = self.assertRaises(DocumentError, content.read, [*paths, str(copy)])
        self.assertEqual(16, len(error.mistakes))

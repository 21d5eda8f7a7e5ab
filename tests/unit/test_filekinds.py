# SPDX-License-Identifier: Apache-2.0
"""Each file of ours in the place of each other: every loader says what it is."""

import json
import pathlib

import fixtures
import testtools

from nova_perfvm import filekinds, textfile
from nova_perfvm.changes.migrations import record as plan_record
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import snapshot
from nova_perfvm.measure import disk, reading, samples
from nova_perfvm.measure.bench import scenario
from nova_perfvm.measure.bench.record import Record
from nova_perfvm.measure.certify import record
from nova_perfvm.policy import loader
from tests.unit.changes.migrations.test_record import execution
from tests.unit.measure import hosts, test_disk
from tests.unit.measure.certify.sound import Case

SCENARIO = pathlib.Path(__file__).parents[2] / "etc/nova_perfvm/scenario.yaml"
POLICY = SCENARIO.with_name("perfvm.yaml")


def resumed(path):
    return Record.resume(path, scenario.load(SCENARIO))


# Of each kind of file what reads it from a path.
LOADERS = {
    "host": lambda path: reading.read(path, "host"),
    "guest": lambda path: reading.read(path, "guest"),
    "certificate": record.read,
    "execution": plan_record.read,
    "samples": lambda path: samples.load([path]),
    "snapshot": lambda path: snapshot.loads(textfile.read(path), path),
    "scenario": scenario.load,
    "policy": loader.load,
    "fio": lambda path: disk.read_fio(textfile.read(path), path),
}
WORDS = {
    "host": filekinds.COLLECTED["host"].words,
    "guest": filekinds.COLLECTED["guest"].words,
    "certificate": filekinds.CERTIFICATE.words,
    "execution": filekinds.EXECUTION.words,
    "samples": filekinds.SAMPLES.words,
    "snapshot": filekinds.SNAPSHOT.words,
    "scenario": filekinds.SCENARIO.words,
    "policy": filekinds.POLICY.words,
    "fio": filekinds.FIO.words,
}


class FileKindsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        case = Case(snapshot=hosts.snapshot())
        _, certificate = case.made(directory)
        (directory / "certificate.json").write_text(record.dumps(certificate))
        executed = plan_record.dumps(execution())
        (directory / "execution.json").write_text(executed)
        (directory / "scenario.yaml").write_text(SCENARIO.read_text())
        (directory / "fio.json").write_text(test_disk.fio())
        (directory / "guest1.json").rename(directory / "guest.json")
        self.files = {
            path.stem: str(path)
            for path in directory.iterdir()
            if path.name != "guest2.json"
        }
        self.directory = directory

    def test_each_is_known(self):
        self.assertEqual(set(LOADERS), set(self.files))
        self.assertEqual(len(filekinds.KINDS), len(LOADERS))
        for name, load in LOADERS.items():
            load(self.files[name])

    def test_each_in_the_place_of_each_other(self):
        for wanted, load in LOADERS.items():
            for name, path in self.files.items():
                if name == wanted:
                    continue
                if wanted == "policy" and len(textfile.read(path)) > 256 * 1024:
                    # It is refused for its length, unread.
                    continue
                error = self.assertRaises(PerfVMError, load, path)
                self.assertEqual(
                    f"{path} is {WORDS[name]}; expected: {WORDS[wanted]}",
                    str(error),
                )

    def test_the_other_words_of_files(self):
        """A policy as documents are written, JSON of YAML, either machine."""
        error = self.assertRaises(PerfVMError, samples.load, [str(POLICY)])
        self.assertIn(f"is {WORDS['policy']}", str(error))
        error = self.assertRaises(PerfVMError, reading.read, self.files["samples"])
        self.assertIn(f"expected: {WORDS['host']} or {WORDS['guest']}", str(error))
        error = self.assertRaises(PerfVMError, resumed, self.files["snapshot"])
        self.assertIn(f"is {WORDS['snapshot']}; expected: measurements", str(error))

    def test_what_is_none_of_them_has_its_mistakes(self):
        for text in ("", "[]", '{"schema_version": "9"}', "{", '{"kind": "host"}'):
            path = self.directory / "odd"
            path.write_text(text)
            for load in LOADERS.values():
                error = self.assertRaises(PerfVMError, load, str(path))
                self.assertNotIn(" is a ", str(error))
        # All its keys, but of no kind.
        keys = {"kind": ["host"], "hostname": "", "files": {}, "commands": {}}
        self.assertIsNone(filekinds.known(json.dumps(keys)))
        # Of its own kind, with a mistake.
        document = json.loads(pathlib.Path(self.files["samples"]).read_text())
        path.write_text(json.dumps(document | {"files": {}, "kind": "host"}))
        error = self.assertRaises(PerfVMError, samples.load, [str(path)])
        self.assertIn("files: unknown key", str(error))

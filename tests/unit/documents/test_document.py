# SPDX-License-Identifier: Apache-2.0
"""Each kind of file in the place of each other: every loader says what it is."""

import json
import pathlib
from importlib import resources

import fixtures
import testtools
import yaml

from nova_perfvm.changes.migrations import record as plan_record
from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import KINDS, kind_of
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import snapshot
from nova_perfvm.generate import inventory
from nova_perfvm.known_bugs import model as known_bug
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import scenario
from nova_perfvm.measure.collect import reading
from nova_perfvm.policy import loader
from nova_perfvm.sizing import services
from nova_perfvm.sizing.fio_results import read_fio
from tests.unit.changes.migrations.test_execution import execution
from tests.unit.measure import hosts
from tests.unit.measure.prove import records, test_proof
from tests.unit.measure.prove.sound import Case
from tests.unit.sizing import test_disk

SCENARIO = pathlib.Path(__file__).parents[3] / "etc/nova_perfvm/scenario.yaml"
# Of each kind of file what reads it from a path.
LOADERS = {
    "host": lambda path: reading.read(path, "host"),
    "guest": lambda path: reading.read(path, "guest"),
    "proof": records.read,
    "plan-record": plan_record.read,
    "measurements": samples.load,
    "snapshot": snapshot.load,
    "scenario": scenario.load,
    "inventory": lambda path: inventory.load(path, loader.load()),
    "policy": loader.load,
    "services": lambda path: services.parse(textfile.read(path), path),
    "known-bug": lambda path: known_bug.parse(textfile.read(path), path),
}


class KindsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        Case().write(directory)
        (directory / "snapshot").write_text(snapshot.dumps(hosts.snapshot()))
        for old, new in (
            ("guest1.json", "guest"),
            ("host.json", "host"),
            ("samples.json", "measurements"),
        ):
            (directory / old).rename(directory / new)
        test_proof.write_to(str(directory / "proof"), Case())
        (directory / "plan-record").write_text(plan_record.dumps(execution()))
        (directory / "policy").write_text(loader.dump(loader.load()))
        (directory / "scenario").write_text(SCENARIO.read_text())
        (directory / "inventory").write_text(
            "kind: inventory\nschema_version: '1.0'\nhosts: {}\n"
        )
        (directory / "services").write_text(
            "kind: services\nschema_version: '1.0'\n"
            "services: {web: {servers: 4, cpus: 2, memory_gb: 4}}\n"
        )
        bug = resources.files("nova_perfvm.known_bugs") / "2152697.yaml"
        (directory / "known-bug").write_text(bug.read_text())
        self.files = {kind: str(directory / kind) for kind in KINDS}
        self.directory = directory

    def refused(self, kind, path):
        return str(self.assertRaises(PerfVMError, LOADERS[kind], str(path)))

    def test_each_is_known(self):
        self.assertEqual(set(LOADERS), set(KINDS))
        for kind, load in LOADERS.items():
            load(self.files[kind])
            found = kind_of(textfile.read(self.files[kind]))
            self.assertEqual(None if KINDS[kind].by_hand else kind, found)

    def test_each_in_the_place_of_each_other(self):
        for wanted in LOADERS:
            expected = f"expected {KINDS[wanted].title}"
            for kind, path in self.files.items():
                large = len(textfile.read(path)) > KINDS[wanted].most_bytes
                if kind == wanted or large:
                    # What is too long is refused unread.
                    continue
                message = self.refused(wanted, path)
                if KINDS[wanted].by_hand or not KINDS[kind].by_hand:
                    said = f"{path}: this is {KINDS[kind].title}; {expected}"
                    self.assertEqual(said, message)
                else:
                    self.assertIn(f"{path}: not JSON: ", message)
                    self.assertIn(f"; {expected}", message)

    def test_without_a_kind_it_is_what_is_expected(self):
        for kind in set(LOADERS) - {"host", "guest", "proof"}:
            path = self.directory / "unnamed"
            document = yaml.safe_load(textfile.read(self.files[kind]))
            del document["kind"]
            path.write_text(json.dumps(document))
            LOADERS[kind](str(path))

    def test_in_place_of_what_others_write(self):
        path = self.files["measurements"]
        error = self.assertRaises(PerfVMError, read_fio, textfile.read(path), path)
        self.assertIn("this is measurements (nova-perfvm bench run)", str(error))
        for text in (test_disk.fio(), "{", "[]", '{"kind": ["host"]}', "kind: host"):
            self.assertIsNone(kind_of(text))

    def test_what_is_none_of_them_has_its_mistakes(self):
        path = self.directory / "odd"
        for text, words in (
            ("", "odd: "),
            ("[]", "odd: found [], expected a mapping with schema_version"),
            ('{"schema_version": 1.0}', 'found 1.0, expected "1.0", in quotes'),
            ('{"kind": "hots"}', "kind: found 'hots', expected "),
            ("[" * 100_000, "nested too deeply"),
        ):
            path.write_text(text)
            for kind in LOADERS:
                self.assertIn(words, self.refused(kind, path))

    def test_many_mistakes_are_counted(self):
        path = self.directory / "odd"
        for number, words, lines in (
            (30, "odd: 30 mistakes\n", 31),
            (100, "odd: 100 mistakes\n", 101),
            (101, "odd: more than 100 mistakes\n", 102),
            (5000, "odd: more than 100 mistakes\n", 102),
        ):
            keys = {f"key{number}": 1 for number in range(number)}
            path.write_text(json.dumps({"schema_version": "1.0"} | keys))
            message = self.refused("policy", path)
            self.assertIn(words, message)
            self.assertEqual(lines, len(message.splitlines()))
            self.assertEqual(number > 100, message.endswith("\n  and more"))

    def test_reading_ends_after_a_hundred_mistakes(self):
        servers = json.dumps([{}] * 50_000)
        text = f'{{"schema_version": "1.0", "servers": {servers}}}'
        reader = self.useFixture(
            fixtures.MockPatch("nova_perfvm.documents.keys.Mistake", wraps=Mistake)
        )
        path = self.directory / "cloud.json"
        path.write_text(text)
        self.assertIn("more than 100 mistakes", self.refused("snapshot", path))
        self.assertEqual(101, reader.mock.call_count)

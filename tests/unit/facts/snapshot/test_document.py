# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json

import testtools

from nova_perfvm.facts import snapshot
from nova_perfvm.facts.snapshot import Aggregate, Image, Migration, SnapshotError
from tests.unit.facts.snapshot.clouds import Cloud


def cloud():
    made = Cloud()
    made.add_host("hp1", shape="2x20x2")
    made.add_host("g1", "shared")
    made.add_hp("one", "hp1", 20, node=1)
    made.add_general("two", "g1", fault="lost")
    made.parts = {
        "aggregates": (Aggregate(1, "u", "a", {"k": "v"}, frozenset({"g1"})),),
        "images": (Image("image", "cirros", {"hw_vif_model": "virtio"}),),
        "migrations": (Migration("m", "i-two", "resize", "finished", "g1", None),),
        "gaps": ("something",),
    }
    return made.snapshot()


class DocumentTest(testtools.TestCase):
    def test_round_trip(self):
        before = cloud()
        text = snapshot.dumps(before)
        self.assertEqual(before, snapshot.loads(text))
        self.assertEqual(text, snapshot.dumps(snapshot.loads(text)))
        self.assertIn('"pcpuset": "', text)

    def test_empty_sets_and_unknown_images(self):
        empty = Aggregate(1, "u", "a", {}, frozenset())
        before = dataclasses.replace(cloud(), aggregates=(empty,), images=None)
        self.assertEqual(before, snapshot.loads(snapshot.dumps(before)))

    def problems(self, text):
        exc = self.assertRaises(SnapshotError, snapshot.loads, text, "file")
        return [str(problem) for problem in exc.problems]

    def test_all_mistakes_with_their_place(self):
        document = json.loads(snapshot.dumps(cloud()))
        document["servers"][0]["vcpus"] = "20"
        del document["servers"][1]["status"]
        document["servers"][0]["cells"][0]["cpu_pinning"]["x"] = 1
        document["hosts"][0]["shape"] = "big"
        document["hosts"][1]["cells"][0]["cpuset"] = "5-1"
        document["hosts"][1]["up"] = 1
        document["hosts"][1]["uo"] = True
        document["providers"] = {}
        found = self.problems(json.dumps(document))
        self.assertEqual(
            [
                "hosts.0.shape: found \"big\", expected a host shape such as '2x20'",
                "hosts.1.uo: unknown key: remove it",
                "hosts.1.up: found 1, expected true or false",
                (
                    'hosts.1.cells.0.cpuset: found "5-1", expected a list of CPUs such '
                    "as '0-19,40'"
                ),
                "providers: found {}, expected a list",
                'servers.0.vcpus: found "20", expected a whole number',
                (
                    "servers.0.cells.0.cpu_pinning.x: "
                    'found "x", expected whole numbers as keys'
                ),
                "servers.1.status: missing",
            ],
            found,
        )

    def test_a_key_of_thousands_of_digits(self):
        document = json.loads(snapshot.dumps(cloud()))
        document["servers"][0]["cells"][0]["cpu_pinning"]["9" * 5000] = 1
        (problem,) = self.problems(json.dumps(document))
        self.assertIn("expected whole numbers as keys", problem)

    def test_not_a_snapshot_at_all(self):
        for text, words in (
            ("", "no JSON"),
            ("[]", "schema_version: missing"),
            ('{"schema_version": "9"}', "found '9', expected '1.0'"),
            ('{"schema_version": "1.0"}', "taken_at: missing"),
            ('{"schema_version": NaN}', "NaN is no number"),
            ("[" * 100000, "nested too deeply"),
        ):
            with self.subTest(words):
                self.assertIn(words, "".join(self.problems(text)))

    def test_when_it_was_taken(self):
        for text in ("yesterday", "", "2026-01-31T12:00:00", "2026-13-01T00:00:00Z"):
            wrong = dataclasses.replace(cloud(), taken_at=text)
            (problem,) = self.problems(snapshot.dumps(wrong))
            self.assertIn(f"taken_at: found {text!r}, expected a time with", problem)

    def test_what_is_there_twice(self):
        before = cloud()
        twice = dataclasses.replace(before, servers=before.servers * 2)
        hosts = [dataclasses.replace(h, cells_source="guess") for h in before.hosts]
        wrong = dataclasses.replace(twice, hosts=tuple(hosts))
        found = "".join(self.problems(snapshot.dumps(wrong)))
        self.assertIn("servers.2: i-one is there twice", found)
        self.assertIn("found 'guess', expected one of nova database", found)

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json

import testtools

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.facts import snapshot
from nova_perfvm.facts.snapshot import Aggregate, Image, Migration
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
        empty = Aggregate(1, "u", "a", {}, frozenset())
        bare = dataclasses.replace(cloud(), aggregates=(empty,), images=None)
        for before in (cloud(), bare):
            text = snapshot.dumps(before)
            self.assertEqual(before, snapshot.loads(text))
            self.assertEqual(text, snapshot.dumps(snapshot.loads(text)))
            self.assertIn('"pcpuset": "', text)

    def problems(self, text):
        exc = self.assertRaises(DocumentError, snapshot.loads, text, "file")
        return [str(problem) for problem in exc.mistakes]

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
                "hosts.0.shape",
                "hosts.1.cells.0.cpuset",
                "hosts.1.up",
                "hosts.1.uo",
                "providers",
                "servers.0.vcpus",
                "servers.0.cells.0.cpu_pinning.x",
                "servers.1.status",
            ],
            [mistake.partition(":")[0] for mistake in found],
        )
        self.assertIn(
            "hosts.1.uo: unknown key; expected a mapping with the keys host, node",
            found[3],
        )

    def test_what_is_there_twice(self):
        before = cloud()
        twice = dataclasses.replace(before, servers=before.servers * 2)
        found = "".join(self.problems(snapshot.dumps(twice)))
        self.assertIn("servers.2: i-one is listed twice", found)
        guessed = dataclasses.replace(before.hosts[0], cells_source="guess")
        wrong = dataclasses.replace(before, hosts=(guessed,))
        (found,) = self.problems(snapshot.dumps(wrong))
        self.assertIn("found 'guess', expected one of nova database", found)
        wrong = dataclasses.replace(before, microversion="latest")
        (found,) = self.problems(snapshot.dumps(wrong))
        self.assertIn("microversion: found 'latest', expected a microversion", found)

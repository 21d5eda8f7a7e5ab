# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.policy import HostShape, loader
from nova_perfvm.sizing.emptying import emptied, in_words, model_of
from tests.unit.facts.snapshot.clouds import Cloud

POLICY = loader.load()


class EmptiedTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        for name in ("h1", "h2", "h3", "h4"):
            self.cloud.add_host(name)
        self.cloud.add_hp("a", "h1")
        self.cloud.add_hp("b", "h1", first=20, node=1)
        self.cloud.add_hp("c", "h2")
        self.cloud.add_hp("d", "h3")
        self.snapshot = self.cloud.snapshot()

    def test_each_after_those_before(self):
        found = emptied(POLICY, self.snapshot, settings_for(POLICY))
        self.assertEqual(["h4", "h2"], [one.host for one in found])
        self.assertEqual([[], ["h3"]], [[m.target for m in one.moves] for one in found])
        self.assertEqual(
            "of your 4 hosts 2 can be emptied in this order: h4, h2",
            in_words(self.snapshot, found),
        )

    def test_none(self):
        self.cloud.add_hp("e", "h2", first=20, node=1)
        self.cloud.add_hp("f", "h3", first=20, node=1)
        for number in (0, 1):
            self.cloud.add_hp(f"g{number}", "h4", first=20 * number, node=number)
        snapshot = self.cloud.snapshot()
        found = emptied(POLICY, snapshot, settings_for(POLICY))
        self.assertEqual("of your 4 hosts 0 can be emptied", in_words(snapshot, found))

    def test_progress(self):
        said = []
        emptied(POLICY, self.snapshot, settings_for(POLICY), lambda *a: said.append(a))
        self.assertEqual([("hosts", number, 4) for number in range(4)], said)


class ModelOfTest(testtools.TestCase):
    def test_most_common_shape_with_its_least_memory(self):
        cloud = Cloud()
        for name in ("a", "b", "c"):
            cloud.add_host(name)
        snapshot = cloud.snapshot()
        shapes = (HostShape(2, 20), HostShape(2, 24), HostShape(2, 20))
        hosts = [
            dataclasses.replace(host, shape=shape, memory_mb=mb)
            for host, shape, mb in zip(
                snapshot.hosts, shapes, (512_000, 1024, 256_000), strict=True
            )
        ]
        snapshot = dataclasses.replace(snapshot, hosts=tuple(hosts))
        self.assertEqual((HostShape(2, 20), 250), model_of(snapshot))
        hosts = tuple(dataclasses.replace(host, shape=None) for host in hosts)
        bare = dataclasses.replace(snapshot, hosts=hosts)
        error = self.assertRaises(PerfVMError, model_of, bare)
        self.assertIn("name --host-shape, --memory-gb", str(error))

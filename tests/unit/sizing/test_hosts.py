# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.policy import HostShape
from nova_perfvm.sizing.hosts import model_of
from tests.unit.facts.snapshot.clouds import Cloud


class ModelOfTest(testtools.TestCase):
    def test_most_common_shape_with_its_least_memory(self):
        cloud = Cloud()
        for name in ("a", "b", "c"):
            cloud.add_host(name)
        snapshot = cloud.snapshot()
        shapes = (HostShape(2, 20), HostShape(2, 24), HostShape(2, 20))
        hosts = [
            dataclasses.replace(host, shape=shape, memory_mb=mb, cells=())
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

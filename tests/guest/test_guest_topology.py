# SPDX-License-Identifier: Apache-2.0
"""What Linux makes of a guest's sockets."""

import argparse
import shutil
import tempfile

import testtools

from tests.benchmark import guest_topology
from tests.guest import image, machine


class TestGuestTopology(testtools.TestCase):
    def setUp(self):
        super().setUp()
        if missing := [name for name in machine.NEEDED if shutil.which(name) is None]:
            self.skipTest(f"not installed: {', '.join(missing)}")

    def test_vcpus_of_a_socket_share_a_cache(self):
        options = argparse.Namespace(vcpus=4, wakeups=400, rounds=1)
        with tempfile.TemporaryDirectory() as directory:
            image.build(directory)
            for topology, shared in zip(
                guest_topology.TOPOLOGIES, ("0", "0-3"), strict=True
            ):
                found = list(guest_topology.measure(directory, topology, options))
                self.assertEqual(
                    [("idle", shared), ("busy", shared)],
                    [(load, figures["l3"]) for load, figures in found],
                    topology,
                )
                for load, figures in found:
                    self.assertGreater(figures["interrupts"], 0, (topology, load))

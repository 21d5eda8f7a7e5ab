# SPDX-License-Identifier: Apache-2.0
"""What a plan of a disk writes, on a real Nova and Placement."""

import itertools
import shlex

from nova_perfvm.generate import disk
from tests.functional import base

READS = 50
# Five VMs at once on the NAS of the paper (KISTI), in sum.
NAS_READS = 364


class TestDiskConsolidation(base.FunctionalTest):
    CLOUD = None

    def test_the_vm_after_the_last_is_refused(self):
        files = disk.files({"read": NAS_READS}, {"read": READS})
        commands = files["commands.sh"].splitlines()
        (command,) = (line for line in commands if line.startswith("openstack flavor"))
        words = shlex.split(command)
        specs = dict(
            value.split("=")
            for option, value in itertools.pairwise(words)
            if option == "--property"
        )
        self.start_cloud()
        self.cloud.start_host("host1", provider_yaml=files["provider.yaml"])
        self.cloud.create_flavor("disk", 1, 512, 1, specs)

        servers = [self.cloud.boot("disk") for _ in range(NAS_READS // READS)]
        self.assertEqual(7, len(servers))
        self.assertEqual({"ACTIVE"}, {server.status for server in servers})
        refused = self.cloud.boot("disk")
        self.assertEqual("ERROR", refused.status)
        self.assertIn("No valid host", refused.fault)

        self.cloud.servers.delete(servers[0])
        self.assertEqual("ACTIVE", self.cloud.boot("disk").status)

# SPDX-License-Identifier: Apache-2.0
"""A guarantee of I/Os per second, on a real Nova and Placement."""

from nova_perfvm.documents.yaml_lines import dump_yaml
from nova_perfvm.generate.hosts import provider
from tests.functional import base
from tests.unit.generate.hosts.requests import host_request

READS = 50
# Five VMs at once on the NAS of the paper (KISTI), in sum.
NAS_READS = 364


class TestDiskConsolidation(base.FunctionalTest):
    CLOUD = None

    def test_the_vm_after_the_last_is_refused(self):
        iops = {"read": (NAS_READS, READS)}
        request = host_request(mode="shared")
        offered = provider.provider_document(request, {}, iops)
        self.start_cloud()
        self.cloud.start_host("host1", provider_yaml=dump_yaml(offered))
        specs = {"resources:CUSTOM_PERFVM_READ_IOPS": str(READS)}
        self.cloud.create_flavor("disk", 1, 512, 1, specs)

        servers = [self.cloud.boot("disk") for _ in range(NAS_READS // READS)]
        self.assertEqual(7, len(servers))
        self.assertEqual({"ACTIVE"}, {server.status for server in servers})
        refused = self.cloud.boot("disk")
        self.assertEqual("ERROR", refused.status)
        self.assertIn("No valid host", refused.fault)

        self.cloud.servers.delete(servers[0])
        self.assertEqual("ACTIVE", self.cloud.boot("disk").status)

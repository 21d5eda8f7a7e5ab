# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm import rules
from tests.unit.rules.hosts import (
    POLICY,
    RequestCell,
    general_request,
    host,
    hp_request,
    pinned_request,
)


class DescribeTest(testtools.TestCase):
    def test_figures_are_shown(self):
        busy = host(pinned=range(8, 20), num_instances=1)
        (reason,) = rules.check_host(POLICY, hp_request(), busy)
        self.assertEqual(
            "NUMA node 0 has 12 pinned CPUs, no multiple of 20: VMs that are not of "
            "this class run there",
            rules.describe(reason),
        )


class DescribeCellsTest(testtools.TestCase):
    def test_a_line_per_cell(self):
        busy = host(pinned=range(8), memory_gb=500)
        self.assertEqual(
            [
                "NUMA node 0: 12 of 20 pCPUs free, need 20",
                "256000 of 256000 MiB free, need 65536",
                "pinned 0-7, no multiple of 20",
                "NUMA node 1: 20 of 20 pCPUs free, need 20",
                "256000 of 256000 MiB free, need 65536",
            ],
            "; ".join(rules.describe_cells(POLICY, hp_request(), busy)).split("; "),
        )

    def test_shared_cpus_are_named(self):
        lines = rules.describe_cells(POLICY, hp_request(), host(mode=range(20)))
        self.assertTrue(lines[1].endswith("shared 20-39"))

    def test_a_pinned_vm_of_no_class(self):
        large = RequestCell(0, 4, 307200)
        busy = host(pinned=range(8), memory_gb=500)
        zero, one = rules.describe_cells(POLICY, pinned_request(cells=(large,)), busy)
        memory = "256000 of 256000 MiB free, need 307200"
        self.assertEqual(
            f"NUMA node 0: 12 of 20 pCPUs free, need 4; {memory}; pinned 0-7", zero
        )
        self.assertEqual(f"NUMA node 1: 20 of 20 pCPUs free, need 4; {memory}", one)

    def test_nothing_to_count_for_vms_that_share(self):
        self.assertEqual((), rules.describe_cells(POLICY, general_request(), host()))

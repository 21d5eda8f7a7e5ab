# SPDX-License-Identifier: Apache-2.0


import testtools

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.hypervisor import Hypervisor, Unread
from tests.unit.facts.snapshot.clouds import Cloud


class DedicatedTest(testtools.TestCase):
    def seen(self, host, sets):
        return Hypervisor(
            hostname="h1",
            taken_at="",
            host=host,
            sets=sets,
            vms={},
            unread_vms={},
            files=Unread("", ""),
            source="h1.json",
        )

    def test_numa_nodes_that_were_not_read(self):
        for remedy, expected in (
            ("", "h1.json: virsh: not found"),
            ("install libvirt", "h1.json: virsh: not found: install libvirt"),
        ):
            seen = self.seen(Unread("virsh", "not found", remedy), None)
            error = self.assertRaises(PerfVMError, seen.dedicated)
            self.assertEqual(expected, str(error))

    def test_cpus_that_vms_may_own(self):
        cloud = Cloud()
        cloud.add_host("h1")
        (host,) = cloud.snapshot().hosts
        owned = frozenset(range(10))
        for sets, expected in ((None, host.cpus), ((owned, frozenset()), owned)):
            (*cells,) = self.seen(host, sets).dedicated().cells
            found = frozenset().union(*(cell.pcpuset for cell in cells))
            self.assertEqual(expected, found, sets)

# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm import findings as codes
from nova_perfvm import rules
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import ServerFacts, Usage
from tests.unit.rules import hosts
from tests.unit.rules.hosts import POLICY

CELLS = {"h": hosts.host().cells, "big": hosts.host("4x20").cells}


def hp(name, first, host="h", count=20):
    pins = frozenset(range(first, first + count))
    return ServerFacts(name, name, "high-performance", host, pins)


def general(name, host="h"):
    return ServerFacts(name, name, "general", host)


class CheckServersTest(testtools.TestCase):
    def codes(self, *servers):
        found = audit.check_servers(POLICY, CELLS, servers)
        for finding in found:
            self.assertIn(finding.observed, str(finding))
        return [finding.code for finding in found]

    def test_what_the_policy_wants(self):
        self.assertEqual([], self.codes(hp("a", 0), hp("b", 20)))
        self.assertEqual([], self.codes(general("a"), general("b")))
        self.assertEqual([], self.codes(hp("a", 0), general("b", "big")))

    def test_classes_mixed(self):
        self.assertEqual([codes.CLASSES_MIXED], self.codes(hp("a", 0), general("b")))
        stranger = ServerFacts("x", "x", None, "h", frozenset({39}))
        self.assertEqual([codes.CLASSES_MIXED], self.codes(hp("a", 0), stranger))

    def test_the_fewest_leave_a_host_and_of_as_many_those_of_no_class(self):
        strangers = [
            ServerFacts(f"x{n}", f"x{n}", None, "h", frozenset({38 + n}))
            for n in range(2)
        ]
        for servers, leave in (
            ((hp("a", 0), strangers[0]), "x0"),
            ((strangers[0], hp("a", 0)), "x0"),
            ((hp("a", 0), *strangers), "a"),
        ):
            (finding,) = audit.check_servers(POLICY, CELLS, servers)
            self.assertEqual(f"openstack server migrate {leave}", finding.remedy)

    def test_three_on_a_host(self):
        self.assertEqual(
            [codes.TOO_MANY_ON_HOST],
            self.codes(*(hp(f"{n}", 20 * n, "big") for n in range(3))),
        )

    def test_those_leave_that_can_go_as_they_are(self):
        servers = [hp(f"{n}", 20 * n, "big") for n in range(3)]
        for last in range(3):
            broken = [
                server._replace(ready=number == last, status="ERROR")
                for number, server in enumerate(servers)
            ]
            (finding,) = audit.check_servers(POLICY, CELLS, broken)
            self.assertTrue(finding.remedy.endswith(f"server migrate {last}"))

    def test_two_on_a_cell_overlap(self):
        self.assertEqual(
            [codes.PINS_OVERLAP, codes.TOO_MANY_ON_CELL],
            self.codes(hp("a", 0), hp("b", 0)),
        )

    def test_former_sizes_take_what_they_are(self):
        grown = hosts.policy(former_vcpus=(10,))
        small = [hp(f"{n}", 10 * n, count=10)._replace(vcpus=10) for n in range(3)]
        for policy, expected in (
            (grown, []),
            (POLICY, [codes.TOO_MANY_ON_CELL]),
        ):
            found = audit.check_servers(policy, CELLS, small[:2])
            self.assertEqual(expected, [finding.code for finding in found])
        # A host of two is full with three, whatever their size.
        found = audit.check_servers(grown, CELLS, small)
        self.assertEqual([codes.TOO_MANY_ON_HOST], [f.code for f in found])

    def test_a_size_that_strands_a_slot(self):
        small = hp("small", 0, count=10)._replace(vcpus=10)
        found = audit.check_servers(POLICY, CELLS, [small, hp("b", 20)])
        self.assertEqual([codes.SLOT_STRANDED], [f.code for f in found])
        self.assertEqual("failure", found[0].level.value)
        self.assertIn("NUMA node 0: small, not of the 20 vCPUs", found[0].observed)
        self.assertIn("resize", found[0].remedy)
        # With ten CPUs more on the node, or as a size from before, it takes none.
        wide = {"h": hosts.host("2x30").cells}
        grown = hosts.policy(former_vcpus=(10,))
        for policy, cells in ((POLICY, wide), (grown, CELLS)):
            self.assertEqual([], audit.check_servers(policy, cells, [small]))
        # One that is larger than the class has them today takes a slot itself.
        shrunk = hosts.policy(vcpus=18)
        self.assertEqual([], audit.check_servers(shrunk, CELLS, [hp("b", 20)]))

    def test_too_many_on_cells_that_each_has_a_part_of(self):
        policy = hosts.policy(numa_nodes=2)
        cells = {"h": hosts.host("2x20x2").cells}
        # Each owns both threads of five cores of each cell: ten of twenty.
        found = [
            ServerFacts(
                str(n),
                str(n),
                "high-performance",
                "h",
                frozenset(range(10 * n, 10 * n + 10))
                | frozenset(range(40 + 10 * n, 50 + 10 * n)),
            )
            for n in range(3)
        ]
        self.assertEqual([], audit.check_servers(policy, cells, found[:2]))
        _, first, second = audit.check_servers(policy, cells, found)
        self.assertEqual({codes.TOO_MANY_ON_CELL}, {first.code, second.code})
        self.assertIn(
            "NUMA node 0 has 2 slots for high-performance and 3 VMs", str(first)
        )

    def test_split_over_cells(self):
        self.assertEqual([codes.NOT_IN_ONE_CELL], self.codes(hp("a", 10)))

    def test_not_pinned_at_all(self):
        self.assertEqual([codes.NOT_PINNED], self.codes(hp("a", 0, count=0)))

    def test_cells_that_are_known_count(self):
        """Not the numbers of the CPUs, where Nova says which cell it is."""
        one = hp("a", 0)._replace(nodes=frozenset({1}))
        self.assertEqual([], self.codes(one, hp("b", 100)._replace(nodes={0})))
        self.assertEqual(
            [codes.TOO_MANY_ON_CELL], self.codes(one, hp("b", 20)._replace(nodes={1}))
        )
        split = hp("a", 0)._replace(nodes=frozenset({0, 1}))
        self.assertEqual([codes.NOT_IN_ONE_CELL], self.codes(split))

    def test_those_who_should_leave(self):
        for status, first in (
            ("ACTIVE", ""),
            ("RESCUE", "openstack server unrescue b\n"),
        ):
            other = general("b")._replace(status=status)
            (found,) = audit.check_servers(
                POLICY, CELLS, [hp("a", 0), other, hp("c", 20)]
            )
            self.assertEqual(f"{first}openstack server migrate b", found.remedy)


class ExclusiveCellTest(testtools.TestCase):
    """A class that wants its NUMA node for itself, and not the host."""

    POLICY = hosts.policy(exclusive="cell", max_per_host=None)
    # Both kinds of CPUs on each cell of 40.
    BOTH = hosts.host("2x40", mode={*range(20), *range(40, 60)})
    # Whole cells of either kind.
    APART = hosts.host("2x20", mode=range(20))

    def found(self, host, *servers, **options):
        found = audit.check_servers(self.POLICY, {"h": host.cells}, servers, **options)
        return [(finding.code, finding.remedy) for finding in found]

    def mixed(self, *names):
        remedy = "\n".join(f"openstack server migrate {name}" for name in names)
        return [(codes.CLASSES_MIXED, remedy)]

    def decided(self, host, *servers):
        """Return whether the rules would let the last server in beside the others."""
        pins = frozenset().union(*(server.pinned_cpus for server in servers[:-1]))
        cells = [c._replace(pinned_cpus=c.pcpuset & pins) for c in host.cells]
        count = len(servers) - 1
        host = host._replace(cells=cells, num_instances=count, vcpus_used=2 * count)
        request = hosts.general_request(class_name="general")
        return rules.decide(self.POLICY, request, host).allowed

    def test_unpinned_vms_where_the_cell_shares_cpus(self):
        servers = (hp("a", 0), general("b"))
        self.assertEqual(self.mixed("b"), self.found(self.BOTH, *servers))
        self.assertFalse(self.decided(self.BOTH, *servers))
        self.assertEqual([], self.found(self.APART, *servers))
        self.assertTrue(self.decided(self.APART, *servers))
        self.assertEqual([], self.found(self.BOTH, general("b"), general("c")))

    def test_unpinned_vms_on_a_host_without_cpu_sets(self):
        host = hosts.host("2x20", mode="open")
        servers = (hp("a", 0), general("b"))
        self.assertEqual(self.mixed("b"), self.found(host, *servers))
        self.assertFalse(self.decided(host, *servers))

    def test_other_pinned_vms_on_the_cell(self):
        host = hosts.host("2x40")
        stranger = ServerFacts("x", "x", None, "h", frozenset({30, 31}))
        self.assertEqual(self.mixed("x"), self.found(host, hp("a", 0), stranger))
        self.assertEqual([], self.found(host, hp("a", 40), stranger))
        self.assertEqual([], self.found(host, hp("a", 0), hp("b", 20)))

    def test_all_that_should_leave_are_named_once(self):
        stranger = ServerFacts("x", "x", None, "h", frozenset({30, 31}))
        two = ServerFacts("y", "y", None, "h", frozenset({70}))
        servers = (hp("a", 0), hp("c", 40), general("b"), stranger, two)
        self.assertEqual(
            self.mixed("b", "x", "y"), self.found(hosts.host("2x40", "open"), *servers)
        )

    def test_cells_that_are_assumed(self):
        """Both kinds on a cell for want of anything better are no evidence."""
        servers = (hp("a", 0), general("b"))
        ((code, _),) = self.found(self.BOTH, *servers, assumed={"h"})
        self.assertEqual(codes.CELLS_UNKNOWN, code)
        self.assertEqual([], self.found(self.BOTH, general("b"), assumed={"h"}))
        self.assertEqual([], self.found(self.BOTH, hp("a", 0), assumed={"h"}))
        # Which CPUs a VM owns is known everywhere.
        stranger = ServerFacts("x", "x", None, "h", frozenset({30, 31}))
        self.assertEqual(
            self.mixed("x"),
            self.found(self.BOTH, hp("a", 0), stranger, assumed={"h"}),
        )


class CheckUsageTest(testtools.TestCase):
    def test_more_allocated_than_there_is(self):
        found = audit.check_usage(
            [Usage("h", "PCPU", 40, 40), Usage("h", "CUSTOM_PERFVM_SLOT", 2, 3)]
        )
        self.assertEqual([codes.OVER_INVENTORY], [finding.code for finding in found])
        self.assertIn("3 of 2 CUSTOM_PERFVM_SLOT", found[0].observed)


class CheckConsumersTest(testtools.TestCase):
    def test_allocations_of_nobody(self):
        found = audit.check_consumers(["a", "b", "m", "x"], ["a", "b"], ["m"])
        self.assertEqual(
            [(codes.LEAKED_ALLOCATION, "x")], [(f.code, f.subject) for f in found]
        )

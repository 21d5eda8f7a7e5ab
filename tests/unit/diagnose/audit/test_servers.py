# SPDX-License-Identifier: Apache-2.0

import dataclasses
import re

import testtools

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit, moves
from nova_perfvm.diagnose.audit import ServerFacts
from tests.unit.rules import hosts
from tests.unit.rules.hosts import POLICY

MIGRATE = "openstack server migrate (.*) --wait"
CELLS = {"h": hosts.host().cells, "big": hosts.host("4x20").cells}


def facts(name, class_name, host, pins=frozenset()):
    leave = moves.migrate(name, "ACTIVE")
    return ServerFacts(name, name, class_name, host, pins, leave=leave)


def hp(name, first, host="h", count=20):
    pins = frozenset(range(first, first + count))
    return facts(name, "high-performance", host, pins)


def general(name, host="h"):
    return facts(name, "general", host)


class CheckServersTest(testtools.TestCase):
    def found(self, *servers, policy=POLICY, cells=CELLS):
        found = audit.check_servers(policy, cells, servers)
        for finding in found:
            self.assertIn(finding.observed, str(finding))
        return found

    def test_codes(self):
        stranger = facts("x", None, "h", frozenset({39}))
        three = [hp(f"{n}", 20 * n, "big") for n in range(3)]
        # Not the numbers of the CPUs count, where Nova says which cell it is.
        one = hp("a", 0)._replace(nodes=frozenset({1}))
        for servers, expected in (
            ((hp("a", 0), hp("b", 20)), ()),
            ((general("a"), general("b")), ()),
            ((hp("a", 0), general("b", "big")), ()),
            ((hp("a", 0), general("b")), [codes.CLASSES_MIXED]),
            ((hp("a", 0), stranger), [codes.CLASSES_MIXED]),
            (three, [codes.TOO_MANY_ON_HOST]),
            ((hp("a", 0), hp("b", 0)), [codes.PINS_OVERLAP, codes.TOO_MANY_ON_CELL]),
            ([hp("a", 10)], [codes.NOT_IN_ONE_CELL]),
            ([hp("a", 0, count=0)], [codes.NOT_PINNED]),
            ((one, hp("b", 100)._replace(nodes={0})), ()),
            ((one, hp("b", 20)._replace(nodes={1})), [codes.TOO_MANY_ON_CELL]),
            ([one._replace(nodes=frozenset({0, 1}))], [codes.NOT_IN_ONE_CELL]),
        ):
            found = [finding.code for finding in self.found(*servers)]
            self.assertEqual(list(expected), found, servers)

    def test_the_fewest_leave_a_host_and_of_as_many_those_of_no_class(self):
        strangers = [facts(f"x{n}", None, "h", frozenset({38 + n})) for n in range(2)]
        rescued = general("b")._replace(leave=moves.migrate("b", "RESCUE"))
        for servers, leave in (
            ((hp("a", 0), strangers[0]), ["migrate x0 --wait", "resize confirm x0"]),
            ((strangers[0], hp("a", 0)), ["migrate x0 --wait", "resize confirm x0"]),
            ((hp("a", 0), *strangers), ["migrate a --wait", "resize confirm a"]),
            (
                (hp("a", 0), rescued, hp("c", 20)),
                ["unrescue b", "migrate b --wait", "resize confirm b"],
            ),
        ):
            (finding,) = self.found(*servers)
            commands = re.findall(
                "^openstack server (.*)", finding.remedy, re.MULTILINE
            )
            self.assertEqual(leave, commands)

    def test_former_sizes_take_what_they_are(self):
        grown = hosts.policy(former_vcpus=(10,))
        small = [hp(f"{n}", 10 * n, count=10)._replace(vcpus=10) for n in range(3)]
        for policy, servers, expected in (
            (grown, small[:2], []),
            (POLICY, small[:2], [codes.TOO_MANY_ON_CELL]),
            # A host of two is full with three, whatever their size.
            (grown, small, [codes.TOO_MANY_ON_HOST]),
        ):
            found = self.found(*servers, policy=policy)
            self.assertEqual(expected, [finding.code for finding in found])

    def test_a_size_that_strands_a_slot(self):
        small = hp("small", 0, count=10)._replace(vcpus=10)
        (found,) = self.found(small, hp("b", 20))
        self.assertEqual((codes.SLOT_STRANDED, "failure"), (found[0], str(found.level)))
        self.assertIn("NUMA node 0: small, without the 20 vCPUs", found.observed)
        self.assertIn("resize", found.remedy)
        for server, given in (
            # With ten CPUs more on the node, or as a size from before, it takes none.
            (small, {"cells": {"h": hosts.host("2x30").cells}}),
            (small, {"policy": hosts.policy(former_vcpus=(10,))}),
            # One that is larger than the class has them today takes a slot itself.
            (hp("b", 20), {"policy": hosts.policy(vcpus=18)}),
        ):
            self.assertEqual([], self.found(server, **given))

    def test_the_cpu_of_isolated_emulator_threads_is_on_one_node(self):
        """Nova pins it on the VM's first NUMA node, which may be either of the host."""
        first = frozenset({*range(11), *range(21, 31)})
        second = frozenset({*range(11, 21), *range(31, 42)})
        servers = [
            facts(name, "high-performance", "h", pins)
            for name, pins in (("a", first), ("b", second))
        ]
        for shape, expected in (
            ("2x21", []),
            ("2x19", [codes.TOO_MANY_ON_CELL, codes.TOO_MANY_ON_CELL]),
        ):
            found = self.found(
                *servers,
                policy=hosts.policy(numa_nodes=2, emulator_threads="isolate"),
                cells={"h": hosts.host(shape).cells},
            )
            self.assertEqual(expected, [finding.code for finding in found])

    def test_too_many_on_cells_that_each_has_a_part_of(self):
        """Each owns both threads of five cores of each cell: ten of twenty."""
        given = {"policy": hosts.policy(numa_nodes=2)}
        given["cells"] = {"h": hosts.host("2x20x2").cells}
        starts = [(10 * n, 40 + 10 * n) for n in range(3)]
        servers = [
            hp(f"{cpus}", 0)._replace(
                pinned_cpus=frozenset(c + n for c in cpus for n in range(10))
            )
            for cpus in starts
        ]
        self.assertEqual([], self.found(*servers[:2], **given))
        _, first, second = self.found(*servers, **given)
        self.assertEqual({codes.TOO_MANY_ON_CELL}, {first.code, second.code})
        words = "NUMA node 0 has 3 VMs of high-performance, and no CPUs left"
        self.assertIn(words, str(first))


class ExclusiveCellTest(testtools.TestCase):
    """A class that wants its NUMA node for itself, and not the host."""

    POLICY = hosts.policy(exclusive="cell", max_per_host=None)
    STRANGER = facts("x", None, "h", frozenset({30, 31}))

    def test_who_should_leave(self):
        # Both kinds of CPUs on each cell of 40, and whole cells of either kind.
        both = hosts.host("2x40", mode={*range(20), *range(40, 60)})
        apart, pinned = hosts.host("2x20", mode=range(20)), hosts.host("2x40")
        one, other, two = hp("a", 0), general("b"), hp("c", 40)
        third = facts("y", None, "h", frozenset({70}))
        unknown = {"assumed": {"h"}}
        for host, servers, leave, options in (
            (both, (one, other), "b", {}),
            (both, (other, general("c")), "", {}),
            (apart, (one, other), "", {}),
            (hosts.host("2x20", mode="open"), (one, other), "b", {}),
            (pinned, (one, self.STRANGER), "x", {}),
            (pinned, (two, self.STRANGER), "", {}),
            (pinned, (one, hp("b", 20)), "", {}),
            (
                hosts.host("2x40", "open"),
                (one, two, other, self.STRANGER, third),
                "bxy",
                {},
            ),
            # Both kinds on a cell for want of anything better are no evidence.
            (both, (other,), "", unknown),
            (both, (one,), "", unknown),
            # Which CPUs a VM owns is known everywhere.
            (both, (one, self.STRANGER), "x", unknown),
        ):
            cells = {"h": host.cells}
            found = audit.check_servers(self.POLICY, cells, servers, **options)
            expected = [(codes.CLASSES_MIXED, [*leave])] if leave else []
            told = [(f.code, re.findall(MIGRATE, f.remedy)) for f in found]
            self.assertEqual(expected, told, servers)
        cells = {"h": both.cells}
        (found,) = audit.check_servers(self.POLICY, cells, (one, other), **unknown)
        self.assertEqual(codes.CELLS_UNKNOWN, found.code)

    def test_of_two_such_classes_one_leaves(self):
        vm_class, *others = self.POLICY.classes
        gold = dataclasses.replace(vm_class, name="gold")
        policy = dataclasses.replace(self.POLICY, classes=(vm_class, gold, *others))
        servers = (hp("a", 0), hp("b", 20)._replace(class_name="gold"))
        cells = {"h": hosts.host("2x40").cells}
        (found,) = audit.check_servers(policy, cells, servers)
        self.assertEqual(codes.CLASSES_MIXED, found.code)
        self.assertEqual(["b"], re.findall(MIGRATE, found.remedy))

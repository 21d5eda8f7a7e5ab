# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import offers
from nova_perfvm.facts.snapshot import Inventory
from tests.unit.facts.snapshot.clouds import Cloud
from tests.unit.rules import hosts

CELL = hosts.policy(exclusive="cell")
THREADS = hosts.policy(exclusive="cell", smt="threads")


def cloud_of(policy, shape, pcpus, vcpus, slots, memory_gb=500):
    """Return a cloud of one host, which Placement has so many CPUs and slots of."""
    cloud = Cloud(policy)
    cloud.add_host("h1", "shared", shape, memory_gb)
    found = {"PCPU": pcpus, "VCPU": vcpus, const.RC_SLOT: slots}
    cloud.change_inventories(
        "h1", **{name: Inventory(n, n) if n else None for name, n in found.items()}
    )
    if slots:
        cloud.change_inventories("h1", **{const.RC_SLOT: Inventory(slots, 1)})
        cloud.change_provider("h1", traits=frozenset({const.TRAIT_HIGH_PERFORMANCE}))
    return cloud


def check(cloud, snapshot=None):
    subject = audit.Subject(cloud.policy, snapshot or cloud.snapshot())
    return list(offers.check(subject))


class MixedHostsTest(testtools.TestCase):
    def found(self, *arguments):
        return [finding.code for finding in check(cloud_of(*arguments))]

    def test_one_kind_on_each_cell(self):
        for given in (
            (CELL, "2x20", 20, 20, 1),
            (CELL, "2x20x2", 20, 40, 1),
            (CELL, "4x20x2", 60, 40, 2),
            (THREADS, "2x20x2", 40, 40, 2),
        ):
            self.assertEqual([], self.found(*given), given[1:])
            self.assertIn(codes.INVENTORY_DIFFERS, self.found(*given[:-1], 0))

    def test_a_division_that_nobody_knows(self):
        """One core of node 0 is kept: its CPUs are dedicated, node 1 shared."""
        for slots in (0, 1, 2):
            self.assertEqual([], self.found(CELL, "2x20", 19, 20, slots))
        cloud = cloud_of(CELL, "2x20", 19, 20, 1)
        # One that the operator tells is known.
        snapshot = cloud.snapshot()
        (host,) = snapshot.hosts
        self.assertTrue(host.division_assumed)
        host = dataclasses.replace(host, cells_source="inventory file")
        self.assertFalse(host.division_assumed)
        snapshot = dataclasses.replace(snapshot, hosts=(host,))
        both = [codes.INVENTORY_DIFFERS, codes.TRAIT_DIFFERS]
        self.assertEqual(both, [finding.code for finding in check(cloud, snapshot)])
        # Of a class that wants the whole host, none can be there.
        self.assertEqual(both, self.found(hosts.policy(), "2x20", 19, 20, 1))
        cloud.change_provider("h1", traits=frozenset())
        self.assertEqual([codes.TRAIT_DIFFERS], [f.code for f in check(cloud)])
        # And of some hosts there is nothing to divide.
        for given in (("2x20", 40, 0), ("2x20", 0, 40), ("1x40", 20, 20)):
            (host,) = cloud_of(CELL, *given, 0).snapshot().hosts
            self.assertFalse(host.division_assumed, given)

    def test_the_command_that_configures_a_host(self):
        for given, expected in (
            ((CELL, "2x20x2", 20, 40, 2), "2x20x2 --mode mixed"),
            ((CELL, "2x20", 40, 0, 0), "2x20 --mode dedicated"),
            ((CELL, "2x20", 0, 38, 1), "2x20 --mode shared"),
        ):
            commands = {finding.remedy for finding in check(cloud_of(*given))}
            self.assertIn(
                f"nova-perfvm host config --topology {expected} --reserve CORES "
                "--memory-gb 500 --policy POLICY",
                commands,
            )

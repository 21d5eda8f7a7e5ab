# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import json
import shlex

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import hosts as host_checks
from nova_perfvm.facts.snapshot import Aggregate, Inventory
from nova_perfvm.generate.hosts.cpus import divide_cpus
from nova_perfvm.generate.hosts.request import HostRequest
from nova_perfvm.generate.hosts.topology import from_shape
from nova_perfvm.policy import HostShape, loader
from tests.unit.facts.snapshot.clouds import Cloud
from tests.unit.osc.test_shell import CommandCase
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
    return list(host_checks.check_offers(subject))


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
            with self.subTest(given[1:]):
                self.assertEqual([], self.found(*given))
                self.assertIn(codes.INVENTORY_DIFFERS, self.found(*given[:-1], 0))

    def test_a_division_that_nobody_knows(self):
        """One core of node 0 is kept: its CPUs are dedicated, node 1 shared."""
        for slots in (0, 1, 2):
            self.assertEqual([], self.found(CELL, "2x20", 19, 20, slots))
        cloud = cloud_of(CELL, "2x20", 19, 20, 1)
        cloud.change_provider("h1", traits=frozenset())
        self.assertEqual([codes.TRAIT_DIFFERS], [f.code for f in check(cloud)])
        # Of a class that wants the whole host, none can be there.
        wants_host = hosts.policy()
        self.assertEqual(
            [codes.INVENTORY_DIFFERS, codes.TRAIT_DIFFERS],
            self.found(wants_host, "2x20", 19, 20, 1),
        )

    def test_one_that_the_operator_tells(self):
        cloud = cloud_of(CELL, "2x20", 19, 20, 1)
        snapshot = cloud.snapshot()
        (host,) = snapshot.hosts
        self.assertTrue(host.division_assumed)
        self.assertEqual({"h1"}, snapshot.assumed_divisions)
        host = dataclasses.replace(host, cells_source="inventory file")
        self.assertFalse(host.division_assumed)
        snapshot = dataclasses.replace(snapshot, hosts=(host,))
        self.assertEqual(frozenset(), snapshot.assumed_divisions)
        found = [finding.code for finding in check(cloud, snapshot)]
        self.assertEqual([codes.INVENTORY_DIFFERS, codes.TRAIT_DIFFERS], found)

    def test_hosts_with_nothing_to_divide(self):
        for given in (("2x20", 40, 0), ("2x20", 0, 40), ("1x40", 20, 20)):
            (host,) = cloud_of(CELL, *given, 0).snapshot().hosts
            self.assertFalse(host.division_assumed, given)


class RemedyTest(CommandCase):
    """The command configures the host as it is, with the slots that it lacks."""

    def remedy(self, cloud):
        found = check(cloud)
        (command,) = {f.remedy for f in found if "host config" in f.remedy}
        return command

    def configure(self, command, policy):
        path = self.file(loader.dump(policy))
        words = shlex.split(command.replace("POLICY", path))[1:]
        self.assertEqual(0, self.run_command(*words, "-f", "json"), self.stderr)
        return json.loads(self.stdout)

    def test_cpu_sets_stay_as_they_are(self):
        for policy, mode, shape, nodes, reserve in itertools.product(
            (CELL, THREADS), ("dedicated", "mixed"), ("4x22", "4x22x2"), (1, 2), (0, 2)
        ):
            if mode == "dedicated" and nodes > 1:
                continue
            given = (policy.classes[0].smt, mode, shape, nodes, reserve)
            with self.subTest(given):
                request = HostRequest(
                    policy,
                    from_shape(HostShape.parse(shape)),
                    mode,
                    reserve=reserve,
                    shared_nodes=nodes,
                )
                cpus = divide_cpus(request, policy.classes[0])
                totals = (len(cpus.dedicated), len(cpus.shared))
                command = self.remedy(cloud_of(policy, shape, *totals, 0))
                found = self.configure(command, policy)
                wanted = self.configure(
                    f"nova-perfvm host config --topology {shape} --mode {mode} "
                    f"--reserve {reserve} --memory-gb 500 --policy POLICY"
                    + (f" --shared-nodes {nodes}" if mode == "mixed" else ""),
                    policy,
                )
                self.assertEqual(wanted, found)

    def test_words(self):
        for given, expected in (
            ((CELL, "2x20x2", 20, 40, 2), "2x20x2 --mode mixed --memory-gb 500"),
            ((CELL, "2x20", 40, 0, 0), "2x20 --mode dedicated --memory-gb 500"),
            ((CELL, "2x22", 40, 0, 0, 400), "dedicated --reserve 2 --memory-gb 400"),
            ((CELL, "2x20", 39, 0, 2), "dedicated --reserve CORES --memory-gb 500"),
            ((CELL, "2x20", 0, 38, 1), "shared --reserve 1 --memory-gb 500"),
            (
                (hosts.policy(), "2x20", 19, 20, 1),
                "mixed --shared-nodes N --reserve CORES --memory-gb 500",
            ),
        ):
            with self.subTest(expected):
                command = self.remedy(cloud_of(*given))
                self.assertIn(f"{expected} --policy POLICY", command)

    def test_class(self):
        other = dataclasses.replace(CELL.classes[0], name="small", vcpus=10)
        other = dataclasses.replace(other, flavors=None)
        policy = dataclasses.replace(CELL, classes=(*CELL.classes, other))
        cloud = cloud_of(policy, "2x20x2", 40, 0, 1)
        self.assertIn("--class CLASS --reserve CORES ", self.remedy(cloud))
        label = {const.CLASS_KEY: "small"}
        cloud.parts["aggregates"] = (Aggregate(1, "u", "a", label, frozenset({"h1"})),)
        self.assertIn("dedicated --class small --memory-gb", self.remedy(cloud))

    def test_nothing_is_known(self):
        cloud = cloud_of(CELL, "2x20", 40, 0, 2)
        cloud.change_provider("h1", traits=frozenset())
        cloud.change_inventories("h1", MEMORY_MB=None)
        snapshot = cloud.snapshot()
        (host,) = snapshot.hosts
        bare = dataclasses.replace(host, cells=(), shape=None)
        found = check(cloud, dataclasses.replace(snapshot, hosts=(bare,)))
        expected = (
            "nova-perfvm host config --topology SHAPE --mode dedicated "
            "--reserve CORES --memory-gb GB --policy POLICY"
        )
        self.assertEqual([expected], [finding.remedy for finding in found])

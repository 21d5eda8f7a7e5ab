# SPDX-License-Identifier: Apache-2.0
"""VMs of 20 vCPUs on machines with more NUMA nodes than sockets, one after the other.

From a collected file to each scheme's capacity and to ``explain``, with Nova's own
``numa_fit_instance_to_host`` beside it, which chooses nodes and CPUs.
"""

import dataclasses

import testtools
from nova import objects
from nova.virt import hardware

from nova_perfvm import constants as const
from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.changes.steps import with_changes
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.capacity import host_capacity
from nova_perfvm.diagnose.survey.collected import as_snapshot
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.facts.children import node_of
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.facts.snapshot import Flavor, Server, ServerCell
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.generate.hosts import HostRequest, generate, rendering
from nova_perfvm.measure import nova_conf
from nova_perfvm.measure.collect import hypervisor
from nova_perfvm.measure.observed import topology
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.policy import shape_slots
from tests.unit.generate.hosts.requests import policy_of
from tests.unit.measure.test_public_machines import MACHINES, collected
from tests.unit.scheduler import states

VCPUS = 20
UNEVEN = "20 vCPUs cannot be split evenly over 3 NUMA nodes, 18 or 21 can"
NPS4 = "2 x EPYC 7763, NPS4"
L3 = "2 x EPYC 7763, L3 as NUMA"
SNC4 = "2 x Xeon 8490H, SNC4"
# (machine, {numa_nodes: VMs on a host}, {numa_nodes: why the policy is refused})
TWENTY = (
    ("2 x EPYC 7763, NPS1", {1: 6, 2: 6}, {3: UNEVEN, 4: "numa_nodes: 1 would fit"}),
    ("2 x EPYC 7763, NPS2", {1: 4, 2: 6}, {3: UNEVEN, 5: "numa_nodes: 1 would fit"}),
    (NPS4, {2: 4, 4: 6}, {1: "numa_nodes: 2 would fit", 3: UNEVEN}),
    (L3, {4: 4, 5: 6}, {2: "numa_nodes: 4 would fit", 3: UNEVEN}),
    ("2 x Xeon 8480+, SNC2", {1: 4, 4: 5}, {3: UNEVEN, 5: "numa_nodes: 1 would fit"}),
    ("2 x Xeon 6972P, SNC3", {1: 6, 2: 9}, {3: UNEVEN, 10: "numa_nodes: 1 would fit"}),
    (SNC4, {2: 4, 4: 6}, {1: "numa_nodes: 2 would fit", 3: UNEVEN}),
    ("GH200", {1: 3}, {2: "numa_nodes: 1 would fit", 3: UNEVEN}),
)
# Of a full host, the layer that says so first.
FULL = {
    "none": "host.no_free_slot",
    "slots": "placement.resource",
    "cells": "placement.cells",
}
BUILT = {machine: built for machine, built, *_ in MACHINES}


def policy_for(machine, nodes, placement):
    shape = topology.read(collected(*BUILT[machine])).shape
    return policy_of(
        placement,
        str(shape),
        vcpus=VCPUS,
        numa_nodes=nodes,
        max_per_host=None,
        exclusive="none" if placement == "cells" else "host",
        flavors={"name": "hp", "memory_gb": [20]},
    )


def cloud_of(machine, policy, mode):
    """Return the snapshot of one host, configured by the policy and empty."""
    host = collected(*BUILT[machine])
    config = generate(HostRequest(policy, topology.read(host), mode))
    conf = {nova_conf.PATH: rendering.nova_conf(config)}
    host = dataclasses.replace(host, files=host.files | conf)
    found = as_snapshot([hypervisor.facts(host, policy)])
    flavors = tuple(
        Flavor(f.name, f.name, f.vcpus, f.memory_mb, f.root_gb, f.extra_specs)
        for f in generate_flavors(policy)
    )
    (provider,) = found.providers
    scheme = host_scheme_of(policy)
    # What nova-compute reports of provider.yaml.
    offer = scheme.offers(policy, policy.pinned_classes[0], mode, config.slots)
    if mode == "dedicated":
        provider = dataclasses.replace(
            provider,
            inventories={**provider.inventories, **offer.inventories},
            traits=provider.traits | offer.traits,
        )
    found = dataclasses.replace(found, providers=(provider,), flavors=flavors)
    if mode == "dedicated" and scheme.enrolled_modes:
        while plan := plan_enroll(policy, view_of(found, "h1")).changes:
            found = with_changes(found, plan)
    return found


class Host:
    """A host that Nova's own function fills, in the snapshot as in Nova's objects."""

    def __init__(self, machine, policy):
        self.policy = policy
        self.cloud = cloud_of(machine, policy, "dedicated")
        (host,) = self.cloud.hosts
        self.flavor = next(f for f in self.cloud.flavors if f.name == "hp")
        self.topology = objects.NUMATopology(
            cells=[
                objects.NUMACell(
                    id=cell.id,
                    cpuset=set(cell.cpuset),
                    pcpuset=set(cell.pcpuset),
                    pinned_cpus=set(),
                    cpu_usage=0,
                    memory=cell.memory_mb,
                    memory_usage=0,
                    siblings=[set(one) & cell.pcpuset for one in cell.siblings],
                    mempages=[
                        objects.NUMAPagesTopology(
                            size_kb=4, total=cell.memory_mb * 256, used=0, reserved=0
                        )
                    ],
                    socket=cell.id,
                )
                for cell in host.cells
            ]
        )

    def fit(self):
        """Return the NUMA nodes and CPUs that Nova gives one VM more, or None."""
        specs = dict(self.flavor.extra_specs)
        spec = states.request_spec("hp", VCPUS, self.flavor.memory_mb, specs)
        return hardware.numa_fit_instance_to_host(
            self.topology, spec.numa_topology, provider_mapping=None
        )

    def explained(self, flavor="hp"):
        """Return the hosts that take a VM, and the reasons of those that do not."""
        request, _ = explain.request_of(self.cloud, flavor=flavor)
        settings = settings_for(self.policy)
        found = explain.explain(self.policy, self.cloud, request, settings)
        return found.accepting, {r.code for v in found.verdicts for r in v.reasons}

    def add(self, number, fit):
        """Let a VM run where Nova has put it, with the amounts of its flavor."""
        self.topology = hardware.numa_usage_from_instance_numa(self.topology, fit)
        cells = tuple(
            ServerCell(c.id, frozenset(c.pcpuset), c.memory, dict(c.cpu_pinning))
            for c in fit.cells
        )
        server = Server(
            id=f"i-{number}",
            name=f"vm{number}",
            host="h1",
            status="ACTIVE",
            vcpus=VCPUS,
            extra_specs=self.flavor.extra_specs,
            node="h1",
            flavor="hp",
            memory_mb=self.flavor.memory_mb,
            cells=cells,
            pinned=True,
        )
        on = {cell.host_node for cell in cells}
        self.cloud = dataclasses.replace(
            self.cloud,
            servers=(*self.cloud.servers, server),
            providers=tuple(map(self.claimed(server, on), self.cloud.providers)),
        )

    def claimed(self, server, on):
        """Return what gives a provider the server's allocation."""
        share = {
            const.RC_CELL_CPU: VCPUS // len(on),
            const.RC_CELL_MEMORY: server.memory_mb // len(on),
        }

        def changed(provider):
            wanted = {"PCPU": VCPUS, "MEMORY_MB": server.memory_mb, const.RC_SLOT: 1}
            if provider.parent:
                wanted = share if node_of(provider.name) in on else {}
            amounts = {k: n for k, n in wanted.items() if k in provider.inventories}
            held = {server.id: amounts} if amounts else {}
            allocations = {**provider.allocations, **held}
            return dataclasses.replace(provider, allocations=allocations)

        return changed


class TwentyTest(testtools.TestCase):
    def test_the_machines(self):
        self.assertEqual([m for m, *_ in TWENTY], list(BUILT))

    def test_how_many_fit_under_each_scheme(self):
        for machine, fitting, _ in TWENTY:
            for nodes, vms in fitting.items():
                for placement in FULL:
                    row = (machine, nodes, placement)
                    policy = policy_for(machine, nodes, placement)
                    (pinned,) = policy.pinned_classes
                    self.assertEqual(vms, shape_slots(pinned, policy.host_shapes[0]))
                    cloud = cloud_of(machine, policy, "dedicated")
                    (slots,) = host_capacity(policy, cloud)
                    self.assertEqual((vms, vms), (slots.total, slots.free), row)

    def test_explain_takes_as_many_as_nova(self):
        for machine, fitting, _ in TWENTY:
            # The first alone: Nova tries every order of nodes, 500,000 for 5 of 16.
            nodes, vms = next(iter(fitting.items()))
            for placement, full in FULL.items():
                row = (machine, nodes, placement)
                host = Host(machine, policy_for(machine, nodes, placement))
                for number in range(vms):
                    self.assertEqual(("h1",), host.explained()[0], (row, number))
                    fit = host.fit()
                    self.assertIsNotNone(fit, (row, number))
                    self.assertEqual(nodes, len({cell.id for cell in fit.cells}))
                    host.add(number, fit)
                accepting, codes = host.explained()
                self.assertEqual((), accepting, row)
                self.assertIn(full, codes, row)
                self.assertIsNone(host.fit(), row)

    def test_what_the_policy_refuses(self):
        for machine, _, refused in TWENTY:
            for nodes, words in refused.items():
                error = self.assertRaises(
                    DocumentError, policy_for, machine, nodes, "slots"
                )
                self.assertIn(words, str(error), (machine, nodes))
                if "would fit" in words:
                    remedy = int(words.split()[1])
                    policy_for(machine, remedy, "slots")

    def test_a_policy_of_another_machine(self):
        """A VM of one node on a host of smaller ones; Nova refuses it, too."""
        for machine, nodes in ((NPS4, 2), (L3, 4), (SNC4, 2)):
            host = Host(machine, policy_for(machine, nodes, "none"))
            specs = host.flavor.extra_specs | {"hw:numa_nodes": "1"}
            host.flavor = dataclasses.replace(host.flavor, extra_specs=specs)
            host.cloud = dataclasses.replace(host.cloud, flavors=(host.flavor,))
            host.policy = policy_for("2 x EPYC 7763, NPS1", 1, "none")
            accepting, codes = host.explained()
            self.assertEqual(((), {"host.numa_cell_too_small"}), (accepting, codes))
            self.assertIsNone(host.fit(), machine)

    def test_general_vms(self):
        """They share the CPUs of a host of their own, whatever its nodes."""
        for machine, fitting, _ in TWENTY:
            nodes = next(iter(fitting))
            for placement in FULL:
                row = (machine, placement)
                policy = policy_for(machine, nodes, placement)
                host = Host(machine, policy)
                general = "g.8c.16g"
                self.assertEqual((), host.explained(general)[0], row)
                host.cloud = cloud_of(machine, policy, "shared")
                self.assertEqual(("h1",), host.explained(general)[0], row)
                self.assertEqual((), host.explained()[0], row)

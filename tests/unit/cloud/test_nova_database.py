# SPDX-License-Identifier: Apache-2.0
"""Explain says what the filter does, on hosts as Nova's database holds them."""

import collections
import inspect
import json
import random
import uuid
from unittest import mock

import fixtures
import testtools
from nova import conf as nova_conf
from nova import objects
from oslo_config import fixture as config_fixture

from nova_perfvm import conf, rules
from nova_perfvm import constants as const
from nova_perfvm.cloud import answers, nova_database
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts import snapshot
from nova_perfvm.facts.snapshot import (
    Aggregate,
    ComputeHost,
    Flavor,
    Migration,
    Server,
    Snapshot,
    reader,
)
from nova_perfvm.policy import HostShape, loader
from nova_perfvm.scheduler import adapters, filters
from tests.unit.scheduler import states

# Codes of hosts that no state below has, and why.
NOT_MADE = {"host.trait_missing": "the scheduler does not know the traits of hosts"}
HOST_CODES = {c for c in rules.REASON_CODES if c.startswith("host.")} - {*NOT_MADE}
# Fields that a reader of hosts leaves out, and why.
NOT_TOLD = {
    # Traits are not told to it, and the filter counts the unpinned itself.
    adapters: {"traits", "unpinned", "unreadable"},
    reader: set(),
    # Cells are assumed afterwards; the rest is in
    # Nova's database alone.
    answers: {"cells", "cells_source", "vcpus_used", "num_instances", "unreadable"}
    | {"service_version", "pci_pools", "reported"},
}

POLICY = """
schema_version: "1.0"
host_shape: [2x20, 2x20x2]
placement: none
managed_hosts: {managed}
classes:
  general: {{default: true}}
  high-performance:
    {{vcpus: 20, cpu_policy: dedicated, numa_nodes: 1, exclusive: {exclusive},
      max_per_host: {most}, smt: {smt}, disk: {{source: volume}},
      flavors: {{name: "hp.{{memory_gb}}", memory_gb: [64]}}}}
"""
# Pinned classes of two kinds need labels.
SECOND = "  small: {vcpus: 4, cpu_policy: dedicated, exclusive: none}\n"
ISOLATING = {f"trait:{const.TRAIT_ELASTIC}_2": "required"}
SMALL = states.HP_SPECS | {"perfvm:class": "small"}
GENERAL = {"perfvm:class": "general", "hw:cpu_policy": "shared"}
CLASSLESS = {"hw:cpu_policy": "dedicated"}


def random_topology(rng):
    shape = HostShape(
        rng.choice([1, 2, 2, 4]), rng.choice([10, 20, 20, 22]), rng.choice([1, 1, 2])
    )
    every = set(range(shape.cpus))
    dedicated, shared = every, set()
    kind = rng.choice(["dedicated", "dedicated", "open", "shared", "mixed"])
    if kind == "open":
        shared = every
    elif kind == "shared":
        dedicated, shared = set(), every
    elif kind == "mixed":
        dedicated = set(rng.sample(sorted(every), rng.randint(1, shape.cpus - 1)))
        shared = every - dedicated
    memory_mb = shape.cells * rng.choice([32, 100, 256]) * 1024
    pages = memory_mb // shape.cells * 256
    topology = states.numa_topology(
        shape,
        dedicated=dedicated,
        shared=shared,
        memory_mb=memory_mb,
        mempages=rng.choice([[], [(4, pages, 0, 100), (1048576, 90, 3, 2)]]),
    )
    for cell in topology.cells:
        size = rng.choice([0, 0, 4, 20, 20, 40])
        free = sorted(cell.pcpuset)
        if size and size <= len(free):
            cell.pin_cpus(set(rng.sample(free, size)))
        if cell.pinned_cpus or rng.random() < 0.3:
            cell.memory_usage = rng.choice([0, cell.memory // 2, cell.memory - 1024])
    return topology


def without_memory(text):
    """Return a topology whose last cell lacks a field."""
    document = json.loads(text)
    del document["nova_object.data"]["cells"][-1]["nova_object.data"]["memory"]
    return json.dumps(document)


def compute_node(name, text, vcpus=0, vms=0):
    """Return a ComputeNode as a compute saves it."""
    return objects.ComputeNode(
        uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
        host=name,
        hypervisor_hostname=name,
        numa_topology=text,
        vcpus_used=vcpus,
        stats={"num_instances": str(vms)},
        pci_device_pools=None,
    )


def random_node(rng, name, odd):
    """Return a ComputeNode, now and then an odd one."""
    topology = random_topology(rng)
    vms = sum(bool(cell.pinned_cpus) for cell in topology.cells)
    pins = sum(len(cell.pinned_cpus) for cell in topology.cells)
    others = rng.choice([0, 0, 0, 2])
    text = topology._to_json() if rng.random() < 0.95 else None
    if text and odd.random() < 0.03:
        text = without_memory(text)
    return compute_node(name, text, pins + 2 * others, vms + others)


def empty_node():
    """Return an open host to which most VMs may come."""
    every = set(range(40))
    topology = states.numa_topology(HostShape(2, 20, 1), dedicated=every, shared=every)
    return compute_node("open", topology._to_json())


def hosts_of(nodes):
    return tuple(ComputeHost(node.host, node.host, node.uuid, "s") for node in nodes)


class AgreementTest(testtools.TestCase):
    """The same verdict and the same reason on every host of every state."""

    STATES = 400
    HOSTS = 3

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.useFixture(fixtures.FakeLogger())
        config = self.useFixture(config_fixture.Config(nova_conf.CONF))
        conf.register_opts(nova_conf.CONF)
        # Other tests run in this process.
        config.config(group="perfvm", freeze_objects=False)
        config.config(
            group="filter_scheduler",
            enabled_filters=["PerfVMFilter", "NUMATopologyFilter"],
        )

    def random_policy(self, rng):
        managed = rng.choice(["all", "labelled"])
        text = POLICY.format(
            managed=managed,
            exclusive=rng.choice(["host", "host", "cell", "none"]),
            most=rng.choice([1, 2, 4]),
            smt=rng.choice(["cores", "threads"]),
        )
        policy = loader.parse(text + (SECOND if managed == "labelled" else ""))
        self.patch(filters.startup, "read_policy", lambda _name: policy)
        return filters.PerfVMFilter()

    def random_labels(self, rng):
        labels = ["high-performance", "high-performance, small", "typo", "general"]
        both = ("high-performance", "general")
        return rng.choice([()] * 6 + [both] + [(label,) for label in labels])

    def random_flavor(self, rng):
        extra = rng.choice([{}, {}, {"hw:mem_page_size": "1GB"}])
        specs = rng.choice([states.HP_SPECS | extra] * 4 + [SMALL, GENERAL, CLASSLESS])
        vcpus = 20 if specs.get("perfvm:class") == "high-performance" else 4
        return Flavor("f", "f", vcpus, rng.choice([8, 64, 128]) * 1024, 0, specs)

    def test_random_states(self):
        seeds = (41, 7, 3, 11)
        rng, isolating, odd, moving = (random.Random(seed) for seed in seeds)
        found = collections.Counter()
        for number in range(self.STATES):
            filter_ = self.random_policy(rng)
            nodes = [random_node(rng, f"hp{n}", odd) for n in range(self.HOSTS)]
            labels = {node.host: self.random_labels(rng) for node in nodes}
            flavor = self.random_flavor(rng)
            if number % 4 == 0:
                nodes.append(empty_node())
                labels["open"] = ()
            isolated = {node.host for node in nodes if isolating.random() < 0.02}
            # A general VM has left them, and may come back.
            left = {node.host for node in nodes if moving.random() < 0.5}
            self.patch(
                filters.residents.Residents,
                "unpinned",
                lambda _, host, _pinned, left=left: int(host in left),
            )
            ours = self.explained(filter_.policy, nodes, labels, flavor, isolated, left)
            spec = states.request_spec(
                "f", flavor.vcpus, flavor.memory_mb, dict(flavor.extra_specs)
            )
            for node in nodes:
                state = self.host_state(node, labels[node.host])
                if node.host in isolated:
                    state.aggregates.append(
                        objects.Aggregate(id=9, metadata=ISOLATING, hosts=[node.host])
                    )
                reasons = states.reasons(filter_, state, spec)
                passed = filter_.host_passes(state, spec)
                self.assertEqual(not reasons, passed)
                case = f"state {number}, {node.host}"
                self.assertEqual(reasons, ours[node.host], case)
                found.update([r.code for r in reasons] or ["passes"])
                said = "".join(map(rules.describe, reasons))
                found["moving"] += "VMs in motion" in said
        self.assertGreater(found["passes"], 50)
        self.assertGreater(found["moving"], 5)
        seldom = {code: found[code] for code in HOST_CODES if found[code] < 5}
        advice = "let random_node make hosts so refused, or name the code in NOT_MADE"
        self.assertEqual({}, seldom, f"{advice}; {found}")

    def explained(self, policy, nodes, labels, flavor, isolated, left):
        """Return the reasons of the rules by host, from what a snapshot has."""
        taken = Snapshot(
            taken_at="2026-01-01T00:00:00+00:00",
            hosts=hosts_of(nodes),
            aggregates=(
                *(
                    Aggregate(n, str(n), label, {const.CLASS_KEY: label}, {host})
                    for host, values in labels.items()
                    for n, label in enumerate(values)
                ),
                Aggregate(9, "9", "isolated", ISOLATING, frozenset(isolated)),
            ),
            flavors=(flavor,),
            servers=tuple(
                Server(host, host, None, "VERIFY_RESIZE", 2, {}) for host in left
            ),
            migrations=tuple(
                Migration(host, host, "migration", "finished", host) for host in left
            ),
        )
        taken = nova_database.with_cells(taken, nodes)
        # And through a file, as offline.
        taken = snapshot.loads(snapshot.dumps(taken))
        request, _ = explain.request_of(taken, flavor="f", volume_backed=True)
        found = explain.explain(policy, taken, request, settings_for(policy))
        return {
            verdict.view.host: tuple(
                reason
                for reason in verdict.reasons
                if reason.code in rules.REASON_CODES
            )
            for verdict in found.verdicts
        }

    def host_state(self, node, labels):
        """Return the HostState that the scheduler makes of a ComputeNode."""
        state = states.host_state(node.host, labels=labels)
        state.numa_topology = (
            objects.NUMATopology.obj_from_db_obj(node.numa_topology)
            if node.numa_topology
            else None
        )
        state.vcpus_used = node.vcpus_used
        state.num_instances = int(node.stats["num_instances"])
        return state


class ReadersTest(testtools.TestCase):
    def test_each_tells_every_fact(self):
        seen = Snapshot("now", hosts=hosts_of([empty_node()]))
        found = dict.fromkeys(("hypervisor_hostname", "id", "state", "status"), "x")
        found["service"] = {"host": "x"}
        for module, name, read in (
            (adapters, "HostFacts", lambda: adapters.host_facts(states.host_state())),
            (reader, "HostFacts", lambda: reader.host_facts(seen, seen.hosts[0])),
            (answers, "ComputeHost", lambda: answers.compute_host(found, None, (), ())),
        ):
            made = getattr(module, name)
            with mock.patch.object(module, name, wraps=made) as told:
                read()
            fields, (_, args, kwargs) = inspect.signature(made), told.mock_calls[0]
            given = fields.bind(*args, **kwargs).arguments
            advice = f"{module.__name__}: give {name} the field, or add it to NOT_TOLD"
            lacking = fields.parameters.keys() - given.keys()
            self.assertEqual(NOT_TOLD[module], lacking, advice)


class WithCellsTest(testtools.TestCase):
    def test_a_topology_that_cannot_be_read_is_its_hosts_fault_alone(self):
        whole = states.numa_topology()._to_json()
        newer = json.loads(whole)
        newer["nova_object.data"]["cells"][0]["nova_object.version"] = "9.9"
        texts = [json.dumps(newer), without_memory(whole), "{", whole]
        nodes = list(map(compute_node, "abcd", texts))
        taken = Snapshot("now", hosts=hosts_of([*nodes, compute_node("e", "")]))
        *found, unknown = nova_database.with_cells(taken, nodes).hosts
        self.assertEqual(taken.hosts[-1], unknown)
        self.assertEqual([0, 0, 0, 2], [len(host.cells) for host in found])
        said = ("Version 9.9 of NUMACell", "'memory'", "JSONDecodeError", "")
        for host, words in zip(found, said, strict=True):
            self.assertIn(words, host.unreadable)
        self.assertEqual("", found[-1].unreadable)

    def test_a_file_that_is_not_there(self):
        error = self.assertRaises(
            nova_database.NovaDBError, nova_database.configure, "/no/nova.conf"
        )
        self.assertIn("there is no /no/nova.conf", str(error))
        self.assertIn("run this on a controller", str(error))

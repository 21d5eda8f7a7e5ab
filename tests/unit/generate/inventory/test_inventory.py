# SPDX-License-Identifier: Apache-2.0
"""The inventory file: what it makes, and what is wrong with it."""

import dataclasses
import json

import testtools

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.facts import PagePool
from nova_perfvm.facts.snapshot import (
    INVENTORY_FILE,
    NOVA_DATABASE,
    HostCell,
    Inventory,
    host_facts,
)
from nova_perfvm.generate import inventory
from tests.unit.facts.snapshot.clouds import POLICY, Cloud
from tests.unit.rules import hosts as rules

NODE_0, NODE_1 = frozenset(range(20)), frozenset(range(20, 40))


def parse(hosts, policy=POLICY):
    document = {"schema_version": "1.0", "hosts": hosts}
    return inventory.parse(json.dumps(document), policy)


class ParseTest(testtools.TestCase):
    def test_hosts_of_a_shape_are_divided_as_host_config_does(self):
        units = dataclasses.replace(POLICY, placement="units")
        celled = rules.policy(exclusive="cell")
        none = frozenset()
        for host, policy, dedicated, shared in (
            ({"mode": "dedicated"}, POLICY, (NODE_0, NODE_1), (none, none)),
            ({"mode": "shared"}, POLICY, (none, none), (NODE_0, NODE_1)),
            ({"mode": "elastic"}, units, (NODE_0, NODE_1), (NODE_0, NODE_1)),
            ({"mode": "mixed"}, celled, (NODE_0, none), (none, NODE_1)),
            (
                {"mode": "dedicated", "shape": "2x20x2", "reserve": 1},
                POLICY,
                (NODE_0 - {0}, NODE_1 - {20}),
                (none, none),
            ),
        ):
            described = {"shape": "2x20", "memory_gb": 500} | host
            (cells,) = parse({"h": described}, policy).values()
            self.assertEqual(dedicated, tuple(cell.pcpuset for cell in cells), host)
            self.assertEqual(shared, tuple(cell.cpuset for cell in cells), host)
            self.assertEqual({250 * 1024}, {cell.memory_mb for cell in cells})
        self.assertEqual(19, len(cells[0].siblings))

    def test_cells_one_by_one(self):
        first = {"dedicated": "0-3", "memory_gb": 4, "siblings": ["0,2", "1,3"]}
        (found,) = parse({"h": {"cells": [first, {"shared": "4-7"}]}}).values()
        expected = HostCell(
            id=0,
            cpuset=frozenset(),
            pcpuset=frozenset(range(4)),
            memory_mb=4096,
            siblings=(frozenset({0, 2}), frozenset({1, 3})),
        )
        self.assertEqual(expected, found[0])
        self.assertEqual(frozenset(range(4, 8)), found[1].cpuset)

    def check(self, hosts, expected):
        text = f'schema_version: "1.0"\nhosts:\n{hosts}'
        error = self.assertRaises(
            DocumentError, inventory.parse, text, POLICY, "inv.yaml"
        )
        title, *lines = str(error).splitlines()
        self.assertEqual(f"inv.yaml: {len(expected)} mistakes", title)
        for line, words in zip(lines, expected, strict=True):
            self.assertIn(words, line)

    def test_all_mistakes_at_once(self):
        self.check(
            """\
  a: {shape: 2y20, mode: dedicated}
  b: {shape: 2x20, mode: dedicatd}
  d: {}
  e: {shape: 2x20, mode: shared, cells: [{dedicated: 0-1}]}
  f: {cells: [{dedicated: 0-19, shared: 19-20}, {dedicated: 20-1}]}
  g: {cells: [{dedicated: 0-19, siblings: ["0,1", "1,2"]}]}
  k: {cells: [{dedicated: 0-19}, {dedicated: 19-38}]}
  h: 5
  i: {shape: 2x20, mode: dedicated, clas: x}
  l: {reserve: 2, cells: [{dedicated: 0-19}]}
  m: {shared_nodes: 2, cells: [{shared: 0-19}, {shared: 20-39}, {dedicated: 40-59}]}
""",
            (
                "line 3: hosts.a.shape: '2y20' is not a host shape",
                "line 4: hosts.b.mode: found 'dedicatd'",
                "line 5: hosts.d: expected shape and mode, or cells",
                "line 6: hosts.e: expected shape and mode, or cells alone",
                "line 7: hosts.f.cells.0.shared: 19 are dedicated, too",
                "line 7: hosts.f.cells.1.dedicated: '20-1' in CPU list",
                "line 8: hosts.g.cells.0.siblings.1: another core has CPUs 1",
                "line 9: hosts.k.cells.1: another NUMA node has CPUs 19",
                "line 10: hosts.h: found 5, expected a mapping",
                "line 11: hosts.i.clas: unknown key; did you mean class?",
                "line 12: hosts.l: expected shape and mode, or cells alone",
                "line 13: hosts.m: expected shape and mode, or cells alone",
            ),
        )
        # What the policy has no such hosts for is told of hosts that are right.
        self.check(
            "  a: {shape: 2x20, mode: mixed}\n  b: {shape: 2x20, mode: elastic}\n",
            (
                "line 3: hosts.a: a mixed host serves several classes",
                "line 4: hosts.b: ",
            ),
        )


class MergeTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        self.cloud.add_host("hp1")
        self.cloud.add_hp("a", "hp1")

    def merged(self, hosts):
        return inventory.with_inventory(self.cloud.snapshot(), parse(hosts))

    def test_cells_with_what_servers_use(self):
        found, remarks = self.merged({"hp1": {"shape": "2x20", "mode": "dedicated"}})
        (host,) = found.hosts
        self.assertEqual(((), INVENTORY_FILE), (remarks, host.cells_source))
        facts = host_facts(found, host)
        self.assertEqual(NODE_0, facts.cells[0].pinned_cpus)
        self.assertEqual(host.memory_mb // 2, facts.cells[1].memory_mb)
        found, _ = self.merged({})
        self.assertNotEqual(INVENTORY_FILE, found.hosts[0].cells_source)

    def test_used_pages_are_counted(self):
        """Of cells that a database has told before, see cloud.refresh."""
        (server,) = self.cloud.snapshot().servers
        self.cloud.servers[server.id] = dataclasses.replace(
            server, page_size_kb=1048576
        )
        told = tuple(
            HostCell(number, frozenset(), node, 0, mempages=(PagePool(1048576, 90),))
            for number, node in enumerate((NODE_0, NODE_1))
        )
        found, _ = inventory.with_inventory(self.cloud.snapshot(), {"hp1": told})
        used = [cell.mempages[0].used for cell in found.hosts[0].cells]
        self.assertEqual([64, 0], used)

    def test_the_database_knows_better(self):
        (host,) = self.cloud.snapshot().hosts
        taken = dataclasses.replace(
            self.cloud.snapshot(),
            hosts=(dataclasses.replace(host, cells_source=NOVA_DATABASE),),
        )
        hosts = parse({"hp1": {"shape": "2x4", "mode": "dedicated"}})
        self.assertEqual((taken, ()), inventory.with_inventory(taken, hosts))

    def test_memory_that_disagrees_is_said(self):
        (host,) = self.cloud.snapshot().hosts
        self.cloud.change_inventories("hp1", MEMORY_MB=Inventory(512000, 512000))
        for _name, nodes_gb, pages, expected in (
            ("as it is", (250, 250), 0, []),
            ("the kernel keeps some", (247, 247), 0, []),
            ("half", (125, 125), 0, ["256000 MiB of memory, and Placement counts"]),
            (
                "another division",
                (1, 499),
                0,
                ["servers have 65536 MiB of NUMA node 0, which has 1024"],
            ),
            (
                "more pages than memory",
                (250, 250),
                251,
                ["huge pages are 257024 MiB of NUMA node 0, which has 256000"],
            ),
            ("not told", (0, 250), 0, []),
        ):
            told = tuple(
                HostCell(
                    number,
                    frozenset(),
                    cpus,
                    gb * 1024,
                    mempages=(PagePool(1048576, pages),) if not number else (),
                )
                for number, (cpus, gb) in enumerate(
                    zip((NODE_0, NODE_1), nodes_gb, strict=True)
                )
            )
            _, remarks = inventory.with_inventory(
                self.cloud.snapshot(), {host.host: told}
            )
            self.assertEqual(len(expected), len(remarks), remarks)
            for words, remark in zip(expected, remarks, strict=True):
                self.assertIn(words, remark)

    def test_what_disagrees_is_said(self):
        cells = [{"dedicated": "1-19"}, {"dedicated": "20-39"}]
        found, remarks = self.merged(
            {"hp1": {"cells": cells}, "hp7": {"shape": "2x20", "mode": "shared"}}
        )
        self.assertEqual(1, len(found.hosts))
        said = "\n".join(remarks)
        self.assertIn("39 dedicated CPUs, and Placement counts 40 PCPU", said)
        self.assertIn("servers own CPUs 0 of NUMA node 0, which has 1-19", said)
        self.assertIn("no compute host is called hp7", said)

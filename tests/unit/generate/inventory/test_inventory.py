# SPDX-License-Identifier: Apache-2.0
"""The inventory file: what it makes, and what is wrong with it."""

import dataclasses
import json

import testtools

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.facts.snapshot import (
    ASSUMED,
    INVENTORY_FILE,
    NOVA_DATABASE,
    HostCell,
    HostPages,
    host_facts,
)
from nova_perfvm.generate import inventory
from nova_perfvm.policy import loader
from tests.unit.facts.snapshot.clouds import POLICY, Cloud

NODE_0, NODE_1 = frozenset(range(20)), frozenset(range(20, 40))


def parse(hosts, policy=POLICY):
    document = {"schema_version": "1.0", "hosts": hosts}
    return inventory.parse(json.dumps(document), policy)


class ParseTest(testtools.TestCase):
    def test_hosts_of_a_shape(self):
        for mode, dedicated, shared in (
            ("dedicated", (NODE_0, NODE_1), (set(), set())),
            ("shared", (set(), set()), (NODE_0, NODE_1)),
        ):
            hosts = {"h": {"shape": "2x20", "mode": mode, "memory_gb": 500}}
            (cells,) = parse(hosts).values()
            self.assertEqual(dedicated, tuple(cell.pcpuset for cell in cells))
            self.assertEqual(shared, tuple(cell.cpuset for cell in cells))
            self.assertEqual({250 * 1024}, {cell.memory_mb for cell in cells})

    def test_threads_are_left_out_as_host_config_does(self):
        hosts = {"h": {"shape": "2x20x2", "mode": "dedicated", "reserve": 1}}
        (cells,) = parse(hosts).values()
        self.assertEqual(frozenset(range(1, 20)), cells[0].pcpuset)
        self.assertEqual(19, len(cells[0].siblings))

    def test_elastic_and_mixed_hosts(self):
        units = dataclasses.replace(POLICY, placement="units")
        hosts = {"h": {"shape": "2x20", "mode": "elastic"}}
        (cells,) = parse(hosts, units).values()
        self.assertEqual((NODE_0, NODE_0), (cells[0].cpuset, cells[0].pcpuset))
        celled = loader.load(overrides=["classes.high-performance.exclusive=cell"])
        hosts = {"h": {"shape": "2x20", "mode": "mixed"}}
        (cells,) = parse(hosts, celled).values()
        self.assertEqual((NODE_0, NODE_1), (cells[0].pcpuset, cells[1].cpuset))

    def test_cells_one_by_one(self):
        cells = [
            {
                "dedicated": "0-3",
                "memory_gb": 4,
                "siblings": ["0,2", "1,3"],
                "pages": {"2MB": 1024, "1GB": 1},
            },
            {"shared": "4-7"},
        ]
        (found,) = parse({"h": {"cells": cells}}).values()
        self.assertEqual(
            HostCell(
                id=0,
                cpuset=frozenset(),
                pcpuset=frozenset(range(4)),
                memory_mb=4096,
                siblings=(frozenset({0, 2}), frozenset({1, 3})),
                # What is in no huge page has small ones.
                mempages=(
                    HostPages(4, 256 * 1024),
                    HostPages(2048, 1024),
                    HostPages(1048576, 1),
                ),
            ),
            found[0],
        )
        self.assertEqual(frozenset(range(4, 8)), found[1].cpuset)

    def test_two_names_of_one_page_size(self):
        cell = {"memory_gb": 4, "pages": {"1GB": 1, "2MB": 1, "1024MB": 2}}
        error = self.assertRaises(DocumentError, parse, {"h": {"cells": [cell]}})
        (problem,) = error.mistakes
        self.assertEqual("1024MB", problem.path[-1])
        self.assertIn("same size as 1GB", problem.message)

    def test_remedies_name_keys_of_the_file(self):
        celled = loader.load(overrides=["classes.high-performance.exclusive=cell"])
        host = {"shape": "2x20", "mode": "dedicated"}
        for changes, policy, words in (
            ({"mode": "elastic"}, POLICY, "mode: dedicated, shared or mixed"),
            ({"mode": "mixed"}, POLICY, "mode: dedicated or shared"),
            ({"mode": "mixed", "shared_nodes": 2}, celled, "shared_nodes: 2: a"),
            ({"shared_nodes": 2}, celled, "shared_nodes is for mode: mixed alone"),
            ({"class": "general"}, POLICY, "class names the pinned class"),
            ({"mode": "shared", "class": "high-performance"}, POLICY, "leave class"),
            ({"reserve": 20}, POLICY, "reserve: 20: the host's smallest"),
        ):
            error = self.assertRaises(
                DocumentError, parse, {"h": host | changes}, policy
            )
            self.assertIn(words, str(error))
            self.assertNotIn("--", str(error))

    def test_names_of_page_sizes(self):
        for name in ("2M", "0GB", "1GB\n", "1" * 10 + "GB"):
            cell = {"memory_gb": 4, "pages": {name: 1}}
            error = self.assertRaises(DocumentError, parse, {"h": {"cells": [cell]}})
            self.assertIn("expected a page size", str(error))

    def mistakes(self, text):
        error = self.assertRaises(
            DocumentError, inventory.parse, text, POLICY, "inv.yaml"
        )
        return str(error).splitlines()

    def check(self, hosts, expected):
        title, *lines = self.mistakes(f'schema_version: "1.0"\nhosts:\n{hosts}')
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
  f:
    cells:
    - {dedicated: 0-19, shared: 19-20, memory_gb: 1, pages: {1GB: 2}}
    - {dedicated: 20-1, pages: {2M: 1}}
  g:
    cells:
    - {dedicated: 0-19, siblings: ["0,1", "1,2"], pages: {2MB: 1}}
    - {dedicated: 20-38}
  k: {cells: [{dedicated: 0-19}, {dedicated: 19-38}]}
  h: 5
  i: {shape: 2x20, mode: dedicated, clas: x}
""",
            (
                "line 3: hosts.a.shape: '2y20' is no host shape",
                "line 4: hosts.b.mode: found 'dedicatd'",
                "line 5: hosts.d: expected shape and mode, or cells",
                "line 6: hosts.e.mode: remove it",
                "line 6: hosts.e.shape: remove it",
                "line 9: hosts.f.cells.0.pages: 1024 MiB more",
                "line 9: hosts.f.cells.0.shared: 19 are dedicated, too",
                "line 10: hosts.f.cells.1.dedicated: '20-1' in CPU list",
                "line 10: hosts.f.cells.1.pages.2M: found '2M', expected a page size",
                "line 13: hosts.g.cells.0.memory_gb: missing",
                "line 13: hosts.g.cells.0.siblings.1: found '1-2'",
                "line 15: hosts.k.cells.1: CPU 19 is on NUMA node 0, too",
                "line 16: hosts.h: found 5, expected a mapping",
                "line 17: hosts.i.clas: unknown key; did you mean class?",
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

    def test_no_inventory_at_all(self):
        for text, words in (
            ("", "found null, expected a mapping"),
            ("hosts: [", "no YAML"),
            ("- 1", "expected a mapping"),
            ('schema_version: "1.0"', "hosts: missing"),
            ("{a: 1, a: 2}", "given twice"),
        ):
            self.assertIn(words, "".join(self.mistakes(text)))


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

    def test_used_pages_are_counted(self):
        (server,) = self.cloud.snapshot().servers
        self.cloud.servers[server.id] = dataclasses.replace(
            server, page_size_kb=1048576
        )
        cell = {"dedicated": "0-19", "memory_gb": 100, "pages": {"1GB": 90}}
        other = {**cell, "dedicated": "20-39"}
        found, _ = self.merged({"hp1": {"cells": [cell, other]}})
        pools = [cell.mempages[-1] for cell in found.hosts[0].cells]
        self.assertEqual([HostPages(1048576, 90, 64), HostPages(1048576, 90, 0)], pools)

    def test_the_database_knows_better(self):
        (host,) = self.cloud.snapshot().hosts
        taken = dataclasses.replace(
            self.cloud.snapshot(),
            hosts=(dataclasses.replace(host, cells_source=NOVA_DATABASE),),
        )
        hosts = parse({"hp1": {"shape": "2x4", "mode": "dedicated"}})
        self.assertEqual((taken, ()), inventory.with_inventory(taken, hosts))

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

    def test_hosts_that_it_has_not_stay_as_they_are(self):
        found, _ = self.merged({})
        self.assertEqual(ASSUMED, found.hosts[0].cells_source)

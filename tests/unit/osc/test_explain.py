# SPDX-License-Identifier: Apache-2.0
"""``explain`` and ``capacity show``, of saved snapshots."""

import json
import pathlib
import time

import fixtures
import yaml

from nova_perfvm.facts import snapshot
from tests.unit.facts.snapshot.clouds import GENERAL, HP, Cloud
from tests.unit.osc.test_shell import CommandCase


class SavedCase(CommandCase):
    def setUp(self):
        super().setUp()
        self.path = self.useFixture(fixtures.TempDir()).join("cloud.json")
        self.cloud = Cloud()
        for name in ("hp1", "hp2"):
            self.cloud.add_host(name)
            self.cloud.add_hp(f"{name}-a", name)
        self.cloud.add_hp("hp1-b", "hp1", first=20, node=1)
        self.save()

    def save(self):
        text = snapshot.dumps(self.cloud.snapshot())
        pathlib.Path(self.path).write_text(text, encoding="utf-8")

    def run_saved(self, *arguments):
        return self.run_command(*arguments, "--snapshot", self.path)


class ExplainTest(SavedCase):
    def test_a_host_takes_it(self):
        self.assertEqual(0, self.run_saved("explain", "--flavor", HP))
        self.assertIn("accepted", self.stdout)
        self.assertIn("1 of 2 hosts would take it", self.stderr)
        self.assertIn("NUMA nodes of 2 hosts are assumed symmetric", self.stderr)

    def test_a_fault_that_a_terminal_would_act_on(self):
        self.cloud.add("new", None, HP, {}, status="ERROR", fault="\x1b[2J\nx\x9b")
        self.save()
        self.run_saved("explain", "--server", "new")
        self.assertIn("new is ERROR: \\u001b[2J\nx\\u009b\n", self.stderr)
        self.assertEqual(3, self.run_saved("explain", "--server", "\u202enone"))
        self.assertIn(r"there is no server '\u202enone'", self.stderr)

    def test_an_inventory_tells_the_cells(self):
        path = pathlib.Path(self.path).with_name("inventory.yaml")
        hosts = {
            "hp1": {"shape": "2x20", "mode": "dedicated"},
            "hp2": {"cells": [{"dedicated": "0-19"}, {"dedicated": "20-37"}]},
        }
        document = {"schema_version": "1.0", "hosts": hosts}
        path.write_text(json.dumps(document), encoding="utf-8")
        told = ("--inventory", str(path))

        status = self.run_saved(
            "explain", "--flavor", HP, "--long", "-f", "json", *told
        )

        self.assertEqual(1, status)
        rows = json.loads(self.stdout)
        self.assertEqual(
            {"inventory file"}, {row["Source of NUMA Nodes"] for row in rows}
        )
        self.assertIn(
            "NUMA node 1: 18 of 18 pCPUs free, need 20", rows[1]["NUMA Nodes"]
        )
        self.assertIn("38 dedicated CPUs, and Placement counts 40", self.stderr)
        self.assertNotIn("assumed symmetric", self.stderr)
        self.assertEqual(0, self.run_saved("capacity", "show", "-f", "value", *told))
        self.assertIn("hp2 high-performance 1 1 0 0", self.stdout)

        path.write_text("hosts: {hp1: {mode: x}}", encoding="utf-8")
        self.assertEqual(3, self.run_saved("explain", "--flavor", HP, *told))
        self.assertIn("  schema_version: missing", self.stderr)
        self.assertIn("line 1: hosts.hp1.mode: found 'x', expected one of", self.stderr)

    def test_no_host_takes_it(self):
        self.cloud.add_hp("hp2-b", "hp2", first=20, node=1)
        self.save()
        self.assertEqual(1, self.run_saved("explain", "--flavor", HP, "-f", "json"))
        (row,) = json.loads(self.stdout)
        self.assertEqual(
            (2, ["hp1", "hp2"], "refused"), (row["Count"], row["Hosts"], row["Result"])
        )
        # The same kind of VM finds no other host: no migration makes room.
        words = "servers are in the way that no other host takes: hp1, hp2\n"
        self.assertIn(words, self.stderr)
        self.assertIn("none of 2 hosts would take it; no fix found\n", self.stderr)

    def test_one_row_a_host(self):
        status = self.run_saved("explain", "--flavor", HP, "--long", "-f", "yaml")
        self.assertEqual(0, status)
        hp1, hp2 = yaml.safe_load(self.stdout)
        self.assertEqual(("refused", "accepted"), (hp1["Result"], hp2["Result"]))
        self.assertIn("NUMA node 1: 20 of 20 pCPUs free, need 20", hp2["NUMA Nodes"])
        self.assertEqual("assumed symmetric", hp2["Source of NUMA Nodes"])
        (pcpu,) = (r for r in hp1["Placement"] if r["message"].startswith("PCPU"))
        self.assertEqual("PCPU: need 20, 0 of 40 free", pcpu["message"])
        self.assertEqual(
            ("placement.resource", "hp1", 20, 0),
            tuple(pcpu[k] for k in ("code", "host", "expected", "observed")),
        )
        self.assertEqual(["host.no_free_slot"], [r["code"] for r in hp1["Rules"]])
        self.assertEqual([[], [], None], [hp2[k] for k in ("Service", "Rules", "Fix")])

    def test_fields_of_a_fix(self):
        self.cloud.add_host("small", memory_gb=180)
        self.cloud.add_hp("hp2-b", "hp2", first=20, node=1)
        self.save()
        big = ("explain", "--flavor", "hp.20c.200g", "-f", "json")
        self.assertEqual(1, self.run_saved(*big))
        full, _ = json.loads(self.stdout)
        codes = {reason["code"] for reason in full["Detail"]}
        self.assertEqual(full["Reason"].split(", "), sorted(codes, reverse=True))
        self.assertEqual({"hp1"}, {reason["host"] for reason in full["Detail"]})
        (server,) = full["Fix"]["servers"]
        self.assertEqual(
            {
                "server": "i-hp1-a",
                "name": "hp1-a",
                "action": "migrate",
                "command": "openstack server migrate i-hp1-a",
            },
            server,
        )
        self.assertIn("host hp1: free 20 pCPUs", full["Fix"]["message"])

    def test_one_host(self):
        status = self.run_saved("explain", "--flavor", HP, "--host", "hp1")
        self.assertEqual(1, status)
        self.assertNotIn("hp2", self.stdout)

    def test_a_request_that_is_not_of_its_class(self):
        self.cloud.change_flavor(HP, vcpus=16)
        self.save()
        self.assertEqual(1, self.run_saved("explain", "--flavor", HP))
        self.assertIn("the flavor has 16 vCPUs, its class exactly 20", self.stderr)

    def test_the_schedulers_own_settings(self):
        path = self.file("[workarounds]\ndisable_fallback_pcpu_query = False\n")
        self.cloud.add_host("g1", "shared")
        self.cloud.change_flavor(HP, extra_specs={"hw:cpu_policy": "dedicated"})
        self.save()
        arguments = ("explain", "--flavor", HP, "--host", "g1", "--nova-conf", path)
        self.run_saved(*arguments, "--long")
        self.assertIn("offered for VCPU in place of PCPU", self.stdout)
        self.assertNotIn("refuses no host", self.stderr)
        path = self.file("[perfvm]\nmode = observe\n")
        self.run_saved(*arguments[:-1], path)
        self.assertIn("mode is observe: PerfVMFilter refuses no host", self.stderr)

    def test_mistakes(self):
        for words, *arguments in (
            ("there is no flavor 'x'", "--flavor", "x", "--snapshot", self.path),
            ("there is no cloud here", "--flavor", "x"),
            ("cannot read /no", "--flavor", "x", "--snapshot", "/no"),
            ("no JSON", "--flavor", "x", "--snapshot", self.file("{")),
            ("/no", "--flavor", "x", "--policy", "/no", "--snapshot", self.path),
        ):
            self.assert_refused(3, words, "explain", *arguments)
        for words, *arguments in (
            ("one of the arguments --flavor --server is required",),
            ("not allowed with", "--flavor", "x", "--server", "y"),
            ("not allowed with", "--flavor", "x", "--snapshot", "y", "--from-nova-db"),
        ):
            self.assert_refused(3, words, "explain", *arguments)

    def test_a_large_cloud(self):
        """A thousand servers: general ones on most hosts, no slot anywhere."""
        self.cloud = Cloud()
        for n in range(100):
            self.cloud.add_host(f"hp{n}")
            self.cloud.add_hp(f"hp{n}-a", f"hp{n}")
            self.cloud.add_hp(f"hp{n}-b", f"hp{n}", first=20, node=1)
        for n in range(20):
            self.cloud.add_host(f"g{n}", "shared")
            for m in range(40):
                self.cloud.add_general(f"g{n}-{m}", f"g{n}")
        self.save()
        for flavor, status in ((HP, 1), (GENERAL, 1)):
            begun = time.monotonic()
            self.assertEqual(status, self.run_saved("explain", "--flavor", flavor))
            self.assertLess(time.monotonic() - begun, 60)


class CapacityTest(SavedCase):
    def test_by_host(self):
        self.assertEqual(0, self.run_saved("capacity", "show", "-f", "value"))
        self.assertEqual(
            "hp1 high-performance 2 2 0 0\nhp2 high-performance 2 1 1 0\n", self.stdout
        )

    def test_by_cloud(self):
        arguments = ("capacity", "show", "--by", "cloud", "-f", "json")
        self.assertEqual(0, self.run_saved(*arguments))
        (row,) = json.loads(self.stdout)
        self.assertEqual((4, 3, 1, 0), tuple(row.values())[2:])

    def test_by_aggregate_where_there_is_none(self):
        arguments = ("capacity", "show", "--by", "aggregate", "-f", "value")
        self.assertEqual(0, self.run_saved(*arguments))
        self.assertEqual("", self.stdout.strip())

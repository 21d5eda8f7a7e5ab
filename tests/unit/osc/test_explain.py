# SPDX-License-Identifier: Apache-2.0
"""``explain`` and ``capacity show``, of saved snapshots."""

import json

import yaml

from nova_perfvm.facts.snapshot import Inventory
from nova_perfvm.policy import loader
from tests.unit.facts.snapshot.clouds import HP, Cloud
from tests.unit.osc.base import CommandCase


class SavedCase(CommandCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        for name in ("hp1", "hp2"):
            self.cloud.add_host(name)
            self.cloud.add_hp(f"{name}-a", name)
        self.cloud.add_hp("hp1-b", "hp1", first=20, node=1)
        self.save(self.cloud)

    def run_saved(self, *arguments):
        return self.run_command(*arguments, "--snapshot", self.path)


class ExplainTest(SavedCase):
    def test_a_host_takes_it(self):
        self.assertEqual(0, self.run_saved("explain", "--flavor", HP))
        self.assertIn("accepted", self.stdout)
        for words in (
            "1 of 2 hosts would take it",
            "NUMA nodes of 2 hosts are assumed symmetric",
            "assumed: nova-scheduler's options suit the policy",
        ):
            self.assertIn(words, self.stderr)

    def test_a_fault_that_a_terminal_would_act_on(self):
        self.cloud.add("new", None, HP, {}, status="ERROR", fault="\x1b[2J\nx\x9b")
        self.save(self.cloud)
        self.run_saved("explain", "--server", "new")
        self.assertIn("new is ERROR: \\u001b[2J\nx\\u009b\n", self.stderr)
        self.assertEqual(3, self.run_saved("explain", "--server", "\u202enone"))
        self.assertIn(r"there is no server '\u202enone'", self.stderr)

    def test_an_inventory_tells_the_cells(self):
        hosts = {
            "hp1": {"shape": "2x20", "mode": "dedicated"},
            "hp2": {"cells": [{"dedicated": "0-19"}, {"dedicated": "20-37"}]},
        }
        document = {"schema_version": "1.0", "hosts": hosts}
        path = self.write("inventory.yaml", json.dumps(document))
        told = ("--inventory", path)

        status = self.run_saved(
            "explain", "--flavor", HP, "--long", "-f", "json", *told
        )

        self.assertEqual(1, status)
        rows = json.loads(self.stdout)
        self.assertIn(
            "NUMA node 1: 18 of 18 pCPUs free, need 20", rows[1]["NUMA Nodes"]
        )
        self.assertIn("38 dedicated CPUs, and Placement counts 40", self.stderr)
        self.assertNotIn("assumed symmetric", self.stderr)
        self.write("inventory.yaml", "hosts: {hp1: {mode: x}}")
        self.assertEqual(3, self.run_saved("explain", "--flavor", HP, *told))
        self.assertIn("  schema_version: missing", self.stderr)
        self.assertIn("line 1: hosts.hp1.mode: found 'x', expected one of", self.stderr)

    def test_one_row_a_host(self):
        status = self.run_saved("explain", "--flavor", HP, "--long", "-f", "yaml")
        self.assertEqual(0, status)
        hp1, hp2 = yaml.safe_load(self.stdout)
        self.assertEqual(("refused", "accepted"), (hp1["Result"], hp2["Result"]))
        self.assertIn("NUMA node 1: 20 of 20 pCPUs free, need 20", hp2["NUMA Nodes"])
        full = {
            "code": "placement.resource",
            "host": "hp1",
            "message": "PCPU: need 20, 0 of 40 free",
        }
        self.assertIn(full, hp1["Detail"])
        self.assertEqual("host.no_free_slot", hp1["Detail"][-1]["code"])
        self.assertEqual(([], None), (hp2["Detail"], hp2["Fix"]))
        status = self.run_saved("explain", "--flavor", HP, "--host", "hp1")
        self.assertEqual(1, status)
        self.assertNotIn("hp2", self.stdout)

    def test_no_host_takes_it(self):
        self.cloud.add_host("small", memory_gb=180)
        self.cloud.add_hp("hp2-b", "hp2", first=20, node=1)
        self.save(self.cloud)
        big = ("explain", "--flavor", "hp.20c.200g", "-f", "json")
        self.assertEqual(1, self.run_saved(*big))
        full, _ = json.loads(self.stdout)
        self.assertEqual(
            (2, ["hp1", "hp2"], "refused"),
            (full["Count"], full["Hosts"], full["Result"]),
        )
        codes = {reason["code"] for reason in full["Detail"]}
        self.assertEqual(full["Reason"].split(", "), sorted(codes, reverse=True))
        server = {
            "server": "i-hp1-a",
            "name": "hp1-a",
            "command": "openstack server migrate i-hp1-a --wait\n"
            "openstack server resize confirm i-hp1-a",
        }
        words = "host hp1: migrate hp1-a (i-hp1-a)"
        fix = {"host": "hp1", "steps": [], "servers": [server], "message": words}
        self.assertEqual(fix, full["Fix"])
        said = f"none of 3 hosts would take it; smallest fix found: {words}\n"
        self.assertIn(said, self.stderr)

    def test_a_request_that_is_not_of_its_class(self):
        self.cloud.change_flavor(HP, vcpus=16)
        self.save(self.cloud)
        self.assertEqual(1, self.run_saved("explain", "--flavor", HP))
        self.assertIn("the flavor has 16 vCPUs, its class exactly 20", self.stderr)

    def test_the_schedulers_own_settings(self):
        self.cloud.add_host("g1", "shared")
        self.cloud.change_flavor(HP, extra_specs={"hw:cpu_policy": "dedicated"})
        self.save(self.cloud)
        for options, code, words in (
            ("[workarounds]\ndisable_fallback_pcpu_query = True\n", "PCPU", ""),
            ("[workarounds]\ndisable_fallback_pcpu_query = False\n", "", ""),
            ("[perfvm]\nmode = observe\n", "", "PerfVMFilter refuses no host"),
        ):
            conf = ("--nova-conf", self.file(options))
            self.run_saved("explain", "--flavor", HP, "--host", "g1", *conf)
            self.assertEqual(bool(code), "PCPU: need" in self.stdout, options)
            self.assertIn(words, self.stderr)
            self.assertNotIn("nova-scheduler's options suit", self.stderr)

    def test_a_filter_that_refuses_nothing(self):
        """Plans and capacity keep to the rules all the same."""
        self.cloud.change_inventories("hp2", VCPU=Inventory(40, 40))
        self.save(self.cloud)
        for options in (
            "[perfvm]\nmode = observe\n",
            "[filter_scheduler]\nenabled_filters = ComputeFilter\n",
        ):
            conf = ("--nova-conf", self.file(options))
            for status, *command in (
                (0, "explain", "--flavor", HP),
                (2, "plan", "free", "--flavor", HP),
                (0, "capacity", "show", "-f", "value", "-c", "Free"),
            ):
                self.assertEqual(status, self.run_saved(*command, *conf))
                self.assertIn("the rules do not count for explain", self.stderr)
            self.assertEqual("0\n0\n", self.stdout)

    def test_mistakes(self):
        saved = ("--flavor", "x", "--snapshot", self.path)
        for words, *arguments in (
            ("there is no flavor 'x': see openstack flavor list", *saved),
            ("/no cannot be read", *saved, "--nova-conf", "/no"),
            ("one of the arguments --flavor --server is required",),
            ("not allowed with", "--flavor", "x", "--server", "y"),
            *(
                (
                    f"{more[0]} is for a new server",
                    "--server",
                    "hp1-a",
                    *more,
                    *saved[2:],
                )
                for more in (
                    ("--server-group", "x"),
                    ("--image", "x"),
                    ("--boot-from-volume",),
                )
            ),
            ("not allowed with", "--flavor", "x", "--snapshot", "y", "--from-nova-db"),
        ):
            self.assert_refused(3, words, "explain", *arguments)


class CapacityTest(SavedCase):
    def test_by(self):
        for by, rows in (
            ("host", "hp1 high-performance 2 2 0 0\nhp2 high-performance 2 1 1 0\n"),
            ("cloud", "all hosts high-performance 4 3 1 0\n"),
            ("aggregate", ""),
        ):
            arguments = ("capacity", "show", "--by", by, "-f", "value")
            self.assertEqual(0, self.run_saved(*arguments))
            self.assertEqual(rows.strip(), self.stdout.strip())
            self.assertNotIn("huge pages", self.stderr)

    def test_huge_pages_that_no_api_shows(self):
        document = loader.load().as_document()
        document["classes"]["high-performance"]["mem_page_size"] = "1GB"
        policy = ("--policy", self.write("policy.yaml", json.dumps(document)))
        for command in (("capacity", "show"), ("plan", "servers")):
            self.run_saved(*command, *policy)
            self.assertIn("huge pages of 2 hosts are not known", self.stderr)

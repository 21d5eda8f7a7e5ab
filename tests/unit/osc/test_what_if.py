# SPDX-License-Identifier: Apache-2.0
"""``plan what-if``, of saved snapshots."""

import json
from dataclasses import replace

import fixtures
import yaml

from nova_perfvm import constants as const
from nova_perfvm.facts import snapshot
from nova_perfvm.facts.snapshot import Aggregate, Inventory
from nova_perfvm.policy import loader
from tests.unit.diagnose.explain.test_explain import UNITS
from tests.unit.facts.snapshot.clouds import GENERAL, Cloud
from tests.unit.osc.test_explain import SavedCase


class WhatIfCase(SavedCase):
    def what_if(self, *arguments, policy=None):
        """Return the exit status, and {name: (before, after)} of each measure."""
        with fixtures.EnvironmentVariable("PERFVM_POLICY", policy):
            status = self.run_saved("plan", "what-if", *arguments, "-f", "json")
        found = {}
        for row in json.loads(self.stdout) if self.stdout else ():
            name = next(iter(row.values()))
            before, after = found.setdefault(name, ([], []))
            before.append(row["Before"])
            after.append(row["After"])
            self.assertEqual(row["After"] - row["Before"], row["Difference"])
        return status, found

    def policy_file(self, name, document):
        return self.write(name, yaml.safe_dump(document))


MEMORY = ("--memory-gb", "500")


class WhatIfTest(WhatIfCase):
    """Two dedicated hosts: one full, one with a slot."""

    def test_hosts_that_come_and_go(self):
        hp1, hp2 = ([2, 2, 0, 0], [2, 2, 0, 0]), ([2, 1, 1, 0], [2, 1, 1, 0])
        gone, new = [0, 0, 0, 0], ([0, 0, 0, 0], [2, 0, 2, 0])
        for expected, expected_status, words, arguments in (
            ({"all hosts": ([4, 3, 1, 0], [10, 3, 7, 0])}, 0, "", ["--add", "3x2x24"]),
            # A host for general VMs has no slot.
            (
                {
                    "hp1": hp1,
                    "hp2": hp2,
                    "new-2x20-1": new,
                    "new-2x20-2": (gone, gone),
                },
                0,
                "",
                ["--add", "1x2x20", "--add", "1x2x20=shared", "--by", "host"],
            ),
            (
                {"hp1": hp1, "hp2": ([2, 1, 1, 0], gone)},
                1,
                "hp2: hp2-a (i-hp2-a) stays: no host was found for it",
                ["--remove", "hp2", "--by", "host"],
            ),
            (
                {"all hosts": ([4, 3, 1, 0], [4, 3, 1, 0])},
                0,
                "hp2-a (i-hp2-a) goes from hp2 to new-2x20-1",
                ["--add", "1x2x20", "--remove", "hp2"],
            ),
            # Not to each other.
            (
                {"hp1": (hp1[0], gone), "hp2": (hp2[0], gone)},
                1,
                "hp1: hp1-a (i-hp1-a) stays: no host was found for it",
                ["--remove", "hp2", "--remove", "hp1", "--by", "host"],
            ),
        ):
            more = MEMORY if "--add" in arguments else ()
            status, found = self.what_if(*arguments, *more)
            self.assertEqual(expected_status, status, self.stderr)
            self.assertEqual(expected, found)
            self.assertIn(words, self.stderr)

    def test_new_hosts_are_in_the_zone_of_most_hosts(self):
        zone = {"availability_zone": "az1"}
        made = Aggregate(1, "u", "az1", zone, frozenset(self.cloud.hosts))
        self.cloud.parts["aggregates"] = (made,)
        for name, host in self.cloud.hosts.items():
            self.cloud.hosts[name] = replace(host, availability_zone="az1")
            self.cloud.change_provider(name, aggregates=frozenset({"u"}))
        for bound, words in (("az1", "goes from hp2 to new-2x20-1"), ("az2", "stays")):
            self.cloud.change_server("hp2-a", bound_zone=bound)
            self.save(self.cloud)
            self.what_if("--remove", "hp2", "--add", "1x2x20", *MEMORY)
            self.assertIn(f"hp2-a (i-hp2-a) {words}", self.stderr)

    def test_why_a_server_stays(self):
        self.cloud.change_server("hp2-a", status="ERROR")
        self.save(self.cloud)
        status, _ = self.what_if("--remove", "hp2", "--add", "1x2x20", *MEMORY)
        self.assertEqual(1, status)
        self.assertIn("hp2: hp2-a (i-hp2-a) stays: it is ERROR: ", self.stderr)
        self.assertNotIn("fits no other host", self.stderr)

    def test_hosts_that_need_a_label(self):
        """Those added get the one that host config says; who lacks it has a reason."""
        document = loader.load().as_document() | {"managed_hosts": "labelled"}
        path = self.policy_file("labelled.yaml", document)
        label = {const.CLASS_KEY: "high-performance"}
        hosts = frozenset({"hp1"})
        snapshot_ = replace(
            self.cloud.snapshot(), aggregates=(Aggregate(1, "u", "hp", label, hosts),)
        )
        self.write("cloud.json", snapshot.dumps(snapshot_))
        more = ("--add", "1x2x20", "--add", "1x2x20", *MEMORY)
        status, found = self.what_if(*more, policy=path)
        self.assertEqual((0, [8, 3, 4, 1]), (status, found["all hosts"][1]))
        reasons = {row["Slots"]: row["Reason"] for row in json.loads(self.stdout)}
        unfit = reasons.pop("unfit")
        self.assertIn("hp2: ", unfit)
        self.assertIn("no aggregate labels the host", unfit)
        self.assertEqual({""}, set(reasons.values()))
        status, found = self.what_if(*more, "--by", "aggregate", policy=path)
        expected = {"hp", "perfvm-new-2x20-1", "perfvm-new-2x20-2"}
        self.assertEqual((0, expected), (status, found.keys()))
        # A host of general VMs is not judged, and stays without.
        _, found = self.what_if("--add", "1x2x20=shared", *MEMORY, policy=path)
        self.assertEqual([4, 3, 0, 1], found["all hosts"][1])

    def test_traits_of_added_hosts(self):
        """Those that nova-compute reports; threads of a core are of the shape."""
        document = loader.load().as_document() | {"host_shape": "2x20x2"}
        of_class = document["classes"]["high-performance"]
        of_class |= {"smt": "threads", "cpu_thread_policy": "require"}
        path = self.policy_file("smt.yaml", document)
        of_class["packed_ring"] = True
        packed = self.policy_file("packed.yaml", document)
        for shape, policy, traits, free in (
            ("2x20x2", path, (), 2),
            ("2x20", path, (), 0),
            ("2x20x2", packed, (), 0),
            ("2x20x2", packed, ("COMPUTE_NET_VIRTIO_PACKED",), 2),
        ):
            for name in ("hp1", "hp2"):
                self.cloud.change_provider(name, traits=frozenset(traits))
            self.save(self.cloud)
            options = ("--add", f"1x{shape}", *MEMORY, "--by", "host")
            _, found = self.what_if(*options, policy=policy)
            self.assertEqual(free, found[f"new-{shape}-1"][1][2], self.stdout)

    def test_huge_pages_of_added_hosts(self):
        """As host config sets them aside: 60 of 1 GiB on each NUMA node of 64."""
        document = loader.load().as_document()
        of_class = document["classes"]["high-performance"]
        of_class |= {"mem_page_size": "1GB", "exclusive": "none", "max_per_host": None}
        sizes = [{"vcpus": 20, "memory_gb": 60, "root_gb": 0}]
        of_class["flavors"] = {"name": "hp.{memory_gb}g", "sizes": sizes}
        for placement in ("slots", "cells"):
            document["placement"] = placement
            path = self.policy_file(f"{placement}.yaml", document)
            options = ("--add", "1x2x20", "--memory-gb", "128", "--by", "host")
            _, found = self.what_if(*options, policy=path)
            after = found["new-2x20-1"][1]
            self.assertEqual([2, 0, 2, 0], after, self.stderr + self.stdout)

    def test_added_hosts_without_a_slot(self):
        _, found = self.what_if("--add", "1x2x20", "--memory-gb", "32")
        before, after, *_ = zip(*found.values(), strict=True)
        self.assertEqual(before, after)
        words = "added 2x20: this host has 0 slots for class high-performance: a VM"
        self.assertIn(words, self.stderr)

    def test_added_hosts_that_linux_does_not_have(self):
        status, _ = self.what_if("--add", "3x9999x9999", "--memory-gb", "256")
        self.assertEqual(3, status)
        self.assertIn("--add 3x9999x9999 --memory-gb 256: ", self.stderr)

    def test_the_density_of_the_fullest_target(self):
        status, _ = self.what_if("--remove", "hp2", "--add", "1x2x20", *MEMORY)
        self.assertEqual(0, status)
        self.assertIn(
            "the fullest target afterwards is new-2x20-1: 20 of 40 PCPU (allocation "
            "ratio 1)",
            self.stderr,
        )

    def test_general_servers_share_cpus_as_densely_as_allowed(self):
        for name in ("g1", "g2"):
            self.cloud.add_host(name, "shared")
            self.cloud.change_inventories(name, DISK_GB=Inventory(4000, 4000))
        for number in range(30):
            self.cloud.add_general(f"g{number}", "g1")
        self.save(self.cloud)
        limit = "vCPUs for each CPU (--max-ratio)"
        for ratio, status, words in (
            ("2", 0, f"at most 2 {limit}"),
            ("2", 0, "g2: 60 of 40 VCPU (1.5 for each CPU, allocation ratio 4)"),
            ("2", 0, "servers then have 1.5 vCPUs for each CPU, on 1 host together"),
            # 20 of them have 40 vCPUs.
            ("1", 1, "g1: g20 (i-g20) stays: no host was found for it"),
            ("0.1", 1, f"at most 0.1 {limit}"),
        ):
            options = ("--remove", "g1", "--max-ratio", ratio)
            self.assertEqual(status, self.what_if(*options)[0], self.stderr)
            self.assertIn(words, self.stderr)

    def test_another_policy(self):
        document = loader.load().as_document()
        old = self.policy_file("old.yaml", document)
        document["classes"]["high-performance"] |= {
            "vcpus": 10,
            "max_per_host": 4,
            "flavors": {"name": "hp.{memory_gb}g", "memory_gb": [32], "root_gb": 0},
        }
        path = self.policy_file("new.yaml", document)

        status, found = self.what_if("--policy", path)

        self.assertEqual(1, status, self.stderr)
        self.assertIn("3 servers left behind", self.stderr)
        self.assertIn("policy in use: built-in", self.stderr)
        self.assertIn("another number of slots on 2 hosts", self.stderr)
        before, after = found["all hosts"]
        self.assertEqual(([4, 3, 1, 0], 8), (before, after[0]))
        # In the other order it is the other way round.
        _, found = self.what_if("--policy", old, policy=path)
        self.assertEqual(4, found["all hosts"][1][0])

    def test_mistakes(self):
        for words, *arguments in (
            ("nothing to suppose",),
            ("no compute host 'nowhere' (the nearest: hp", "--remove", "nowhere"),
            ("--add and --memory-gb go together", *MEMORY, "--remove", "hp1"),
            ("--add and --memory-gb go together", "--add", "1x2x20"),
            (
                "placement: slots, and enrolled hosts need units",
                "--flip",
                "hp1=elastic",
            ),
            ("placement: slots", "--add", "1x2x20=elastic", *MEMORY),
            ("--memory-gb 1: 4 res", "--add", "1x2x20", "--memory-gb", "1"),
            ("expected HOST=elastic", "--flip", "hp1=shared"),
            ("such as 10x2x24", "--add", "2x24"),
            ("modes: dedicated", "--add", "1x2x24=odd"),
            ("above 0", "--add", "1x2x24", "--memory-gb", "0"),
        ):
            self.assertEqual((3, {}), self.what_if(*arguments))
            self.assertIn(words, self.stderr)


class FlipTest(WhatIfCase):
    """A cloud that has units, with one host that is not enrolled yet."""

    def setUp(self):
        super().setUp()
        self.cloud = Cloud(UNITS)
        for name in ("e1", "e2"):
            self.cloud.add_elastic(name)
        self.cloud.add_general("g", "e1")
        self.cloud.allocate_units("i-g", "e1")
        self.cloud.add_host("plain", "shared")
        self.cloud.change_inventories("plain", DISK_GB=Inventory(900, 900))
        self.policy = self.policy_file("units.yaml", UNITS.as_document())
        self.save(self.cloud)

    def test_hosts_that_are_flipped_and_added(self):
        for arguments, name, expected in (
            (["--flip", "plain=elastic"], "plain", ([0, 0, 0, 0], [2, 0, 2, 0])),
            (["--flip", "plain=elastic"], "e1", ([2, 0, 0, 2], [2, 0, 0, 2])),
            (["--add", "1x2x20", *MEMORY], "new-2x20-1", ([0] * 4, [2, 0, 2, 0])),
        ):
            arguments += ["--by", "host"]
            status, found = self.what_if(*arguments, policy=self.policy)
            self.assertEqual((0, expected), (status, found[name]), self.stderr)

    def test_servers_on_a_host_that_is_flipped(self):
        flip = ("--flip", "plain=elastic", "--by", "host")
        self.cloud.add("bare", "plain", GENERAL, {"VCPU": 2, "MEMORY_MB": 4096})
        self.save(self.cloud)
        status, found = self.what_if(*flip, policy=self.policy)
        self.assertEqual(0, status, self.stderr)
        # One general VM, and no high-performance one comes any more.
        self.assertEqual([2, 0, 0, 2], found["plain"][1])
        self.cloud.change_server("bare", task="resize_migrating")
        self.save(self.cloud)
        self.assertEqual((3, {}), self.what_if(*flip, policy=self.policy))
        self.assertIn("bare (i-bare) is being changed", self.stderr)

    def test_another_number_of_children(self):
        document = UNITS.as_document() | {"elastic": {"slots": 4}}
        path = self.policy_file("four.yaml", document)
        status, found = self.what_if("--policy", path, policy=self.policy)
        self.assertEqual(1, status, self.stderr)
        self.assertIn("e2 is enrolled anew, with CUSTOM_PERFVM_ELASTIC_4", self.stderr)
        self.assertIn("1 server left behind", self.stderr)
        self.assertEqual(([4, 0, 2, 2], [4, 0, 2, 2]), found["all hosts"])

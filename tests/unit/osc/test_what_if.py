# SPDX-License-Identifier: Apache-2.0
"""``plan what-if``, of saved snapshots."""

import json
import pathlib

import yaml

from nova_perfvm.facts.snapshot import Inventory
from nova_perfvm.policy import loader
from tests.unit.diagnose.explain.test_explain import UNITS
from tests.unit.facts.snapshot.clouds import GENERAL, Cloud
from tests.unit.osc.test_explain import SavedCase

# As the providers of computes have; those of children are made of it.
UUID = "2b1f7a52-6c0e-4a2e-9d7e-0f3c0f6c4b1{}"


class WhatIfCase(SavedCase):
    def what_if(self, *arguments, policy=None):
        """Return the exit status, and {name: (before, after)} of each measure."""
        named = ("--policy-in-use", policy) if policy else ()
        status = self.run_saved("plan", "what-if", *named, *arguments, "-f", "json")
        found = {}
        for row in json.loads(self.stdout) if self.stdout else ():
            name = next(iter(row.values()))
            before, after = found.setdefault(name, ([], []))
            before.append(row["Before"])
            after.append(row["After"])
            self.assertEqual(row["After"] - row["Before"], row["Difference"])
        return status, found

    def policy_file(self, name, document):
        path = pathlib.Path(self.path).with_name(name)
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        return str(path)


class WhatIfTest(WhatIfCase):
    """Two dedicated hosts: one full, one with a slot."""

    def test_hosts_that_are_added(self):
        status, found = self.what_if("--add", "3x2x24")
        self.assertEqual(3, status)
        self.assertIn("no host of the cloud is a 2x24", self.stderr)
        status, found = self.what_if("--add", "3x2x24", "--memory-gb", "500")
        self.assertEqual(0, status, self.stderr)
        self.assertEqual({"all hosts": ([4, 3, 1, 0], [10, 3, 7, 0])}, found)
        # With the memory of their like; a host for general VMs has no slot.
        _, found = self.what_if("--add", "1x2x20", "--add", "2x2x20=shared")
        self.assertEqual({"all hosts": ([4, 3, 1, 0], [6, 3, 3, 0])}, found)

    def test_rows_by_host(self):
        _, found = self.what_if("--add", "1x2x20", "--by", "host")
        self.assertEqual(
            {
                "hp1": ([2, 2, 0, 0], [2, 2, 0, 0]),
                "hp2": ([2, 1, 1, 0], [2, 1, 1, 0]),
                "new-2x20-1": ([0, 0, 0, 0], [2, 0, 2, 0]),
            },
            found,
        )

    def test_a_host_that_is_removed(self):
        status, found = self.what_if("--remove", "hp2", "--by", "host")
        self.assertEqual(1, status)
        self.assertEqual(([2, 1, 1, 0], [0, 0, 0, 0]), found["hp2"])
        self.assertIn("hp2-a (i-hp2-a) on hp2 fits no other host", self.stderr)

        status, found = self.what_if("--add", "1x2x20", "--remove", "hp2")
        self.assertEqual(0, status, self.stderr)
        self.assertIn("hp2-a (i-hp2-a) goes from hp2 to new-2x20-1", self.stderr)
        self.assertEqual({"all hosts": ([4, 3, 1, 0], [4, 3, 1, 0])}, found)
        # Not to each other.
        status, found = self.what_if("--remove", "hp2", "--remove", "hp1")
        self.assertEqual(1, status)
        self.assertEqual([0, 0, 0, 0], found.get("all hosts", (0, [0, 0, 0, 0]))[1])
        self.assertEqual(3, self.stderr.count("fits no other host"))

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
        self.assertIn("the built-in policy is taken for that in use", self.stderr)
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
            ("host hp1 is named twice", "--remove", "hp1", "--remove", "hp1"),
            ("host hp1 is named twice", "--remove", "hp1", "--flip", "hp1=elastic"),
            ("--memory-gb is for --add", "--memory-gb", "1", "--remove", "hp1"),
            ("placement: slots, and elastic hosts need units", "--flip", "hp1=elastic"),
            ("placement: slots", "--add", "1x2x20=elastic"),
        ):
            with self.subTest(words):
                self.assertEqual((3, {}), self.what_if(*arguments))
                self.assertIn(words, self.stderr)
        for words, *arguments in (
            ("expected HOST=elastic", "--flip", "hp1=shared"),
            ("such as 10x2x24", "--add", "2x24"),
            ("modes: dedicated", "--add", "1x2x24=odd"),
            ("above 0", "--add", "1x2x24", "--memory-gb", "0"),
        ):
            with self.subTest(words):
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
        self.save()

    def save(self):
        super().save()
        path = pathlib.Path(self.path)
        text = path.read_text()
        for number, name in enumerate(self.cloud.hosts):
            text = text.replace(f'"p-{name}"', f'"{UUID.format(number)}"')
        path.write_text(text)

    def test_an_empty_host(self):
        status, found = self.what_if(
            "--flip", "plain=elastic", "--by", "host", policy=self.policy
        )
        self.assertEqual(0, status, self.stderr)
        self.assertEqual(([0, 0, 0, 0], [2, 0, 2, 0]), found["plain"])
        self.assertEqual(([2, 0, 0, 2], [2, 0, 0, 2]), found["e1"])

    def test_added_hosts_are_enrolled(self):
        _, found = self.what_if("--add", "2x2x20", policy=self.policy)
        self.assertEqual({"all hosts": ([4, 0, 2, 2], [8, 0, 6, 2])}, found)

    def test_servers_on_it_get_their_units(self):
        self.cloud.add("bare", "plain", GENERAL, {"VCPU": 2, "MEMORY_MB": 4096})
        self.save()
        status, found = self.what_if(
            "--flip", "plain=elastic", "--by", "host", policy=self.policy
        )
        self.assertEqual(0, status, self.stderr)
        # One general VM, and no high-performance one comes any more.
        self.assertEqual([2, 0, 0, 2], found["plain"][1])

    def test_servers_that_cannot_be_there_together(self):
        self.cloud.add("bare", "plain", GENERAL, {"VCPU": 2}, task="resize_migrating")
        self.save()
        self.assertEqual(
            (3, {}), self.what_if("--flip", "plain=elastic", policy=self.policy)
        )
        self.assertIn("bare (i-bare) is being changed", self.stderr)

    def test_a_provider_without_a_uuid(self):
        super().save()
        self.assertEqual(
            (3, {}), self.what_if("--flip", "plain=elastic", policy=self.policy)
        )
        said = "{0}: provider {0}: found 'p-{0}', expected its UUID"
        self.assertIn(said.format("plain"), self.stderr)
        self.assertIn("openstack perfvm snapshot save FILE", self.stderr)
        # Children of another number are made, too.
        document = UNITS.as_document() | {"elastic": {"slots": 4}}
        path = self.policy_file("four.yaml", document)
        status, _ = self.what_if("--policy", path, policy=self.policy)
        self.assertEqual(1, status, self.stderr)
        for host in ("e1", "e2"):
            self.assertIn(f"stays as it is enrolled: {said.format(host)}", self.stderr)

    def test_another_number_of_children(self):
        document = UNITS.as_document() | {"elastic": {"slots": 4}}
        path = self.policy_file("four.yaml", document)
        status, found = self.what_if("--policy", path, policy=self.policy)
        self.assertEqual(1, status, self.stderr)
        self.assertIn("e2 is enrolled anew, with CUSTOM_PERFVM_ELASTIC_4", self.stderr)
        self.assertIn("1 server left behind", self.stderr)
        self.assertEqual(([4, 0, 2, 2], [4, 0, 2, 2]), found["all hosts"])

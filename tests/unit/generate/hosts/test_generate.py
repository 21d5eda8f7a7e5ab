# SPDX-License-Identifier: Apache-2.0
import dataclasses
import json
import re

import testtools
from hypothesis import given

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import HostFacts
from nova_perfvm.generate.hosts import generate, rendering
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import loader
from nova_perfvm.rules import decide
from nova_perfvm.rules.slots import host_slots
from tests.unit.generate.hosts.requests import (
    configs,
    configured,
    host_request,
    policy_of,
)
from tests.unit.rules.hosts import general_request


def values(config):
    return {(s.section, s.option): s.values for s in config.nova if s.values}


class AnyHostTest(testtools.TestCase):
    @given(configs())
    def test_each_cpu_is_in_one_set(self, config):
        cpus = config.cpus
        sets = (cpus.dedicated, cpus.shared, cpus.either, cpus.housekeeping, cpus.idle)
        everything = [cpu for one in sets for cpu in one]
        self.assertEqual(sorted(config.request.topology.cpus), sorted(everything))

    @given(configs())
    def test_slots_are_those_of_the_rules(self, config):
        if not config.room:
            return
        (vm_class,) = config.room
        known = config.request.topology.memory_mb is not None
        slots = host_slots(vm_class, config.cells, None if known else 0)
        scheme = scheme_of(config.request.policy)
        slots = host_scheme_of(config.request.policy).usable_slots(
            config.request.policy, slots
        )
        self.assertEqual(slots, config.slots)
        text = str(config.provider)
        offered = slots > 0 and bool(scheme.slot_class(config.request.policy, vm_class))
        self.assertEqual(offered, "CUSTOM_PERFVM_SLOT" in text)
        if offered:
            self.assertIn(f"'total': {slots}, ", text)
        said = any("0 slots" in warning for warning in config.warnings)
        self.assertEqual(config.slots == 0, said)

    @given(configs())
    def test_cores_that_are_kept_and_threads_that_are_left_out(self, config):
        cpus = config.cpus
        for node in config.request.topology.nodes:
            kept = [core for core in node.cores if cpus.housekeeping >= set(core)]
            self.assertEqual(config.request.reserve, len(kept))
            if any(vm_class.smt == "cores" for vm_class in config.room):
                owned = [len(cpus.pinnable & set(core)) for core in node.cores]
                self.assertLessEqual(max(owned), 1)


class ModesTest(testtools.TestCase):
    def test_cpu_sets(self):
        threads, cell = policy_of(smt="threads"), policy_of(exclusive="cell")
        mixed = {"shape": "4x20", "mode": "mixed", "policy": cell}
        elastic = {"mode": "elastic", "policy": policy_of("units")}
        shared = {"shape": "2x20x2", "mode": "shared", "reserve": 1}
        most = mixed | {"shared_nodes": 3}
        reserved = elastic | {"shape": "2x22", "reserve": 2}
        for arguments, slots, *expected in (
            ({}, 2, "cpu_dedicated_set 0-39"),
            ({"shape": "2x20x2"}, 2, "cpu_dedicated_set 0-39"),
            ({"shape": "2x20x2", "policy": threads}, 2, "cpu_dedicated_set 0-79"),
            (shared, 0, "cpu_shared_set 1-19,21-39,41-59,61-79"),
            (mixed, 2, "cpu_dedicated_set 0-59", "cpu_shared_set 60-79"),
            (most, 1, "cpu_dedicated_set 0-19", "cpu_shared_set 20-79"),
            (elastic, 2),
            (reserved, 2, "vcpu_pin_set 2-21,24-43"),
        ):
            config = configured(**arguments)
            found = [
                f"{setting.option} {setting.values[0]}"
                for setting in config.nova
                if setting.option.endswith("_set")
            ]
            self.assertEqual((slots, expected), (config.slots, found), arguments)
            if config.request.mode in {"shared", "elastic"}:
                self.assertIsNone(config.provider)
        self.assertEqual(set(range(40, 80)), configured("2x20x2").cpus.idle)

    def test_connections_of_live_migrations(self):
        shared = configured("2x20", "shared")
        for config, said in (
            (configured(), True),
            (configured("2x21", reserve=1), False),
            (shared, False),
        ):
            notes = " ".join(config.notes)
            self.assertEqual(said, "live_migration_parallel_connections" in notes)

    def test_how_to_enroll(self):
        one = {"name": "f", "memory_gb": [8]}
        small = policy_of("units", vcpus=4, max_per_host=None, flavors=one)
        for shape, mode, policy, slots in (
            ("2x20", "elastic", policy_of("units"), 2),
            ("2x20x2", "dedicated", policy_of("units"), 2),
            ("2x20", "shared", policy_of("units"), 0),
            # There is more room; units are made for the policy's largest shape.
            ("2x24", "elastic", small, 10),
        ):
            config = configured(shape, mode, policy=policy)
            self.assertIn(f"host enroll HOST --slots {slots}.", config.notes[-1])
            self.assertEqual(slots, config.slots)
        self.assertNotIn("enroll", " ".join(configured().notes))
        # Only elastic hosts are told apart by units; dedicated ones by their trait.
        (provider,) = configured(policy=policy_of("units")).provider["providers"]
        self.assertNotIn("inventories", provider)
        self.assertEqual(
            ["CUSTOM_PERFVM_HIGH_PERFORMANCE"], provider["traits"]["additional"]
        )

    def test_labels_let_in_all_that_the_host_serves(self):
        document = policy_of(exclusive="cell", host_shape="4x20").as_document()
        small = {"vcpus": 10, "cpu_policy": "dedicated", "exclusive": "cell"}
        document["classes"]["small"] = small
        document["managed_hosts"] = "labelled"
        policy = loader.parse(json.dumps(document))
        for mode, labels in (("dedicated", {"small"}), ("mixed", {"small", "general"})):
            config = configured("4x20", mode, policy=policy, class_name="small")
            create, add = config.label_commands
            (found,) = re.findall(r"perfvm:class=(\S+)", create)
            self.assertEqual(create.split()[-1], add.split()[-2])
            self.assertEqual(labels, set(found.split(",")))
            self.assertEqual(found, rendering.as_document(config)["host"]["label"])
            host = HostFacts("h", "h", config.cells, labels=frozenset(labels))
            decision = decide(policy, general_request(), host)
            self.assertEqual(mode == "mixed", decision.allowed)

    def test_a_label_only_where_the_policy_wants_one(self):
        labelled, units = (
            dataclasses.replace(policy_of(placement), managed_hosts="labelled")
            for placement in ("slots", "units")
        )
        config = configured(policy=labelled)
        self.assertIn(f"#   {config.label_commands[1]}\n", rendering.nova_conf(config))
        for arguments in (
            {},
            {"mode": "shared", "policy": labelled},
            {"shape": "2x10", "policy": labelled},
            # Enrolling does it.
            {"policy": units},
        ):
            self.assertEqual((), configured(**arguments).label_commands)

    def test_huge_pages(self):
        config = configured(policy=policy_of(mem_page_size="1GB"))
        small = tuple(f"node:{node},size:4,count:1048576" for node in (0, 1))
        found = values(config)
        self.assertEqual(("8192",), found["DEFAULT", "reserved_host_memory_mb"])
        self.assertEqual(small, found["DEFAULT", "reserved_huge_pages"])
        self.assertEqual(
            ("hugepagesz=1G", "hugepages=0:246,1:246"), config.kernel.arguments[-2:]
        )

    def test_large_pages_fill_each_nodes_share(self):
        for memory_gb, size in ((64, "1G"), (65, "2M")):
            two = {"name": "two", "memory_gb": [memory_gb]}
            policy = policy_of(mem_page_size="large", numa_nodes=2, flavors=two)
            config = configured(policy=policy)
            self.assertIn(f"hugepagesz={size}", config.kernel.arguments)
            taken = {"1G": "1024", "2M": "2"}[size]
            said = f"mem_page_size: large means pages of {taken} MiB"
            self.assertIn(said, " ".join(config.notes))
        named = configured(policy=policy_of(mem_page_size="1GB"))
        self.assertNotIn("taken for pages", " ".join(named.notes))

    def test_disks_and_memory(self):
        disk = {"source": "volume", "read_iops": 5000}
        config = configured(policy=policy_of(disk=disk), read_iops=6000)
        self.assertIn("'CUSTOM_PERFVM_READ_IOPS': {'total': 6000", str(config.provider))
        self.assertEqual(0, configured(memory_gb=120).slots)
        self.assertEqual(2, configured(memory_gb=None).slots)


class WarningsTest(testtools.TestCase):
    def test_each_where_it_applies(self):
        disk = policy_of(disk={"source": "volume", "read_iops": 5000})
        for words, arguments, *others in (
            ("these have 19, 19 CPUs and 246, 246 GiB", {"reserve": 1}, {}),
            ("these have 20, 20 CPUs and 56, 56 GiB", {"memory_gb": 120}),
            # Numbering matters only where CPUs differ.
            ("a shape has no CPU numbers", {"shape": "2x22", "reserve": 2}, {}),
            ("add its shape to host_shape", {"shape": "2x22"}, {}),
            ("give --memory-gb", {"memory_gb": None}, {}),
            ("drain the host first", {}),
            (
                "guaranteed 5000 for each of 2 slots",
                {"policy": disk, "read_iops": 6000},
                {"policy": disk, "read_iops": 10000},
            ),
        ):
            self.assertIn(words, " ".join(configured(**arguments).warnings))
            for other in others:
                self.assertNotIn(words, " ".join(configured(**other).warnings))


class RefusedTest(testtools.TestCase):
    def test_with_the_remedy(self):
        cell = policy_of(exclusive="cell")
        mixed = {"mode": "mixed", "policy": cell}
        disk = policy_of(disk={"source": "volume", "write_iops": 10})
        pages = policy_of("units", mem_page_size="1GB")
        shared = {"mode": "shared", "class_name": "high-performance"}
        for words, arguments in (
            ("exclusive: cell", {"mode": "mixed"}),
            ("1 shared NUMA nodes of 1", mixed | {"shape": "1x40"}),
            ("2 shared NUMA nodes of 2", mixed | {"shared_nodes": 2}),
            ("shared nodes are for mixed hosts", {"shared_nodes": 2}),
            ("placement: slots", {"mode": "mixed", "policy": policy_of("units")}),
            ("placement: units", {"mode": "elastic"}),
            ("placement: units", {"mode": "elastic", "policy": policy_of("none")}),
            ("can spare 0 to 19", {"reserve": 20}),
            ("can spare 0 to 19", {"reserve": -1}),
            ("-1 reserved GiB", {"reserve_memory_gb": -1}),
            ("can spare 0 to 3", {"memory_gb": 8}),
            ("--write-iops", {"policy": disk}),
            ("leave it out", {"read_iops": 5}),
            ("use mode dedicated", shared),
            ("different sizes", {"mode": "elastic", "policy": pages}),
            ("general is not pinned: the policy's", {"class_name": "general"}),
            ("fast", {"class_name": "fast"}),
        ):
            error = self.assertRaises(PerfVMError, generate, host_request(**arguments))
            self.assertIn(words, str(error))
            self.assertNotIn("\n", str(error))

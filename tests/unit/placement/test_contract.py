# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools
from nova.scheduler.utils import ResourceRequest

from nova_perfvm.facts import AskedResource
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import Flavor
from nova_perfvm.placement.contract import contract, resource_differences
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Disk, loader
from nova_perfvm.scheduler import adapters
from tests.unit.scheduler import states


def flavor_of(class_name, scheme, **keys):
    policy = dataclasses.replace(loader.load(), placement=scheme)
    classes = tuple(
        dataclasses.replace(c, **keys) if c.pinned else c for c in policy.classes
    )
    policy = dataclasses.replace(policy, classes=classes)
    return contract(policy, policy.get_class(class_name), 65536).extra_specs()


SLOT = {
    "resources:CUSTOM_PERFVM_SLOT": "1",
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE": "required",
}
ELASTIC = {"trait:CUSTOM_PERFVM_ELASTIC_2": "required"}


class ContractTest(testtools.TestCase):
    def test_what_flavors_say(self):
        disk = Disk(source="volume", read_iops=5000)
        away = {"trait:CUSTOM_PERFVM_HIGH_PERFORMANCE": "forbidden"}
        children = {
            "group_policy": "none",
            "resources_perfvm_a:CUSTOM_PERFVM_UNIT": "1",
            "resources_perfvm_b:CUSTOM_PERFVM_UNIT": "1",
            "trait_perfvm_a:CUSTOM_PERFVM_CHILD_A": "required",
            "trait_perfvm_b:CUSTOM_PERFVM_CHILD_B": "required",
        }
        iops = {"resources:CUSTOM_PERFVM_READ_IOPS": "5000"}
        whole = {"resources:CUSTOM_PERFVM_UNIT": "1000"}
        for name, scheme, keys, expected in (
            ("high-performance", "slots", {}, SLOT),
            ("high-performance", "slots", {"disk": disk}, SLOT | iops),
            ("general", "slots", {}, away),
            # Hosts are divided by NUMA node, or need not be.
            ("general", "slots", {"exclusive": "cell"}, {}),
            ("general", "slots", {"exclusive": "none"}, {}),
            ("high-performance", "units", {}, whole | ELASTIC),
            ("general", "units", {}, children | ELASTIC | away),
            ("high-performance", "none", {}, {}),
            ("general", "none", {}, {}),
        ):
            self.assertEqual(expected, flavor_of(name, scheme, **keys), (name, scheme))

    def test_an_isolated_aggregate_keeps_general_vms_off(self):
        policy = loader.load()
        for vm_class in policy.classes:
            usual, isolated = (
                contract(policy, vm_class, 65536).extra_specs(isolated_aggregates=value)
                for value in (False, True)
            )
            self.assertEqual(usual if vm_class.pinned else {}, isolated)


class DifferencesTest(testtools.TestCase):
    """What a request names otherwise than its class, as the filter says it."""

    def setUp(self):
        super().setUp()
        self.policy = dataclasses.replace(loader.load(), placement="units")
        self.general = contract(self.policy, self.policy.get_class("general"), 65536)
        self.specs = self.general.extra_specs()

    def differences(self, **facts):
        flavor = Flavor("f", "f", 2, 4096, 20, self.specs)
        request = request_for(flavor).facts._replace(**facts)
        return resource_differences(self.general, request)

    def test_none_where_the_flavor_says_the_contract(self):
        self.assertEqual(([], []), self.differences())

    def test_a_suffix_is_only_a_name(self):
        self.specs = {k.replace("_perfvm_a", "_x"): v for k, v in self.specs.items()}
        self.assertEqual(([], []), self.differences())

    def test_a_group_is_compared_as_a_whole(self):
        """Without its trait the second unit may come of the first child, too."""
        del self.specs["trait_perfvm_b:CUSTOM_PERFVM_CHILD_B"]
        one = "1 CUSTOM_PERFVM_UNIT of one provider"
        self.assertEqual(
            ([one], [f"{one}, CUSTOM_PERFVM_CHILD_B required"]), self.differences()
        )

    def test_a_key_that_nova_passes_over_is_no_claim(self):
        self.specs["resources_perfvm_a :CUSTOM_PERFVM_UNIT"] = self.specs.pop(
            "resources_perfvm_a:CUSTOM_PERFVM_UNIT"
        )
        found, missing = self.differences()
        self.assertEqual(
            ["nothing of one provider, CUSTOM_PERFVM_CHILD_A required"], found
        )
        self.assertEqual(1, len(missing))

    def test_amounts_that_nova_works_out_itself(self):
        for key, value, found in (
            ("resources:VCPU", "2", []),
            ("resources:VCPU", "0", ["0 VCPU"]),
            ("resources:PCPU", "2", ["2 PCPU"]),
            ("resources:MEMORY_MB", "1", ["1 MEMORY_MB"]),
            ("resources:DISK_GB", "0", []),
            ("resources:VGPU", "1", []),
        ):
            specs = self.specs | {key: value}
            # PCPU in a flavor pins by itself, so that the cells are looked away from.
            facts = request_for(Flavor("f", "f", 2, 4096, 20, specs)).facts
            request = facts._replace(cells=())
            self.assertEqual((found, []), resource_differences(self.general, request))

    def test_pcpus_that_nova_works_out_itself(self):
        policy = {"hw:cpu_policy": "dedicated"}
        isolated = policy | {"hw:emulator_threads_policy": "isolate"}
        for specs, amounts, found in (
            (policy, {"PCPU": "4", "VCPU": "0"}, []),
            (policy, {"PCPU": "5"}, ["5 PCPU"]),
            (policy, {"VCPU": "8"}, ["8 VCPU"]),
            (isolated, {"PCPU": "5"}, []),
            (isolated, {"PCPU": "4"}, ["4 PCPU"]),
        ):
            asked = specs | {f"resources:{name}": n for name, n in amounts.items()}
            # Of PCPU in a flavor and a CPU policy nova-api takes one.
            facts = request_for(Flavor("f", "f", 4, 4096, 20, specs)).facts
            resources = tuple(
                AskedResource("", name, int(n)) for name, n in amounts.items()
            )
            request = facts._replace(resources=resources)
            found_differences = resource_differences(None, request)[0]
            self.assertEqual(found, found_differences, asked)

    def test_amounts_in_several_groups(self):
        """Nova adds them up, and its own amount of a CPU policy to them."""
        pinned = {"hw:cpu_policy": "dedicated"}
        mixed = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "2-3"}
        for policy, amounts, found in (
            (pinned, {"_a:PCPU": "4"}, ["8 PCPU"]),
            (pinned, {":PCPU": "0", "_a:PCPU": "0"}, []),
            (pinned, {"_a:VCPU": "4"}, ["4 VCPU"]),
            ({}, {":PCPU": "4", "_a:PCPU": "4"}, ["8 PCPU"]),
            # These suffixes pin, as none does.
            ({}, {"1:PCPU": "4"}, []),
            ({}, {"1:PCPU": "3", ":PCPU": "1"}, []),
            ({}, {"1:PCPU": "4", "01:PCPU": "4"}, ["8 PCPU"]),
            ({}, {"_a:VCPU": "1", "_b:VCPU": "3"}, []),
            ({}, {"_a:VCPU": "4", "_b:VCPU": "4"}, ["8 VCPU"]),
            ({}, {":MEMORY_MB": "4096", "_a:MEMORY_MB": "4096"}, ["8192 MEMORY_MB"]),
            ({}, {":MEMORY_MB": "1024", "_a:MEMORY_MB": "3072"}, []),
            ({}, {"_a:MEMORY_MB": "4096"}, []),
            (mixed, {"_a:VCPU": "2"}, ["4 VCPU"]),
            (mixed, {"_a:PCPU": "2"}, ["4 PCPU"]),
        ):
            specs = policy | {f"resources{key}": n for key, n in amounts.items()}
            spec = states.request_spec("f", 4, 4096, specs)
            asked = ResourceRequest.from_request_spec(spec).merged_resources()
            words = {f"{amount} {name}" for name, amount in asked.items()}
            self.assertLessEqual(set(found), words, specs)
            facts = adapters.request_facts(spec)
            self.assertEqual((found, []), resource_differences(None, facts), specs)
        # Without the amount that Nova refuses, the others are Nova's own.
        specs = {"resources:MEMORY_MB": "4096", "resources_a:MEMORY_MB": "x"}
        facts = adapters.request_facts(states.request_spec("f", 4, 4096, specs))
        self.assertEqual((["-1 MEMORY_MB"], []), resource_differences(None, facts))


class AmountsTest(testtools.TestCase):
    def test_all_groups_are_added_up(self):
        """A general VM takes a unit of each child."""
        for scheme, name, expected in (
            ("slots", "high-performance", {"CUSTOM_PERFVM_SLOT": 1}),
            ("slots", "general", {}),
            ("units", "high-performance", {"CUSTOM_PERFVM_UNIT": 1000}),
            ("units", "general", {"CUSTOM_PERFVM_UNIT": 2}),
        ):
            policy = dataclasses.replace(loader.load(), placement=scheme)
            found = scheme_of(policy).amounts(policy, policy.get_class(name), 65536)
            self.assertEqual(expected, dict(found))


class SeveralClassesTest(testtools.TestCase):
    """Each pinned class has names of its own."""

    def setUp(self):
        super().setUp()
        built_in = loader.load()
        high = built_in.get_class("high-performance")
        self.policy = dataclasses.replace(
            built_in,
            classes=(
                dataclasses.replace(high, name="hp-20"),
                dataclasses.replace(high, name="hp8", vcpus=8),
                built_in.get_class("general"),
            ),
            managed_hosts="labelled",
        )

    def specs(self, name):
        return contract(self.policy, self.policy.get_class(name), 65536).extra_specs()

    def test_slots_and_traits_of_one_are_not_those_of_another(self):
        slot, trait = "resources:CUSTOM_PERFVM_SLOT", "trait:CUSTOM_PERFVM"
        for name, expected in (
            ("hp-20", {f"{slot}_HP_20": "1", f"{trait}_HP_20": "required"}),
            ("hp8", {f"{slot}_HP8": "1", f"{trait}_HP8": "required"}),
            # General VMs keep off the hosts of all.
            ("general", {f"{trait}_{c}": "forbidden" for c in ("HP_20", "HP8")}),
        ):
            self.assertEqual(expected, self.specs(name))

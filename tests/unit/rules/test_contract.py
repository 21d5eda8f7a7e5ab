# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import rules
from nova_perfvm.facts import AskedResource, AskedTrait, placement_request
from nova_perfvm.placement.contract import contract
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.policy import HostShape
from nova_perfvm.rules.request.contract import CODES
from tests.unit.rules import hosts
from tests.unit.rules.hosts import POLICY, general_request, hp_request

ELASTIC = frozenset({f"{const.TRAIT_ELASTIC}_2"})


def slots(amount):
    return (AskedResource("", const.RC_SLOT, amount),)


class CheckContractTest(testtools.TestCase):
    def test_each(self):
        units = dataclasses.replace(POLICY, placement="units")
        none = dataclasses.replace(POLICY, placement="none")
        slot = "1 CUSTOM_PERFVM_SLOT"
        for request, policy, expected in (
            (hp_request(resources=()), POLICY, ("flavor.resources", [], [slot])),
            *(
                (
                    hp_request(resources=slots(amount)),
                    POLICY,
                    ("flavor.resources", [f"{amount} CUSTOM_PERFVM_SLOT"], [slot]),
                )
                for amount in (0, 2)
            ),
            (
                hp_request(traits=()),
                POLICY,
                ("flavor.traits", [], ["CUSTOM_PERFVM_HIGH_PERFORMANCE required"]),
            ),
            (
                hosts.pinned_request(resources=slots(1)),
                POLICY,
                ("flavor.resources", [slot], []),
            ),
            # Flavors from before are left as they are.
            (general_request(), POLICY, None),
            (general_request(), units, None),
            # Isolated aggregates may see to it.
            (general_request(class_name="general"), POLICY, None),
            # Nothing is judged where Placement is left out.
            (hp_request(resources=(), traits=()), none, None),
        ):
            found = [
                (reason.code, reason.data["found"], reason.data["expected"])
                for reason in rules.check_request(policy, request)
            ]
            self.assertEqual([expected] if expected else [], found)

    def test_former_sizes(self):
        """A server asks for what its class did when it had its size."""
        shape = HostShape.parse("2x40x2")
        for placement in SCHEMES:
            for keys in (
                {},
                {"numa_nodes": 2},
                {"emulator_threads": "isolate"},
                {"cpu_thread_policy": "require", "smt": "threads"},
            ):
                before = hosts.policy(**keys)
                after = hosts.policy(vcpus=18, former_vcpus=(20,), **keys)
                before, after = (
                    dataclasses.replace(
                        policy, placement=placement, host_shapes=(shape,)
                    )
                    for policy in (before, after)
                )
                asked = contract(before, before.get_class("high-performance"), 65536)
                resources, traits = placement_request.read(asked.extra_specs(), ())
                request = hp_request(
                    resources=resources, traits=traits, running_vcpus=20
                )
                found = rules.check_request(after, request)
                of_contract = [r.data for r in found if r.code in CODES]
                self.assertEqual([], of_contract)


class ImageTest(testtools.TestCase):
    OPENS = (AskedTrait("", f"{const.TRAIT_ELASTIC}_2", "required", "image"),)

    def test_an_image_names_no_trait_of_the_project(self):
        expected = [("request.image_trait", {"found": [f"{const.TRAIT_ELASTIC}_2"]})]
        for placement in SCHEMES:
            policy = dataclasses.replace(POLICY, placement=placement)
            request = general_request(traits=self.OPENS)
            for found in (
                rules.check_request(policy, request),
                rules.check_image(policy, request, frozenset()),
            ):
                self.assertEqual(expected, [(r.code, r.data) for r in found])

    def test_other_traits_are_its_own_affair(self):
        traits = (AskedTrait("", "HW_CPU_X86_AVX2", "required", "image"),)
        self.assertEqual(
            (), rules.check_request(POLICY, general_request(traits=traits))
        )


class EnrolledHostTest(testtools.TestCase):
    def test_each_kind_is_called_enrolled(self):
        for trait, lacks in (
            (f"{const.TRAIT_ELASTIC}_2", const.RC_UNIT),
            (const.TRAIT_CELLS, const.RC_CELL_CPU),
        ):
            host = hosts.host(isolating=frozenset({trait}))
            (reason,) = rules.check_host(POLICY, general_request(), host)
            words = rules.describe(reason)
            self.assertIn(f"is enrolled (an aggregate of it requires {trait})", words)
            self.assertIn(f"asks for no {lacks}", words)

    def test_nothing_without_units_comes(self):
        """Whatever the labels and the policy say."""
        units = dataclasses.replace(POLICY, placement="units")
        labelled = dataclasses.replace(units, managed_hosts="labelled")
        lacking = ["host.units_lacking"]
        has = general_request(resources=(AskedResource("_a", const.RC_UNIT, 1),))
        for request, policy, expected in (
            (general_request(), units, lacking),
            (hosts.pinned_request(), units, lacking),
            (general_request(), labelled, lacking),
            (general_request(), POLICY, lacking),
            (has, units, []),
        ):
            host = hosts.host(mode="open", isolating=ELASTIC)
            found = rules.check_host(policy, request, host)
            self.assertEqual(expected, [reason.code for reason in found])

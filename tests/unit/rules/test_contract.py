# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import rules
from nova_perfvm.facts import AskedResource, AskedTrait
from tests.unit.rules import hosts
from tests.unit.rules.hosts import POLICY, general_request, hp_request

UNITS = dataclasses.replace(POLICY, placement="units")
ELASTIC = frozenset({f"{const.TRAIT_ELASTIC}_2"})


def slots(amount):
    return (AskedResource("", const.RC_SLOT, amount),)


class CheckContractTest(testtools.TestCase):
    def reasons(self, request, policy=POLICY):
        return [(r.code, r.data) for r in rules.check_request(policy, request)]

    def test_a_class_without_its_slot(self):
        expected = {"found": [], "expected": ["1 CUSTOM_PERFVM_SLOT"]}
        request = hp_request(resources=())
        self.assertEqual([("flavor.resources", expected)], self.reasons(request))

    def test_another_amount(self):
        for amount in (0, 2):
            ((code, data),) = self.reasons(hp_request(resources=slots(amount)))
            self.assertEqual("flavor.resources", code)
            self.assertEqual([f"{amount} CUSTOM_PERFVM_SLOT"], data["found"])

    def test_a_class_without_its_trait(self):
        ((code, data),) = self.reasons(hp_request(traits=()))
        self.assertEqual("flavor.traits", code)
        self.assertEqual(["CUSTOM_PERFVM_HIGH_PERFORMANCE required"], data["expected"])

    def test_a_slot_for_a_vm_of_no_class(self):
        request = hosts.pinned_request(resources=slots(1))
        ((code, data),) = self.reasons(request)
        self.assertEqual("flavor.resources", code)
        self.assertEqual(["1 CUSTOM_PERFVM_SLOT"], data["found"])

    def test_flavors_from_before_are_left_as_they_are(self):
        self.assertEqual([], self.reasons(general_request()))
        self.assertEqual([], self.reasons(general_request(), UNITS))

    def test_general_flavors_may_leave_it_to_isolated_aggregates(self):
        self.assertEqual([], self.reasons(general_request(class_name="general")))

    def test_nothing_is_judged_where_placement_is_left_out(self):
        policy = dataclasses.replace(POLICY, placement="none")
        self.assertEqual([], self.reasons(hp_request(resources=(), traits=()), policy))


class ImageTest(testtools.TestCase):
    OPENS = (AskedTrait("", f"{const.TRAIT_ELASTIC}_2", "required", "image"),)

    def test_an_image_names_no_trait_of_the_project(self):
        expected = [("request.image_trait", {"found": [f"{const.TRAIT_ELASTIC}_2"]})]
        for placement in ("slots", "units", "none"):
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


class ElasticHostTest(testtools.TestCase):
    def code(self, request, policy=UNITS, **facts):
        host = hosts.host(mode="open", isolating=ELASTIC, **facts)
        return [r.code for r in rules.check_host(policy, request, host)]

    def test_nothing_without_units_comes(self):
        for request in (general_request(), hosts.pinned_request()):
            self.assertEqual(["host.units_lacking"], self.code(request))

    def test_whatever_the_labels_and_the_policy_say(self):
        labelled = dataclasses.replace(UNITS, managed_hosts="labelled")
        for policy in (labelled, POLICY):
            self.assertEqual(
                ["host.units_lacking"], self.code(general_request(), policy)
            )

    def test_what_has_units_comes(self):
        request = general_request(resources=(AskedResource("_a", const.RC_UNIT, 1),))
        self.assertEqual([], self.code(request))

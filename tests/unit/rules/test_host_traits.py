# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm import rules
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.facts import AskedTrait
from nova_perfvm.policy import loader
from tests.unit.rules import hosts
from tests.unit.rules.hosts import general_request, host, hp_request

TRAIT = "HW_NIC_SRIOV"
POLICY = hosts.policy(host_traits=(TRAIT,))


class HostTraitsTest(testtools.TestCase):
    def codes(self, traits, request=None, policy=POLICY):
        observed = host(traits=traits)
        reasons = rules.check_host(policy, request or hp_request(), observed)
        placed = rules.check_placed(policy, request or hp_request(), observed)
        self.assertEqual(reasons, placed)
        return [reason.code for reason in reasons]

    def test_a_host_that_has_it(self):
        self.assertEqual([], self.codes(frozenset({TRAIT, "HW_CPU_X86_AVX2"})))

    def test_a_host_that_lacks_it(self):
        self.assertEqual(["host.trait_missing"], self.codes(frozenset()))

    def test_the_scheduler_does_not_know(self):
        self.assertEqual([], self.codes(None))

    def test_other_classes(self):
        shared = host("2x20", "shared", traits=frozenset())
        self.assertEqual((), rules.check_host(POLICY, general_request(), shared))
        self.assertEqual([], self.codes(frozenset(), policy=hosts.POLICY))


class FlavorTest(testtools.TestCase):
    """The flavor or the image has to ask for it, whatever the scheme."""

    def codes(self, *traits, **keys):
        request = hp_request()
        request = request._replace(traits=(*request.traits, *traits))
        policy = hosts.policy(host_traits=(TRAIT,))
        for scheme in keys.get("schemes", ("slots", "none")):
            object.__setattr__(policy, "placement", scheme)
            found = [r.code for r in rules.check_request(policy, request)]
            yield found

    def test_neither(self):
        self.assertEqual([["flavor.traits"]] * 2, list(self.codes()))

    def test_either(self):
        for source in ("flavor", "image"):
            asked = AskedTrait("", TRAIT, "required", source)
            self.assertEqual([[], []], list(self.codes(asked)))

    def test_forbidden_or_of_another_group_is_not_required(self):
        for asked in (
            AskedTrait("", TRAIT, "forbidden", "flavor"),
            AskedTrait("_x", TRAIT, "required", "flavor"),
        ):
            self.assertEqual([["flavor.traits"]] * 2, list(self.codes(asked)))


class PolicyTest(testtools.TestCase):
    """What may be named is in os-traits, or the operator's own."""

    def parse(self, name):
        return loader.parse(
            "schema_version: '1.0'\nclasses:\n  general:\n    default: true\n"
            f"    host_traits: [{name}]\n"
        )

    def test_names(self):
        for name in (TRAIT, "CUSTOM_RACK_7"):
            policy = self.parse(name)
            self.assertEqual((name,), policy.default_class.host_traits)
            document = policy.as_document()["classes"]["general"]
            self.assertEqual([name], document["host_traits"])

    def test_no_names(self):
        for name in ("HW_NIC_SRIOVV", "CUSTOM_PERFVM_SLOT", "CUSTOM_x", "7"):
            error = self.assertRaises(DocumentError, self.parse, name)
            self.assertIn("classes.general.host_traits.0", str(error))
            self.assertIn("os-traits", str(error))

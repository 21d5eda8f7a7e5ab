# SPDX-License-Identifier: Apache-2.0

import dataclasses

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
    def test_hosts(self):
        lacks, shared = frozenset(), host("2x20", "shared", traits=frozenset())
        for request, observed, policy, expected in (
            (hp_request(), host(traits=frozenset({TRAIT, "HW_X"})), POLICY, []),
            (hp_request(), host(traits=lacks), POLICY, ["host.trait_missing"]),
            # The scheduler does not know.
            (hp_request(), host(traits=None), POLICY, []),
            # Other classes.
            (general_request(), shared, POLICY, []),
            (hp_request(), host(traits=lacks), hosts.POLICY, []),
        ):
            for check in (rules.check_host, rules.check_placed):
                found = check(policy, request, observed)
                self.assertEqual(expected, [reason.code for reason in found])

    def test_flavors(self):
        """The flavor or the image has to ask for it, whatever the scheme."""
        for asked, expected in (
            ((), ["flavor.traits"]),
            ((AskedTrait("", TRAIT, "required", "flavor"),), []),
            ((AskedTrait("", TRAIT, "required", "image"),), []),
            ((AskedTrait("", TRAIT, "forbidden", "flavor"),), ["flavor.traits"]),
            ((AskedTrait("_x", TRAIT, "required", "flavor"),), ["flavor.traits"]),
        ):
            request = hp_request()
            request = request._replace(traits=(*request.traits, *asked))
            for scheme in ("slots", "none"):
                policy = dataclasses.replace(POLICY, placement=scheme)
                found = rules.check_request(policy, request)
                self.assertEqual(expected, [reason.code for reason in found], asked)


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

    def test_no_extra_spec_beside_it(self):
        own = f"extra_specs: {{'trait:{TRAIT}': forbidden}}"
        name = f"{TRAIT}]\n    {own}\n    former_vcpus: ["
        error = self.assertRaises(DocumentError, self.parse, name)
        self.assertIn("key host_traits decides it", str(error))

# SPDX-License-Identifier: Apache-2.0

import pathlib

import testtools

from nova_perfvm import rules
from nova_perfvm.findings import LEVELS
from nova_perfvm.rules import host, request
from nova_perfvm.rules.rule import HostRule, RequestRule, rules_of

ROOMS = ((request, RequestRule), (host, HostRule))


class RulesOfTest(testtools.TestCase):
    """A file of a room is a rule, in its place."""

    def test_every_file_is_one(self):
        for package, kind in ROOMS:
            files = list(pathlib.Path(package.__path__[0]).glob("[!_]*.py"))
            self.assertGreater(len(files), 5)
            self.assertEqual(len(files), len(rules_of(package, kind)))

    def test_no_two_have_one_place(self):
        for package, kind in ROOMS:
            orders = [rule.order for rule in rules_of(package, kind)]
            self.assertEqual(sorted(set(orders)), orders)

    def test_a_file_of_the_wrong_kind_is_named(self):
        error = self.assertRaises(TypeError, rules_of, host, RequestRule)
        self.assertIn("nova_perfvm.rules.host.", str(error))


class RefusalsTest(testtools.TestCase):
    def test_a_code_has_one_meaning(self):
        refusals = {
            refusal
            for package, kind in ROOMS
            for rule in rules_of(package, kind)
            for refusal in rule.refusals
        }
        self.assertGreater(len(refusals), 20)
        codes = sorted(refusal.code for refusal in refusals)
        self.assertEqual(sorted(rules.REASON_CODES), codes)

    def test_the_audit_lists_whatever_a_request_is_refused_for(self):
        for rule in rules_of(request, RequestRule):
            for refusal in rule.refusals:
                self.assertIn(refusal.audit, LEVELS)

    def test_the_audit_knows_its_codes(self):
        codes = {refusal.audit for refusal in rules.REFUSALS.values()} - {""}
        self.assertEqual(set(), codes - LEVELS.keys())

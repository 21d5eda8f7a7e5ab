# SPDX-License-Identifier: Apache-2.0
"""Which of the plugin's tests may be left out on a sandbox."""

import importlib

import fixtures

from tests import count
from tests.unit.tempest_plugin.cases import PluginCase

OURS = "nova_perfvm.tempest_plugin.tests."


class SkipsTest(PluginCase):
    def not_tested(self, **reasons):
        # Tempest need not be installed.
        run = importlib.import_module("tests.tempest.__main__")
        totals = count.Totals()
        totals.ended = {f"{OURS}ok": "success", "tempest.api.other": "skip"}
        for name, reason in reasons.items():
            totals.ended[f"{OURS}{name}"] = "skip"
            if reason:
                totals.reasons[f"{OURS}{name}"] = reason
        return list(run.not_tested(totals))

    def test_tests_of_another_policy(self):
        self.configure(placement="slots", exclusive="cell")
        classes = self.make()
        elastic = self.make(
            "scenario.test_elastic", "ElasticTest", "test_one_class_and_then_the_other"
        )
        path = f"{OURS}base.PerfVMTest.skip_checks"
        self.useFixture(fixtures.MonkeyPatch(path, classmethod(lambda _: None)))
        for skipping in (classes.need_exclusive_hosts, elastic.skip_checks):
            exc = self.assertRaises(classes.skipException, skipping)
            self.assertEqual([], self.not_tested(a=str(exc)))

    def test_tests_that_should_have_run(self):
        reasons = {"a": "no empty host takes flavor x", "b": ""}
        self.assertEqual(
            [
                f"{OURS}a: no empty host takes flavor x",
                f"{OURS}b: no reason given",
            ],
            self.not_tested(**reasons),
        )

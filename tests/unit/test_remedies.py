# SPDX-License-Identifier: Apache-2.0
"""No code is without an answer in tests/remedies.py, and what that names is there."""

import testtools

from nova_perfvm import findings
from tests.remedies import REMEDIES
from tests.shown import ROOT
from tests.unit.test_documented import source

NAMES = {
    value: name
    for name, value in vars(findings).items()
    if isinstance(value, str) and value in findings.LEVELS
}


class RemediesTest(testtools.TestCase):
    def test_every_code_has_an_answer(self):
        self.assertEqual(findings.LEVELS.keys(), REMEDIES.keys())

    def test_the_tests_are_there(self):
        """Those in modules that are about remedies name the code that they cure."""
        for code, remedy in REMEDIES.items():
            test = getattr(remedy, "test", None)
            if test is None:
                self.assertTrue(remedy.why, code)
                continue
            self.assertIsNotNone(source(test))
            module = test.rsplit(".", 2)[0]
            if "_remedies" in module:
                text = (ROOT / f"{module.replace('.', '/')}.py").read_text()
                self.assertIn(f"codes.{NAMES[code]}", text)

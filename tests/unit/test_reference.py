# SPDX-License-Identifier: Apache-2.0
"""The pages of the reference are made of the code: nothing is left out."""

import importlib.util
import pathlib
import re

import testtools

from nova_perfvm import constants as const
from nova_perfvm import rules
from nova_perfvm.api import extra_specs
from nova_perfvm.diagnose.audit.checks import CHECKS
from nova_perfvm.findings import LEVELS
from nova_perfvm.measure.prove import promise
from nova_perfvm.policy import VMClass
from nova_perfvm.policy.classes import Disk
from tests import programs

DOC = pathlib.Path(__file__).parents[2] / "doc"


def extension(name="perfvm_reference"):
    """Return the module of the directives, which is no part of the package."""
    path = DOC / f"ext/{name}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@testtools.skipUnless(
    importlib.util.find_spec("sphinx"), "Sphinx is not installed: see the extra docs"
)
class DirectivesTest(testtools.TestCase):
    def rows(self, name):
        return list(getattr(extension(), name).rows(None))

    def first_column(self, name):
        return sorted(row[0].strip("`") for row in self.rows(name))

    def test_every_reason_with_what_the_rule_wants(self):
        self.assertEqual(
            sorted(rules.REASON_CODES), self.first_column("RulesDirective")
        )
        for _, says, audit, subject in self.rows("RulesDirective"):
            self.assertTrue(says.endswith("."))
            self.assertIn(audit.strip("`"), {"", *LEVELS})
            self.assertRegex(subject, "flavors|request|hosts")

    def test_every_reason_with_its_remedy(self):
        self.assertEqual(
            sorted(rules.REASON_CODES), self.first_column("ReasonsDirective")
        )
        for code, meaning, remedy in self.rows("ReasonsDirective"):
            for text in (meaning, remedy):
                self.assertRegex(text, r"^[\w`].*[^.]$", code)

    def test_every_validator_with_the_values_that_it_allows(self):
        validators = extra_specs.validators(None)
        rows = self.rows("ValidatorsDirective")
        self.assertEqual(
            [f"``{validator.name}``" for validator in validators],
            [name for name, _, _ in rows],
        )
        for validator, (_, values, what) in zip(validators, rows, strict=True):
            for value in validator.value["enum"]:
                validator.validate(validator.name, value)
                self.assertIn(f"``{value}``", values)
            self.assertEqual(validator.description, what)

    def test_every_check_in_its_order(self):
        self.assertEqual(
            [check.title for check in CHECKS],
            [title for title, *_ in self.rows("AuditChecksDirective")],
        )

    def test_definitions_of_a_list_of_codes(self):
        lines = ["``a.b``", "   One", "   line.", "", "``c.d``", "   Two."]
        self.assertEqual(
            {"a.b": "One line.", "c.d": "Two."}, extension().definitions(lines)
        )

    def test_every_check_that_a_proof_rests_on(self):
        nothing = VMClass("none")
        full = VMClass(
            "full",
            cpu_policy="dedicated",
            vif_multiqueue=True,
            mem_page_size="1GB",
            disk=Disk(read_iops=3000),
        )
        rows = self.rows("EvidenceDirective")
        self.assertEqual(
            [f"``{code}``" for code in promise.EVIDENCE], [r[0] for r in rows]
        )
        for evidence, (_, needed, why) in zip(
            promise.EVIDENCE.values(), rows, strict=True
        ):
            found = (evidence.needed(nothing), evidence.needed(full))
            expected = {"always": (True, True), "never": (False, False)}
            self.assertEqual(expected.get(needed, (False, True)), found, why)
        self.assertEqual(
            [endpoint.name for endpoint in promise.ENDPOINTS],
            [name for name, *_ in self.rows("EndpointsDirective")],
        )

    def test_every_name(self):
        shown = " ".join(self.first_column("NamesDirective"))
        for name, value in vars(const).items():
            if name.startswith(("RC_", "TRAIT_")):
                self.assertIn(value, shown)


@testtools.skipUnless(
    importlib.util.find_spec("sphinx"), "Sphinx is not installed: see the extra docs"
)
class ContributingTest(testtools.TestCase):
    def test_what_the_page_links_to_is_there(self):
        text = (DOC.parent / "CONTRIBUTING.rst").read_text()
        page = extension("perfvm_contributing").as_page(text)
        pages = re.findall(r":doc:`/(\S+)`", page)
        pictures = re.findall(r"image:: /(\S+)", page)
        self.assertGreater(len(pages), 2)
        self.assertEqual(1, len(pictures))
        for name in (*(f"{name}.rst" for name in pages), *pictures):
            self.assertTrue((DOC / "source" / name).is_file(), name)


class CommandsTest(testtools.TestCase):
    def test_helps_name_values_not_their_places(self):
        for program, commands in programs.COMMANDS.items():
            for name in commands:
                # The reference pages print each as it is.
                for action in programs.parser(program, name)._actions:
                    self.assertNotIn("%(", action.help or "", name)

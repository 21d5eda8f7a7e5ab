# SPDX-License-Identifier: Apache-2.0
"""Every command of a page is run by a test, or tests/documented.py says why not.

What the tests run they get from there, so that it is what they really run.
"""

import ast
import itertools
import re
import shlex

import testtools

from tests import documented, programs, shown
from tests.documented import NOT_RUN, RUN

COMMANDS = [command for page in shown.pages() for command in shown.commands(page)]
MAKEFILE = (shown.ROOT / "Makefile").read_text()
# Ends a command of ours.
SHELL = {"|", ">", ">>", "&&", ";", "2>/dev/null", "2>&1"}
WHAT_TO_DO = (
    "No test runs these. In tests/documented.py add each to RUN, with the test that is "
    "to run it: of tests/unit/osc/test_documented.py, if it needs no cloud, or of "
    "tests/functional/test_documented.py; or add it to NOT_RUN, with the reason. What "
    "is no command has to be in a code-block of its language."
)


def source(test):
    """Return the source of a test method, None if there is no such."""
    module, name, method = test.rsplit(".", 2)
    path = shown.ROOT / f"{module.replace('.', '/')}.py"
    tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
    found = [
        ast.unparse(node)
        for scope in tree.body
        if isinstance(scope, ast.ClassDef) and scope.name == name
        for node in scope.body
        if isinstance(node, ast.FunctionDef) and node.name == method
    ]
    return found[0] if found else None


class EveryCommandTest(testtools.TestCase):
    def test_every_command_is_run_or_it_is_said_why_not(self):
        self.assertGreater(len(COMMANDS), 200)
        left = [
            f"{command.place}: {command.text}"
            for command in COMMANDS
            if not documented.runner(command)
            and not documented.why_not(command.page, command.text)
        ]
        self.assertEqual([], left, WHAT_TO_DO)

    def test_every_test_runs_what_it_is_said_to_run(self):
        for test in {test for tests in RUN.values() for test in tests.values()}:
            self.assertIsNotNone(source(test), f"RUN of tests/documented.py: no {test}")
            self.assertIn("documented.of(self)", source(test), test)

    def test_nothing_is_listed_in_vain(self):
        run = {
            (command.page, documented.claim(command))
            for command in COMMANDS
            if documented.runner(command)
        }
        listed = {(page, beginning) for page in RUN for beginning in RUN[page]}
        self.assertEqual(set(), listed - run, "RUN of tests/documented.py")
        for exception in NOT_RUN:
            of = [c for c in COMMANDS if exception.page in {"", c.page}]
            there = any(command.text.startswith(exception.command) for command in of)
            self.assertTrue(there, f"NOT_RUN of tests/documented.py: {exception}")

    def test_what_the_reasons_name_is_there(self):
        for exception in NOT_RUN:
            for path in re.findall(r"(?:tests|\.ci)/[\w./]*\w", exception.why):
                self.assertTrue((shown.ROOT / path).exists(), exception)
            for target in re.findall(r"make ([\w-]+)", exception.why):
                self.assertRegex(MAKEFILE, rf"(?m)^{target}:", exception)


class NotRunTest(testtools.TestCase):
    """What of them can be looked at without being run."""

    def test_every_target_of_make_is_one(self):
        named = {
            target
            for page in shown.pages()
            for target in re.findall(
                r"(?m)(?:^ +|``)make ([a-z-]+)", (shown.ROOT / page).read_text()
            )
        }
        self.assertGreater(len(named), 15)
        for target in named:
            self.assertRegex(MAKEFILE, rf"(?m)^{target}:")

    def test_every_option_of_ours_is_one(self):
        """As the parsers of the commands take them."""
        seen = 0
        for command in COMMANDS:
            words = shlex.split(command.text, comments=True)
            program, *words = itertools.takewhile(lambda w: w not in SHELL, words)
            if program == "openstack" and words[:1] == ["perfvm"]:
                self.parse(command, program, words[1:])
            elif program == "nova-perfvm":
                self.parse(command, program, words)
            else:
                continue
            seen += 1
        self.assertGreater(seen, 120)

    def parse(self, command, program, words):
        for count in range(len(words), 0, -1):
            name = " ".join(words[:count])
            if name in programs.COMMANDS[program]:
                break
        else:
            self.fail(f"{command.place}: there is no {' '.join(words)}")
        parser = programs.parser(program, name)
        # As in a synopsis: [--long], HOST...
        typed = [re.sub(r"^\[|\.\.\.|\]$", "", word) for word in words[count:]]
        try:
            parser.parse_args([word for word in typed if word])
        except SystemExit:
            self.fail(f"{command.place}: {command.text}")

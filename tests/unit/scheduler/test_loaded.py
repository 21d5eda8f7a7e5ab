# SPDX-License-Identifier: Apache-2.0
"""How much of this package nova-scheduler loads."""

import ast
import io
import os
import pathlib
import re
import subprocess
import sys
import tokenize

import testtools

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / "doc/source/contributor/architecture.rst"
MOST = 5200
# Prints the files of the package that a process has loaded.
LOADED = """
import sys
import nova_perfvm.scheduler.filters, nova_perfvm.scheduler.weights
for name, module in sys.modules.items():
    if name.partition(".")[0] == "nova_perfvm":
        print("loaded:", name, module.__file__)
"""
# What a host has in Placement, and what is read of a cloud: for commands alone.
FOR_COMMANDS = (
    "facts.conflicts",
    "facts.demand",
    "facts.flavor_facts",
    "facts.host_view",
    "facts.prefilters",
    "facts.requests",
    "facts.snapshot",
    "generate",
    "placement.host_schemes",
)
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source):
    """Count the lines of code of a module: no comments, docstrings, blank lines."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        scope = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if scope and ast.get_docstring(node, clean=False) is not None:
            lines -= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    return len(lines)


class CodeLinesTest(testtools.TestCase):
    def test_comments_docstrings_and_blank_lines_do_not_count(self):
        for source, expected in (
            ("", 0),
            ("x = 1\n\n# why\ny = 2  # how\n", 2),
            ('"""Docs.\n\nMore.\n"""\n', 0),
            ('def f():\n    """Docs."""\n    return """\n\n"""\n', 4),
        ):
            self.assertEqual(expected, code_lines(source))


class LoadedTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        result = subprocess.run(
            [sys.executable, "-c", LOADED],
            check=True,
            capture_output=True,
            cwd=ROOT,
            env=os.environ | {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "1"},
            text=True,
        )
        found = [line.split() for line in result.stdout.splitlines()]
        self.files = {line[1]: line[2] for line in found if line[:1] == ["loaded:"]}

    def test_it_is_little(self):
        sizes = {
            name: code_lines(pathlib.Path(path).read_text(encoding="utf-8"))
            for name, path in self.files.items()
        }
        total = sum(sizes.values())
        largest = sorted(sizes, key=sizes.get, reverse=True)[:10]
        said = ", ".join(f"{sizes[name]} {name}" for name in largest)
        self.assertIn("nova_perfvm.rules", sizes)
        self.assertLessEqual(total, MOST, f"{total} lines of code; the largest: {said}")

    def test_nothing_for_commands(self):
        found = [
            name
            for name in self.files
            for room in FOR_COMMANDS
            if f"{name}.".startswith(f"nova_perfvm.{room}.")
        ]
        self.assertEqual([], found)

    def test_the_page_has_the_bound(self):
        (bound,) = re.findall(r"at most ([\d,]+) lines of code", PAGE.read_text())
        self.assertEqual(MOST, int(bound.replace(",", "")))

# SPDX-License-Identifier: Apache-2.0
"""Name the row of a table at which a test fails.

Tests loop over tables of cases.  testtools ignores ``subTest`` (its runner gives
``unittest`` no outcome), so a failure would show the line of the assertion and not the
case.  Here each failure gets a detail ``row``: the variables of the loops around the
lines that failed, in the test and in the functions below tests/ that it called.
"""

import ast
import functools
import pathlib
import reprlib
import traceback

import testtools
from testtools.content import text_content

_TESTS = pathlib.Path(__file__).parent
_LONGEST = 300


@functools.cache
def install():
    """Let each ``testtools.TestCase`` name its failing row; each suite calls it."""
    before = testtools.TestCase.onException

    @functools.wraps(before)
    def named(self, exc_info, tb_label="traceback"):
        found = "\n".join(rows(exc_info[2]))
        if found and not issubclass(exc_info[0], self.skipException):
            self.addDetailUniqueName("row", text_content(found))
        return before(self, exc_info, tb_label)

    testtools.TestCase.onException = named


def rows(failed):
    """Yield the values of the variables of loops, the outermost loop first.

    :param failed: the traceback of an exception
    """
    for frame, line in traceback.walk_tb(failed):
        path = frame.f_code.co_filename
        if pathlib.Path(path).is_relative_to(_TESTS):
            for names in _loops(path, line):
                values = (
                    f"{name}={_shown(frame.f_locals[name])}"
                    for name in names
                    if name in frame.f_locals
                )
                yield f"{frame.f_code.co_name}, line {line}: {', '.join(values)}"


@functools.cache
def _loops(path, line):
    """Return the names that each loop around a line assigns, the outermost first."""
    found = [
        node
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.For)
        and node.body[0].lineno <= line <= node.body[-1].end_lineno
    ]
    found.sort(key=lambda node: node.lineno)
    return [
        [name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)]
        for node in found
    ]


@functools.cache
def _tree(path):
    return ast.parse(pathlib.Path(path).read_text())


def _shown(value):
    shown = reprlib.Repr()
    shown.maxstring = shown.maxother = _LONGEST
    return shown.repr(value)

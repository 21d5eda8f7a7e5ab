# SPDX-License-Identifier: Apache-2.0

import ast
import itertools

import testtools

from tests.unit.test_boundaries import PACKAGE

ROOT = PACKAGE.parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def functions(tree):
    """Yield all functions of a tree, with those in classes and functions."""
    return (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))


def returns_something(function):
    """Return whether a path of a function gives its caller a value."""
    if function.returns is not None:
        return ast.unparse(function.returns) not in {"None", "NoReturn"}
    nodes = list(function.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(node, ast.Return) and node.value is not None:
            return True
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            nodes.extend(ast.iter_child_nodes(node))
    return False


def false_returns(tree):
    """Yield the functions whose docstring tells of a value that never comes."""
    for function in functions(tree):
        docstring = ast.get_docstring(function) or ""
        told = docstring.startswith(("Return ", "Yield "))
        if told and not returns_something(function):
            yield function.name


class ReturnsTest(testtools.TestCase):
    def test_what_returns_is_returned(self):
        looked_at = 0
        for path in itertools.chain(PACKAGE.rglob("*.py"), ROOT.glob("tests/**/*.py")):
            tree = ast.parse(path.read_text())
            looked_at += len(list(functions(tree)))
            self.assertEqual([], list(false_returns(tree)), path)
        self.assertGreater(looked_at, 1000)

    def test_a_value_that_never_comes_is_found(self):
        source = '''
def said() -> None:
    """Return it."""
    return [inner for inner in ()]
def unsaid(self):
    """Return it."""
    def inner():
        return 1
    return
def given(self):
    """Return it."""
    if self:
        return 1
def yielded(self):
    """Yield it."""
    for one in self:
        found = yield one
def promised(self) -> int:
    """Return it."""
    raise NotImplementedError
'''
        self.assertEqual(["said", "unsaid"], list(false_returns(ast.parse(source))))

# SPDX-License-Identifier: Apache-2.0
"""Draw faults: ``python -m tests.mutants.draw SEED NUMBER DIRECTORY...``.

Writes a JSON list to standard output: ``path``, ``line``, ``operator``, ``before`` and
``after`` (the lines that differ), ``source`` (the whole module with the fault).
Runs where cosmic-ray is installed, which needs nothing of this project.
"""

import ast
import collections
import difflib
import json
import pathlib
import random
import sys

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

# A removed functools.cache changes no result; the operators on variables take names;
# that on exceptions fails for names with a dot.
# On CPython "==" and "is" are one for small numbers and for constants.
LEFT_OUT = (
    "RemoveDecorator",
    "VariableReplacer",
    "VariableInserter",
    "ExceptionReplacer",
    "_Eq_Is",
    "_NotEq_IsNot",
)


def operators():
    """Return the operators by name."""
    return {
        name: plugins.get_operator(name)()
        for name in plugins.operator_names()
        if not name.endswith(LEFT_OUT)
    }


def annotations(source):
    """Return the (line, column) at which each annotation begins and ends."""
    found = [
        getattr(node, field, None)
        for node in ast.walk(ast.parse(source))
        for field in ("annotation", "returns")
    ]
    return [
        ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
        for node in found
        if node is not None
    ]


def places(source, using):
    """Return the faults, (operator, occurrence), by the (line, column) of each."""
    found = collections.defaultdict(list)
    skipped = annotations(source)
    tree = get_ast(source)
    for name, operator in using.items():
        occurrence = 0
        for node in ast_nodes(tree):
            for start, _ in operator.mutation_positions(node):
                if not any(first <= start < last for first, last in skipped):
                    found[start].append((name, occurrence))
                occurrence += 1
    return found


def draw(seed, number, directories):
    """Yield faults at distinct places, the rooms by their numbers of places."""
    using = operators()
    sources = {
        str(path): path.read_text(encoding="utf-8")
        for directory in directories
        for path in sorted(pathlib.Path(directory).rglob("*.py"))
    }
    all_places = [
        (path, start, faults)
        for path, source in sources.items()
        for start, faults in sorted(places(source, using).items())
    ]
    drawn = random.Random(seed)
    for path, start, faults in drawn.sample(all_places, len(all_places)):
        name, occurrence = drawn.choice(faults)
        source = sources[path]
        changed = mutate_code(source, using[name], occurrence)
        if changed is None or not _compiles(changed):
            continue
        before, after = _difference(source, changed)
        yield {
            "path": path,
            "line": start[0],
            "operator": name.partition("/")[2],
            "before": before,
            "after": after,
            "source": changed,
        }
        number -= 1
        if not number:
            return


def _compiles(source):
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _difference(source, changed):
    """Return the lines that differ, as two texts without indentation."""
    lines = list(difflib.ndiff(source.splitlines(), changed.splitlines()))
    return tuple(
        " ".join(line[2:].strip() for line in lines if line.startswith(sign))
        for sign in ("- ", "+ ")
    )


if __name__ == "__main__":
    json.dump(list(draw(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])), sys.stdout)

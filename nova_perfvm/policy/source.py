# SPDX-License-Identifier: Apache-2.0
"""YAML text to plain values, with the line of every key and value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import yaml

from nova_perfvm.exceptions import KeyPath, Problem

_MERGE_TAG = "tag:yaml.org,2002:merge"
_TOO_DEEP = "nested too deeply"
# A policy or an inventory has no more than eight levels.
_MOST_LEVELS = 32
# How many values may stand in a text once and be meant elsewhere, too.
_MOST_REPEATED = 1000
# Of a number or a date; Python cannot even print numbers of some thousand digits.
_MOST_CHARACTERS = 1000
# What PyYAML raises of values that look like, or are tagged as, what they are not,
# such as 2026-99-99 and !!timestamp x.
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Source:
    """A parsed text.

    :ivar data: what the text says, as plain values
    :ivar lines: 1-based line of each key, by its path from the top
    :ivar problems: what YAML itself forbids or hides: bad syntax, a key given
        twice (the last would win in silence), keys that are no text; aliases and
        nesting beyond what any file needs
    """

    def __init__(self, text: str) -> None:
        """Parse a text; never raises for what the text says."""
        self.data: Any = None
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[Problem] = []
        self._seen: set[int] = set()
        self._repeated = 0
        try:
            self._loader = yaml.SafeLoader(text)
        except yaml.reader.ReaderError as exc:
            self.problems = [_character_problem(exc, text)]
            return
        try:
            node = self._loader.get_single_node()
            if node is not None:
                self._walk(node, (), frozenset())
            if node is not None and not self.problems:
                self.data = self._loader.construct_document(node)
        except yaml.YAMLError as exc:
            self.problems = [_syntax_problem(exc)]
        except _TooManyAliasesError as exc:
            self.problems = [exc.problem]
        except RecursionError:
            self.problems = [Problem((), _TOO_DEEP, self._loader.line + 1)]
        except _UNREADABLE as exc:
            # Such as an escape of a character that there is not.
            line = self._loader.line + 1
            self.problems = [Problem((), f"unreadable value: {exc}", line)]
        finally:
            self._loader.dispose()

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest key above it."""
        for length in range(len(path), 0, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return line
        return None

    def in_order(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return problems with their lines, in the order of the text."""
        placed = [replace(p, line=self.line_of(p.path)) for p in problems]
        return sorted(placed, key=lambda problem: (problem.line or 0, problem.path))

    def _walk(self, node: yaml.Node, path: KeyPath, above: frozenset[int]) -> None:
        if id(node) in above:
            self._say(path, "an alias that contains itself", node)
            return
        if len(above) == _MOST_LEVELS:
            self._say(path, _TOO_DEEP, node)
            return
        self._count(node, path)
        above |= {id(node)}
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                here = (*path, str(index))
                self.lines[here] = item.start_mark.line + 1
                self._walk(item, here, above)
        elif isinstance(node, yaml.MappingNode):
            self._walk_mapping(node, path, above)
        else:
            self._try(node, path)

    def _walk_mapping(
        self, node: yaml.MappingNode, path: KeyPath, above: frozenset[int]
    ) -> None:
        seen: dict[str, int] = {}
        # What is merged first: a key's own line is where the mapping gives it.
        for key, value in sorted(node.value, key=lambda kv: kv[0].tag != _MERGE_TAG):
            if key.tag == _MERGE_TAG:
                self._walk(value, path, above)
                continue
            if not isinstance(key, yaml.ScalarNode) or not key.tag.endswith(":str"):
                shown = getattr(key, "value", "")
                shown = shown if isinstance(shown, str) else "a list or mapping"
                here = (*path, shown)
                self._say(here, "expected a name as key: put it in quotes", key)
                continue
            here = (*path, key.value)
            line = key.start_mark.line + 1
            if key.value in seen:
                first = seen[key.value]
                self._say(here, f"given twice, first in line {first}: remove one", key)
            seen[key.value] = line
            self.lines[here] = line
            self._walk(value, here, above)

    def _count(self, node: yaml.Node, path: KeyPath) -> None:
        """Refuse aliases of aliases of aliases, which stand for billions of values."""
        if id(node) in self._seen:
            self._repeated += 1
        self._seen.add(id(node))
        if self._repeated > _MOST_REPEATED:
            raise _TooManyAliasesError(path, node)

    def _try(self, node: yaml.Node, path: KeyPath) -> None:
        """Read one value, since an error of all would not tell its place."""
        kind = node.tag.rpartition(":")[2]
        if kind != "str" and len(node.value) > _MOST_CHARACTERS:
            self._say(path, f"unreadable value: too long for {kind}", node)
            return
        try:
            self._loader.construct_object(node)
            # Half of a character, as "\\ud800" is, cannot be written anywhere.
            node.value.encode()
        except ValueError as exc:
            self._say(path, f"unreadable value: {exc}", node)
        except _UNREADABLE:
            self._say(path, f"unreadable value: no {kind}", node)

    def _say(self, path: KeyPath, message: str, node: yaml.Node) -> None:
        self.problems.append(Problem(path, message, node.start_mark.line + 1))


class _TooManyAliasesError(Exception):
    """Aliases that repeat more values than any file needs."""

    def __init__(self, path: KeyPath, node: yaml.Node) -> None:
        self.problem = Problem(
            path,
            f"aliases repeat more than {_MOST_REPEATED} values: write out what they "
            "stand for",
            node.start_mark.line + 1,
        )
        super().__init__(str(self.problem))


def _character_problem(exc: yaml.reader.ReaderError, text: str) -> Problem:
    before = text[: exc.position]
    column = exc.position - before.rfind("\n")
    return Problem(
        (),
        f"no YAML at column {column}: the character U+{ord(text[exc.position]):04X} "
        "cannot be printed: remove it",
        before.count("\n") + 1,
    )


def _syntax_problem(exc: yaml.YAMLError) -> Problem:
    if isinstance(exc, yaml.MarkedYAMLError) and exc.problem_mark is not None:
        mark = exc.problem_mark
        what = ", ".join(part for part in (exc.context, exc.problem) if part)
        return Problem(
            (), f"no YAML at column {mark.column + 1}: {what}", mark.line + 1
        )
    return Problem((), f"no YAML: {exc}")

# SPDX-License-Identifier: Apache-2.0
"""YAML text to plain values, with the line of every key and value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import yaml

from nova_perfvm.documents.mistakes import KeyPath, Mistake

_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
# A policy or an inventory has no more than eight levels.
_MOST_LEVELS: Final = 32
# How many values may stand in a text once and be meant elsewhere, too.
_MOST_REPEATED: Final = 1000
# Of a number or a date; Python cannot even print numbers of some thousand digits.
_MOST_CHARACTERS: Final = 1000
# What PyYAML raises of values that look like, or are tagged as, what they are not,
# such as 2026-99-99 and !!timestamp x.
_UNREADABLE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


class YAMLText:
    """A parsed text.

    :ivar data: what the text says, as plain values
    :ivar mistakes: what YAML itself forbids or hides: bad syntax, a key given
        twice (the last would win in silence), keys that are no text; aliases and
        nesting beyond what any file needs
    """

    def __init__(self, text: str) -> None:
        """Parse a text; never raises for what the text says."""
        self.data: Any = None
        self.mistakes: list[Mistake] = []
        self._lines: dict[KeyPath, int] = {}
        self._seen: set[int] = set()
        self._repeated = 0
        try:
            self._loader = yaml.SafeLoader(text)
        except yaml.reader.ReaderError as exc:
            self.mistakes = [_character_mistake(exc, text)]
            return
        try:
            node = self._loader.get_single_node()
            self.data = None if node is None else self._value(node, ())
        except yaml.YAMLError as exc:
            self.mistakes = [_syntax_mistake(exc)]
        except _RefusedError as exc:
            self.mistakes = [exc.mistake]
        except (RecursionError, *_UNREADABLE) as exc:
            # Such as an escape of a character that there is not.
            deep = isinstance(exc, RecursionError)
            what = "nested too deeply" if deep else f"unreadable value: {exc}"
            self.mistakes = [Mistake((), what, self._loader.line + 1)]
        finally:
            self._loader.dispose()
        if self.mistakes:
            self.data = None

    def in_order(self, mistakes: Iterable[Mistake]) -> list[Mistake]:
        """Return mistakes with their lines, in the order of the text."""
        placed = [replace(m, line=self._line_of(m.path)) for m in mistakes]
        return sorted(placed, key=lambda mistake: (mistake.line or 0, mistake.path))

    def _line_of(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest key above it."""
        above = (path[:length] for length in range(len(path), 0, -1))
        return next((self._lines[key] for key in above if key in self._lines), None)

    def _value(self, node: yaml.Node, path: KeyPath) -> Any:
        self._check(node, path)
        if isinstance(node, yaml.SequenceNode):
            found = []
            for index, item in enumerate(node.value):
                here = (*path, str(index))
                self._lines[here] = item.start_mark.line + 1
                found.append(self._value(item, here))
            return found
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        found: dict[str, Any] = {}
        first: dict[str, int] = {}
        # What is merged first: a key's own line is where the mapping gives it.
        for key, value in sorted(node.value, key=lambda kv: kv[0].tag != _MERGE_TAG):
            if key.tag == _MERGE_TAG:
                several = self._value(value, path)
                several = several if isinstance(several, list) else [several]
                for one in reversed(several):
                    merged |= one if isinstance(one, dict) else {}
                continue
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or not key.tag.endswith(":str"):
                shown = getattr(key, "value", "")
                shown = shown if isinstance(shown, str) else "a list or mapping"
                message = "expected a name as key: put it in quotes"
                self.mistakes.append(Mistake((*path, shown), message, line))
                continue
            here = (*path, key.value)
            if key.value in first:
                message = f"given twice, first in line {first[key.value]}: remove one"
                self.mistakes.append(Mistake(here, message, line))
            self._scalar(key, here)
            self._lines[here] = first[key.value] = line
            found[key.value] = self._value(value, here)
        return merged | found

    def _check(self, node: yaml.Node, path: KeyPath) -> None:
        """Refuse aliases of aliases, which can expand to billions of values."""
        self._repeated += id(node) in self._seen
        self._seen.add(id(node))
        line = node.start_mark.line + 1
        if len(path) > _MOST_LEVELS:
            raise _RefusedError(Mistake(path[:1], "nested too deeply", line))
        if self._repeated > _MOST_REPEATED:
            message = (
                f"aliases repeat more than {_MOST_REPEATED} values: write out what "
                "they stand for"
            )
            raise _RefusedError(Mistake(path[:1], message, line))

    def _scalar(self, node: yaml.Node, path: KeyPath) -> Any:
        """Read one value, since an error of all would not tell its place."""
        kind = node.tag.rpartition(":")[2]
        why = f"no {kind}"
        try:
            if kind == "str" or len(node.value) <= _MOST_CHARACTERS:
                # Half of a character, as "\\ud800" is, cannot be written anywhere.
                node.value.encode()
                return self._loader.construct_object(node)
            why = f"too long for {kind}"
        except ValueError as exc:
            why = str(exc)
        except _UNREADABLE:
            pass
        message = f"unreadable value: {why}"
        self.mistakes.append(Mistake(path, message, node.start_mark.line + 1))
        return None


def dump_yaml(document: Any) -> str:
    """Return YAML, keys in the document's order."""
    text: str = yaml.safe_dump(document, sort_keys=False, width=88, allow_unicode=True)
    return text


class _RefusedError(Exception):
    """A text that nobody needs, and that costs too much to read."""

    def __init__(self, mistake: Mistake) -> None:
        self.mistake = mistake
        super().__init__(str(mistake))


def _character_mistake(exc: yaml.reader.ReaderError, text: str) -> Mistake:
    before = text[: exc.position]
    column = exc.position - before.rfind("\n")
    message = (
        f"no YAML at column {column}: the character U+{ord(text[exc.position]):04X} "
        "cannot be printed: remove it"
    )
    return Mistake((), message, before.count("\n") + 1)


def _syntax_mistake(exc: yaml.YAMLError) -> Mistake:
    if isinstance(exc, yaml.MarkedYAMLError) and exc.problem_mark is not None:
        mark = exc.problem_mark
        what = ", ".join(part for part in (exc.context, exc.problem) if part)
        message = f"no YAML at column {mark.column + 1}: {what}"
        return Mistake((), message, mark.line + 1)
    return Mistake((), f"no YAML: {exc}")

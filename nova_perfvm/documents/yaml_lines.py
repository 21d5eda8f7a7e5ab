# SPDX-License-Identifier: Apache-2.0
"""YAML text to plain values, with the line of every key and value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import yaml

from nova_perfvm.documents.mistakes import MOST, KeyPath, Mistake
from nova_perfvm.printable import first_line

# Longest number or date: Python refuses to print numbers of some thousand digits.
_MOST_CHARACTERS: Final = 1000
# PyYAML's problem where a key is deeper than the keys above it.
_DEEPER: Final = "expected <block end>, but found '<block mapping start>'"
# Errors of PyYAML for values of the wrong form for their apparent or tagged type, such
# as 2026-99-99 and !!timestamp x.
_UNREADABLE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


class _RefusedError(yaml.MarkedYAMLError):
    """Valid YAML that this reader refuses, such as an alias."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without aliases: a few could make billions of values."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.get_event()  # type: ignore[no-untyped-call]
            problem = "an alias: write out what it stands for"
            raise _RefusedError(problem=problem, problem_mark=event.start_mark)
        return super().compose_node(parent, index)


class YAMLText:
    """A parsed YAML text.

    :ivar data: plain values; None if there are mistakes
    :ivar mistakes: bad syntax, aliases, keys that are no text, and keys given twice,
        of which PyYAML would silently take the last
    """

    def __init__(self, text: str) -> None:
        """Parse a text; errors of the text become ``mistakes``."""
        self.data: Any = None
        self.mistakes: list[Mistake] = []
        self._lines: dict[KeyPath, int] = {}
        try:
            loader = _Loader(text)
            node = loader.get_single_node()
            self.data = None if node is None else self._value(loader, node, ())
        except yaml.MarkedYAMLError as exc:
            what = ", ".join(part for part in (exc.context, exc.problem) if part)
            mark: Any = exc.problem_mark
            begin = exc.context_mark
            if begin and exc.problem and exc.problem.startswith(_DEEPER):
                what = (
                    f"indented more than the keys from line {begin.line + 1}, column "
                    f"{begin.column + 1}, on: align them, with spaces"
                )
            kind = "" if isinstance(exc, _RefusedError) else "not YAML at "
            message = f"{kind}column {mark.column + 1}: {what}"
            self.mistakes = [Mistake((), message, mark.line + 1)]
        except RecursionError:
            self.mistakes = [Mistake((), "nested too deeply")]
        except (yaml.YAMLError, *_UNREADABLE) as exc:
            # Such as an unprintable or invalid character.
            self.mistakes = [Mistake((), f"not YAML: {first_line(exc)}")]
        if self.mistakes:
            self.data = None

    def in_order(self, mistakes: Iterable[Mistake]) -> list[Mistake]:
        """Return the mistakes with line numbers, sorted by line."""
        placed = [replace(m, line=self._line_of(m.path)) for m in mistakes]
        return sorted(placed, key=lambda mistake: (mistake.line or 0, mistake.path))

    def _line_of(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest key above it."""
        above = (path[:length] for length in range(len(path), 0, -1))
        return next((self._lines[key] for key in above if key in self._lines), None)

    def _value(self, loader: _Loader, node: yaml.Node, path: KeyPath) -> Any:
        self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            return [
                self._value(loader, item, (*path, str(index)))
                for index, item in enumerate(node.value)
            ]
        if isinstance(node, yaml.ScalarNode):
            return _scalar(loader, node)
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not key.tag.endswith(":str"):
                problem = "a key that is no name: put it in quotes"
                raise _RefusedError(problem=problem, problem_mark=key.start_mark)
            name = _scalar(loader, key)
            here = (*path, name)
            line = key.start_mark.line + 1
            if name in found and len(self.mistakes) <= MOST:
                message = f"given twice, first in line {self._lines[here]}: remove one"
                self.mistakes.append(Mistake(here, message, line))
            self._lines[here] = line
            found[name] = self._value(loader, value, here)
        return found


class _Dumper(yaml.SafeDumper):
    """PyYAML's dumper without aliases: it writes a repeated value each time."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, "|" if "\n" in text else None
    ),
)


def dump_yaml(document: Any) -> str:
    """Return YAML with the document's order of keys, and multi-line texts as blocks."""
    text: str = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, width=88, allow_unicode=True
    )
    return text


def _scalar(loader: _Loader, node: yaml.ScalarNode) -> Any:
    """Return the value of a scalar node; an error names the node's place."""
    try:
        # A lone surrogate such as "\\ud800" cannot be encoded in UTF-8.
        node.value.encode()
        if node.tag.endswith(":str") or len(node.value) <= _MOST_CHARACTERS:
            return loader.construct_object(node)
        why = "too long"
    except _UNREADABLE as exc:
        why = str(exc)
    problem = f"unreadable value: {why}"
    raise _RefusedError(problem=problem, problem_mark=node.start_mark)

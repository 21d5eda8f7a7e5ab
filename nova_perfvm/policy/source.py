# SPDX-License-Identifier: Apache-2.0
"""YAML text to plain values, with the line of every key and value."""

from __future__ import annotations

from typing import Any

import yaml

from nova_perfvm.exceptions import Problem

Path = tuple[str, ...]
_MERGE_TAG = "tag:yaml.org,2002:merge"


class Source:
    """A parsed text.

    :ivar data: what the text says, as plain values
    :ivar lines: 1-based line of each key, by its path from the top
    :ivar problems: what YAML itself forbids or hides: bad syntax, a key given
        twice (the last would win in silence), keys that are no text
    """

    def __init__(self, text: str) -> None:
        """Parse a text; never raises for what the text says."""
        self.data: Any = None
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is not None:
                self._walk(node, (), frozenset())
            if not self.problems:
                self.data = None if node is None else loader.construct_document(node)
        except yaml.YAMLError as exc:
            self.problems = [_syntax_problem(exc)]
        except (ValueError, OverflowError, RecursionError) as exc:
            # Such as 2026-99-99, which PyYAML reads as a date.
            self.problems = [Problem((), f"unreadable value: {exc}")]
        finally:
            loader.dispose()

    def line_of(self, path: Path) -> int | None:
        """Return the line of a key, or of the nearest key above it."""
        for length in range(len(path), 0, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return line
        return None

    def _walk(self, node: yaml.Node, path: Path, above: frozenset[int]) -> None:
        if id(node) in above:
            self.problems.append(
                Problem(path, "an alias that contains itself", node.start_mark.line + 1)
            )
            return
        above |= {id(node)}
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                here = (*path, str(index))
                self.lines[here] = item.start_mark.line + 1
                self._walk(item, here, above)
        elif isinstance(node, yaml.MappingNode):
            seen: dict[str, int] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                if key.tag == _MERGE_TAG:
                    continue
                if not isinstance(key, yaml.ScalarNode) or not key.tag.endswith(":str"):
                    shown = getattr(key, "value", "")
                    shown = shown if isinstance(shown, str) else "a list or mapping"
                    self.problems.append(
                        Problem(
                            (*path, shown),
                            "expected a name as key: put it in quotes",
                            line,
                        )
                    )
                    continue
                here = (*path, key.value)
                if key.value in seen:
                    self.problems.append(
                        Problem(
                            here,
                            f"given twice, first in line {seen[key.value]}: remove one",
                            line,
                        )
                    )
                seen[key.value] = line
                self.lines[here] = line
                self._walk(value, here, above)


def _syntax_problem(exc: yaml.YAMLError) -> Problem:
    if isinstance(exc, yaml.MarkedYAMLError) and exc.problem_mark is not None:
        mark = exc.problem_mark
        what = ", ".join(part for part in (exc.context, exc.problem) if part)
        return Problem(
            (), f"no YAML at column {mark.column + 1}: {what}", mark.line + 1
        )
    return Problem((), f"no YAML: {exc}")

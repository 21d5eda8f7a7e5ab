# SPDX-License-Identifier: Apache-2.0
"""Findings as lines of text: the worst first, wrapped to the terminal's width."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, TextIO

from nova_perfvm.findings import Finding, Level

# Width of output that goes to a pipe or a file.
PIPED_COLUMNS: Final = 100
# A remedy with such a beginning is a command: wrapped lines get a backslash.
_COMMANDS: Final = ("openstack ", "nova-perfvm ", "while ")

# Stands for blanks in texts of at most _SHORT characters, which are not wrapped.
_KEPT: Final = "\0"
_SHORT: Final = 60

# Codes, expectation, source and remedy of findings.
_Rule = tuple[str, str, str, str]


def width(stream: TextIO) -> int:
    """Return the columns of the terminal; PIPED_COLUMNS where `stream` is none."""
    if not stream.isatty():
        return PIPED_COLUMNS
    return shutil.get_terminal_size((PIPED_COLUMNS, 0)).columns


def findings(found: Iterable[Finding], columns: int = PIPED_COLUMNS) -> str:
    """Return findings as text by level, findings of one rule together."""
    worst_first = sorted(found, key=lambda one: one.level, reverse=True)
    parts = []
    for level, alike in groupby(worst_first, key=lambda one: one.level):
        show = _briefly if level is Level.OK else _in_full
        lines = show(alike, columns)
        parts.append("\n".join([level.value.upper(), *lines, ""]))
    return "\n".join(parts)


def _by_rule(found: Iterable[Finding]) -> dict[_Rule, list[str]]:
    """Return the observations of each rule; equal ones of many subjects once."""
    same: dict[tuple[str, ...], list[Finding]] = {}
    for one in found:
        # Many checks are unknown for the same reason: their codes share one entry.
        code = "" if one.level is Level.UNKNOWN else one.code
        key = (code, one.observed, one.expected, one.source, one.remedy)
        same.setdefault(key, []).append(one)
    rules: dict[_Rule, list[str]] = {}
    for (_, observed, *rest), alike in same.items():
        codes = dict.fromkeys(one.code for one in alike)
        subjects = dict.fromkeys(one.subject for one in alike)
        about = [_whole(subject) for subject in subjects if subject]
        said = observed
        if len(codes) == len(about) == 1:
            said = f"{about[0]}: {observed}"
        elif len(codes) == 1 and about:
            said = f"{observed} ({'; '.join(about)})"
        expected, source, remedy = rest
        rule = (", ".join(codes), expected, source, remedy)
        rules.setdefault(rule, []).append(said)
    return rules


def _in_full(found: Iterable[Finding], columns: int) -> Iterator[str]:
    for (codes, expected, source, remedy), observed in _by_rule(found).items():
        yield from _wrapped(codes, columns, 2)
        for text in observed:
            yield from _wrapped(text, columns, 4)
        for name, text in (("expected", expected), ("seen in", source)):
            if text:
                yield from _wrapped(f"{name}: {text}", columns, 4)
        for number, line in enumerate(remedy.splitlines()):
            yield from _wrapped(line if number else f"remedy: {line}", columns, 4)


def _briefly(found: Iterable[Finding], columns: int) -> Iterator[str]:
    by_code: dict[str, list[str]] = {}
    for one in found:
        said = _whole(f"{one.subject}: {one.observed}")
        by_code.setdefault(one.code, []).append(said)
    for code, observed in by_code.items():
        yield from _wrapped(f"{code}: {'; '.join(observed)}", columns, 2)


def _whole(text: str) -> str:
    """Return a text, with blanks that do not break if the text is short."""
    return text.replace(" ", _KEPT) if len(text) <= _SHORT else text


def _wrapped(text: str, columns: int, indent: int) -> list[str]:
    """Return lines of whole words, all but the first indented by two more columns."""
    command = text.removeprefix("remedy: ").startswith(_COMMANDS)
    lines = textwrap.wrap(
        text,
        columns - 2 * command,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
    end = " \\" if command else ""
    kept = [line.replace(_KEPT, " ") for line in lines]
    return [*(line + end for line in kept[:-1]), *kept[-1:]]

# SPDX-License-Identifier: Apache-2.0
"""Findings as plain lines for people: the worst first, none wider than the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, TextIO

from nova_perfvm.findings import Finding, Level

# Where no terminal says how wide it is.
PIPED_COLUMNS: Final = 100
# A remedy that begins so is a command, which stays one when it is wrapped.
_COMMANDS: Final = ("openstack ", "nova-perfvm ", "while ")

# A blank within what is short stays where it is.
_KEPT: Final = "\0"
_SHORT: Final = 60

# Codes, what was expected, its source, and the remedy.
_Rule = tuple[str, str, str, str]


def width(stream: TextIO) -> int:
    """Return the columns of the terminal that a stream is, else a fixed number."""
    if not stream.isatty():
        return PIPED_COLUMNS
    return shutil.get_terminal_size((PIPED_COLUMNS, 0)).columns


def findings(found: Iterable[Finding], columns: int = PIPED_COLUMNS) -> str:
    """Return findings by level, those of one rule together."""
    worst_first = sorted(found, key=lambda one: one.level, reverse=True)
    parts = []
    for level, alike in groupby(worst_first, key=lambda one: one.level):
        show = _briefly if level is Level.OK else _in_full
        lines = show(alike, columns)
        parts.append("\n".join([level.value.upper(), *lines, ""]))
    return "\n".join(parts)


def _by_rule(found: Iterable[Finding]) -> dict[_Rule, list[str]]:
    """Return what was observed, for each rule; the same of many things once."""
    same: dict[tuple[str, ...], list[Finding]] = {}
    for one in found:
        # Many checks cannot tell for the same reason.
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
    """Return a text that is not broken where it is short."""
    return text.replace(" ", _KEPT) if len(text) <= _SHORT else text


def _wrapped(text: str, columns: int, indent: int) -> list[str]:
    """Return lines of whole words, all but the first two columns further in."""
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

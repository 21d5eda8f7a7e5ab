# SPDX-License-Identifier: Apache-2.0
"""The commands that pages of the documentation show, with what they print there."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# Of root only in consoles: elsewhere it is a comment.
_PROMPT, _ANY_PROMPT = re.compile(r"\$ (?=\S)"), re.compile(r"[$#] (?=\S)")


class Shown(NamedTuple):
    """A command of a page.

    :ivar place: page and line
    :ivar text: as it would be typed, continued lines joined
    :ivar output: empty if none is shown
    """

    place: str
    text: str
    output: str


def pages():
    """Return the pages, as paths from the project's directory."""
    found = (ROOT / "doc/source").glob("**/*.rst")
    return sorted(str(path.relative_to(ROOT)) for path in found)


def commands(page):
    """Return the commands in literal blocks and consoles of a page, in order.

    Where a block has prompts, the rest of it is output; else each line is a command.
    """
    return [shown for block in _blocks(page) for shown in _commands(page, *block)]


def _blocks(page):
    """Yield number of the first line, lines and prompts of blocks with commands."""
    lines = [*(ROOT / page).read_text().splitlines(), "end"]
    at = 0
    while at < len(lines):
        marker = lines[at]
        at += 1
        named = re.match(r" *\.\. code-block:: *(\w*)$", marker)
        if named and named[1] != "console":
            continue
        # Directives end so, too; code-block alone shows commands.
        if not named and (not marker.endswith("::") or re.match(r" *\.\. ", marker)):
            continue
        indent = len(marker) - len(marker.lstrip())
        while not lines[at].strip():
            at += 1
        first = at
        while not lines[at].strip() or _indent(lines[at]) > indent:
            at += 1
        yield first + 1, lines[first:at], _ANY_PROMPT if named else _PROMPT


def _indent(line):
    return len(line) - len(line.lstrip())


def _commands(page, number, lines, prompt):
    prompts = any(prompt.match(line.strip()) for line in lines)
    found, continued = [], False
    for offset, line in enumerate(line.strip() for line in lines):
        if continued:
            found[-1][1] += line
        elif not prompts or prompt.match(line):
            if line:
                text = prompt.sub("", line, count=1)
                found.append([f"{page}:{number + offset}", text, []])
        elif found:
            found[-1][2].append(line)
        continued = bool(found) and found[-1][1].endswith("\\")
        if continued:
            found[-1][1] = found[-1][1].removesuffix("\\")
    return [Shown(place, text, "\n".join(out).strip()) for place, text, out in found]

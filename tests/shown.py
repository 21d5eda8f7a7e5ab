# SPDX-License-Identifier: Apache-2.0
"""The commands that pages of the documentation show, with what they print there."""

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# Of root only in consoles: elsewhere it is a comment.
_PROMPT, _ANY_PROMPT = re.compile(r"\$ (?=\S)"), re.compile(r"[$#] (?=\S)")
# {language of a code-block that has commands: their prompt}.
_LANGUAGES = {"console": _ANY_PROMPT} | dict.fromkeys(("bash", "sh", "shell"), _PROMPT)
# What stands before the text of an item, and is as good as indentation.
_BULLETS = re.compile(r" *(?:(?:[*-]|\d+\.) +)*")


class Shown(NamedTuple):
    """A command of a page.

    :ivar place: page and line
    :ivar text: as it would be typed, continued lines joined
    :ivar output: empty if none is shown
    """

    place: str
    text: str
    output: str

    @property
    def page(self):
        """The page alone."""
        return self.place.rpartition(":")[0]

    def is_printed(self, text):
        """Return whether a text is the output, ``...`` in place of any lines."""
        parts = re.split(r"^\.\.\.$", self.output, flags=re.MULTILINE)
        pattern = ".*".join(map(re.escape, parts))
        return re.fullmatch(pattern, text.strip(), re.DOTALL) is not None


def pages():
    """Return the pages, as paths from the project's directory."""
    found = (*ROOT.glob("*.rst"), *ROOT.glob("doc/source/**/*.rst"))
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
        if named and named[1] not in _LANGUAGES:
            continue
        # Directives end so, too; code-block alone shows commands.
        if not named and (not marker.endswith("::") or re.match(r" *\.\. ", marker)):
            continue
        indent = len(_BULLETS.match(marker)[0])
        while not lines[at].strip():
            at += 1
        first = at
        while not lines[at].strip() or _indent(lines[at]) > indent:
            at += 1
        yield first + 1, lines[first:at], _LANGUAGES[named[1]] if named else _PROMPT


def _indent(line):
    return len(line) - len(line.lstrip())


def _commands(page, number, lines, prompt):
    lines = textwrap.dedent("\n".join(lines)).splitlines()
    prompts = any(prompt.match(line) for line in lines)
    found, continued = [], False
    for offset, line in enumerate(lines):
        if continued:
            found[-1][1] += line.strip()
        elif not prompts or prompt.match(line):
            if line:
                text = prompt.sub("", line.strip(), count=1)
                found.append([f"{page}:{number + offset}", text, []])
        elif found:
            found[-1][2].append(line)
        continued = bool(found) and found[-1][1].endswith("\\")
        if continued:
            found[-1][1] = found[-1][1].removesuffix("\\")
    return [Shown(place, text, "\n".join(out).strip()) for place, text, out in found]

# SPDX-License-Identifier: Apache-2.0
"""The file of a known bug, YAML in this package: its keys and its reader."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Annotated, Final, Literal

from nova_perfvm.documents.document import parse_document
from nova_perfvm.documents.keys import EACH_ONCE, Expected, count
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.known_bugs.facts import Hit
from nova_perfvm.known_bugs.releases import Release
from nova_perfvm.known_bugs.rules import RULES, Rule

KIND: Final = "known-bug"
# Longer texts would not fit a table.
_WORDS: Final = Expected("a text of 1 to 600 characters", lambda t: 0 < len(t) <= 600)
Words = Annotated[str, _WORDS]
RuleName = Annotated[
    str, Expected(f"one of {', '.join(sorted(RULES))}", RULES.__contains__)
]


@dataclass(frozen=True)
class ToldBy:
    """The rule that finds the servers and hosts that a bug hits.

    :ivar rule: name of a rule of :mod:`nova_perfvm.known_bugs.rules`
    :ivar parameters: arguments of the rule
    """

    rule: RuleName
    parameters: Mapping[str, str] = field(default_factory=dict)

    def mistakes(self) -> Iterator[Mistake]:
        """Yield unknown and missing parameters of the rule."""
        needed = RULES[self.rule].parameters
        if needed is None:
            for name in self.parameters:
                if "." not in name:
                    message = "expected section.option"
                    yield Mistake(("parameters", name), message)
        elif self.parameters.keys() != needed:
            names = ", ".join(sorted(needed)) or "none"
            message = f"found {', '.join(sorted(self.parameters)) or 'none'}, expected"
            yield Mistake(("parameters",), f"{message} {names}")


@dataclass(frozen=True)
class KnownBug:
    """A bug of Nova.

    :ivar number: the bug's number on Launchpad; 0 for an unreported bug
    :ivar title: the bug in at most 80 characters
    :ivar does: the bug's effect on VMs of pinned classes
    :ivar told: how to recognise affected servers in a snapshot, in Nova's database or
        in a collected file
    :ivar remedy: instructions, in which SERVER and HOST stand for the affected ones
    :ivar source: the part of Nova's code that has the bug
    :ivar since: the first release with the bug; None for all releases before the fix
    :ivar fixed: the first fixed release of each series; empty without a fix
    :ivar told_by: the rule that finds affected servers; None without such a rule
    :ivar moves: the kinds of migrations that the bug affects
    :ivar fails: whether these migrations fail for servers that the bug certainly hits
    :ivar when: whether to apply the remedy before or after the upgrade to a release
        with the bug
    """

    number: Annotated[int, count(0, 99_999_999, "Launchpad's numbers")]
    title: Annotated[
        str, Expected("a text of 1 to 80 characters", lambda t: 0 < len(t) <= 80)
    ]
    does: Words
    told: Words
    remedy: Words
    source: Words
    since: Release | None = None
    fixed: Annotated[tuple[Release, ...], EACH_ONCE] = ()
    told_by: ToldBy | None = None
    moves: Annotated[tuple[Literal["live", "cold"], ...], EACH_ONCE] = ()
    fails: bool = False
    when: Literal["before", "after"] = "before"

    def mistakes(self) -> Iterator[Mistake]:
        """Yield contradictions between keys."""
        if self.since is not None and self.since.has_fix(self.fixed):
            yield Mistake(
                ("since",), f"{self.since} has the fix: expected an older release"
            )
        if self.fails and not self.moves:
            yield Mistake(("fails",), "expected moves, the migrations that fail")

    @property
    def name(self) -> str:
        """The bug's name, such as "LP 2152697"."""
        return f"LP {self.number}" if self.number else "not reported"

    @property
    def url(self) -> str:
        """The bug's page on Launchpad, or the text for a report."""
        reported = f"https://bugs.launchpad.net/nova/+bug/{self.number}"
        return reported if self.number else "../contributor/upstream.html"

    @property
    def rule(self) -> Rule | None:
        """The rule that finds affected servers; None if no data shows them."""
        return RULES[self.told_by.rule] if self.told_by else None

    def remedy_for(self, hit: Hit) -> str:
        """Return the remedy for an affected host or server."""
        text = self.remedy.replace("HOST", hit.host)
        return text.replace("SERVER", hit.server.id) if hit.server else text

    def affects(self, release: Release, *, mended: bool | None = None) -> bool:
        """Return whether a release of Nova has the bug.

        :param mended: whether the installed Nova has the fix, as a distributor may have
            added it; None to judge by the release's number
        """
        if self.since is not None and release < self.since:
            return False
        return not (release.has_fix(self.fixed) if mended is None else mended)


@functools.cache
def all_bugs() -> tuple[KnownBug, ...]:
    """Return the known bugs, the newest first.

    :raises DocumentError: with every mistake of a file
    """
    files = (
        f for f in resources.files(__package__).iterdir() if f.name[-5:] == ".yaml"
    )
    found = [parse(f.read_text(encoding="utf-8"), f.name) for f in files]
    return tuple(sorted(found, key=lambda bug: -bug.number))


def parse(text: str, source: str) -> KnownBug:
    """Return the bug that a YAML text describes.

    :param source: name of the text in error messages
    :raises DocumentError: with every mistake of the text
    """
    return parse_document(KIND, KnownBug, text, source)

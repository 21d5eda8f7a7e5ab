# SPDX-License-Identifier: Apache-2.0
"""A known bug: the keys of its file, which are in this package, and who reads them."""

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
# The longest sentences that a table shows.
_WORDS: Final = Expected("a text of 1 to 600 characters", lambda t: 0 < len(t) <= 600)
Words = Annotated[str, _WORDS]
RuleName = Annotated[
    str, Expected(f"one of {', '.join(sorted(RULES))}", RULES.__contains__)
]


@dataclass(frozen=True)
class ToldBy:
    """How it is told whom a bug hits.

    :ivar rule: one of those in :mod:`nova_perfvm.known_bugs.rules`
    """

    rule: RuleName
    parameters: Mapping[str, str] = field(default_factory=dict)

    def mistakes(self) -> Iterator[Mistake]:
        """List parameters that the rule does not take, or lacks."""
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

    :ivar number: Launchpad's
    :ivar since: the first release that has it; None for all before the fix
    :ivar fixed: the first release of each series that has the fix; none if none has
    :ivar does: what it does to VMs of pinned classes
    :ivar told: how it is told from a snapshot, Nova's database or a collected file
    :ivar told_by: the rule that does so; None where nothing tells it
    :ivar moves: the migrations that it hits
    :ivar fails: whether such a migration fails for whom the bug hits for certain
    :ivar remedy: what to do; SERVER and HOST stand for whom it hits
    :ivar when: of an upgrade to a release that has it, when to do that
    :ivar source: what of Nova shows it
    """

    number: Annotated[int, count(1, 99_999_999, "Launchpad's numbers")]
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
        """List what does not go together."""
        if self.since is not None and self.since.has_fix(self.fixed):
            yield Mistake(("since",), f"{self.since} is fixed: expected an older one")
        if self.fails and not self.moves:
            yield Mistake(("fails",), "nothing is moved: expected moves")

    @property
    def name(self) -> str:
        """What it is called."""
        return f"LP {self.number}"

    @property
    def url(self) -> str:
        """Where it is reported."""
        return f"https://bugs.launchpad.net/nova/+bug/{self.number}"

    @property
    def rule(self) -> Rule | None:
        """The rule that tells whom it hits, if there is one."""
        return RULES[self.told_by.rule] if self.told_by else None

    def remedy_for(self, hit: Hit) -> str:
        """Return what to do, with whom it hits put in."""
        text = self.remedy.replace("HOST", hit.host)
        return text.replace("SERVER", hit.server.id) if hit.server else text

    def affects(self, release: Release, *, mended: bool | None = None) -> bool:
        """Return whether a release of Nova has it.

        :param mended: whether the installed one has the fix; None to go by its number
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
    """Return the bug that a text tells of.

    :param source: what to call the text in errors
    :raises DocumentError: with every mistake of the text
    """
    return parse_document(KIND, KnownBug, text, source)

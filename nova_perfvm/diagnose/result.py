# SPDX-License-Identifier: Apache-2.0
"""How a check ends, as oslo.upgradecheck has it: the worst one decides.

UNKNOWN is one more: what no API shows is not taken for right.
"""

import enum
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, Self, TypeVar

from nova_perfvm.findings import ACCEPTED
from nova_perfvm.policy import Policy

_View = TypeVar("_View")


class Code(enum.Enum):
    """How a check ended, from good to bad."""

    SUCCESS = 0
    NOTE = 1
    UNKNOWN = 2
    WARNING = 3
    FAILURE = 4

    @property
    def exit_code(self) -> int:
        """What oslo.upgradecheck would exit with: 0, 1 or 2."""
        return {Code.SUCCESS: 0, Code.NOTE: 0, Code.FAILURE: 2}.get(self, 1)


_ACCEPTABLE: Final = frozenset({Code.UNKNOWN, Code.WARNING})


@dataclass(frozen=True)
class CheckResult:
    """What a check found of one kind.

    :ivar details: one finding each
    :ivar remedy: what to do, empty if there is nothing to
    :ivar finding: the dotted code of that kind; empty if nothing was found
    """

    code: Code
    details: tuple[str, ...] = ()
    remedy: str = ""
    finding: str = ""

    @classmethod
    def of(
        cls,
        finding: str,
        found: Iterable[str],
        remedy: str,
        code: Code = Code.FAILURE,
    ) -> Self:
        """Return the result of a check: a success if it has found nothing."""
        found = tuple(found)
        return cls(code, found, remedy, finding) if found else cls(Code.SUCCESS)

    def judged_with(self, accept: Collection[str]) -> Self:
        """Return it as a note if it is accepted and no failure.

        :param accept: the codes that a policy accepts
        """
        if self.finding not in accept or self.code not in _ACCEPTABLE:
            return self
        details = tuple(f"{detail} ({ACCEPTED})" for detail in self.details)
        return replace(self, code=Code.NOTE, details=details)


def run(
    checks: Iterable[tuple[str, Callable[[Policy, _View], Iterable[CheckResult]]]],
    policy: Policy,
    view: _View,
) -> list[tuple[str, CheckResult]]:
    """Run checks, and give the title and each result; a success if there is none.

    :param view: what the policy is compared with
    """
    found = []
    for title, check in checks:
        results = [r for r in check(policy, view) if r.details]
        found += [
            (title, result.judged_with(policy.accept))
            for result in results or [CheckResult(Code.SUCCESS)]
        ]
    return found


def worst(results: list[tuple[str, CheckResult]]) -> Code:
    """Return the code that decides."""
    codes = [result.code for _, result in results]
    return max(codes, key=lambda code: code.value, default=Code.SUCCESS)

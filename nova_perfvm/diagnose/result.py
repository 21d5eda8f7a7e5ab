# SPDX-License-Identifier: Apache-2.0
"""How a check ends, as oslo.upgradecheck has it: the worst one decides.

UNKNOWN is one more: what no API shows is not taken for right.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


class Code(enum.Enum):
    """How a check ended, from good to bad."""

    SUCCESS = 0
    UNKNOWN = 1
    WARNING = 2
    FAILURE = 3

    @property
    def exit_code(self) -> int:
        """What oslo.upgradecheck would exit with: 0, 1 or 2."""
        return {Code.SUCCESS: 0, Code.FAILURE: 2}.get(self, 1)


@dataclass(frozen=True)
class CheckResult:
    """What a check found.

    :ivar details: one finding each
    :ivar remedy: what to do, empty if there is nothing to
    """

    code: Code
    details: tuple[str, ...] = ()
    remedy: str = ""

    @classmethod
    def of(cls, found: Iterable[str], remedy: str, code: Code = Code.FAILURE) -> Self:
        """Return the result of a check: a success if it has found nothing."""
        found = tuple(found)
        return cls(code, found, remedy) if found else cls(Code.SUCCESS)


def worst(results: list[tuple[str, CheckResult]]) -> Code:
    """Return the code that decides."""
    codes = [result.code for _, result in results]
    return max(codes, key=lambda code: code.value, default=Code.SUCCESS)

# SPDX-License-Identifier: Apache-2.0
"""What makes what is there into what should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nova_perfvm.changes.steps import Change


@dataclass(frozen=True)
class Left:
    """What a sync does not touch, and why."""

    action = "leave"
    kind: str
    name: str
    detail: str


@dataclass(frozen=True)
class SyncPlan:
    """What is to be done, in this order, or why nothing is.

    :ivar left: what is as it should be, or not this policy's
    :ivar refusals: each names what is in the way and the remedy
    """

    changes: tuple[Change, ...] = ()
    left: tuple[Left, ...] = ()
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Differences:
    """How what is there differs from what should be.

    :ivar set: what is missing or has another value, with the value to be
    :ivar changed: the present values of those
    :ivar surplus: what is there and should not be
    """

    set: Mapping[str, str]
    changed: Mapping[str, str]
    surplus: Mapping[str, str]


def differences(seen: Mapping[str, str], desired: Mapping[str, str]) -> Differences:
    """Compare two mappings."""
    wanted = {key: value for key, value in desired.items() if seen.get(key) != value}
    return Differences(
        set=wanted,
        changed={key: seen[key] for key in wanted if key in seen},
        surplus={key: value for key, value in seen.items() if key not in desired},
    )


def assignments(new: Mapping[str, str], old: Mapping[str, str]) -> str:
    """Write down what is set, each with the value that it had."""
    return ", ".join(
        f"{key}={value}" + (f" (was {old[key]})" if key in old else "")
        for key, value in new.items()
    )

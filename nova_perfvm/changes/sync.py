# SPDX-License-Identifier: Apache-2.0
"""What makes what is there into what should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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

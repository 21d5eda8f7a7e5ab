# SPDX-License-Identifier: Apache-2.0
"""Compare the present values of a flavor or an image with the desired ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Differences:
    """The differences between present and desired values, by key.

    :ivar set: desired values that are missing or different
    :ivar changed: the present values of those keys
    :ivar surplus: present values of keys that should not exist
    """

    set: Mapping[str, str]
    changed: Mapping[str, str]
    surplus: Mapping[str, str]


def differences(seen: Mapping[str, str], desired: Mapping[str, str]) -> Differences:
    wanted = {key: value for key, value in desired.items() if seen.get(key) != value}
    return Differences(
        set=wanted,
        changed={key: seen[key] for key in wanted if key in seen},
        surplus={key: value for key, value in seen.items() if key not in desired},
    )


def assignments(new: Mapping[str, str], old: Mapping[str, str]) -> str:
    """Return the new values as text, each with its old value."""
    return ", ".join(
        f"{key}={value}" + (f" (was {old[key]})" if key in old else "")
        for key, value in new.items()
    )

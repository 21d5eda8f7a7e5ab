# SPDX-License-Identifier: Apache-2.0
"""Make a plan and carry it out, until there is nothing left to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.cloud.errors import (
    CloudError,
    ConflictError,
    NotThereError,
    RefusedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from nova_perfvm.changes.steps import Change, Plan

# Whoever else changes the same things gets on each time one is late.
_ROUNDS: Final = 8


def carry_out(
    plan: Callable[[], Plan],
    apply: Callable[[Change], None],
    tell: Callable[[Change], None],
) -> None:
    """Look, change, and look again.

    :param tell: called before each change
    :raises RefusedError: when something is in the way
    :raises CloudError: when a request failed; running again goes on from there
    """
    for _ in range(_ROUNDS):
        found = plan()
        if found.refusals:
            raise RefusedError(found.refusals)
        if not found.changes:
            return
        try:
            for change in found.changes:
                tell(change)
                apply(change)
        except (ConflictError, NotThereError):
            # Someone else was faster: look at what is there now.
            continue
    raise CloudError("it does not stay as it was set, others change it: try again")

# SPDX-License-Identifier: Apache-2.0
"""Look, plan, change, and look again, until there is nothing left to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from nova_perfvm.changes.steps import Change, Plan
from nova_perfvm.cloud.errors import (
    CloudError,
    ConflictError,
    NotThereError,
    RefusedError,
)

# Others who change the same things are few, and each time one of them gets on.
CONFLICTS: Final = 8
PAUSE_S: Final = 0.2


def carry_out(
    plan: Callable[[], Plan],
    apply: Callable[[Change], None],
    tell: Callable[[Change], None],
    *,
    host: str = "",
    rounds: int = CONFLICTS,
) -> None:
    """Look, change, and look again.

    :param plan: looks at what is there now
    :param tell: called before each change
    :param host: the one that is changed, if it is one, for errors
    :param rounds: after how many plans to give up
    :raises RefusedError: when something is in the way
    :raises CloudError: when a request failed; running again goes on from there
    """
    conflicts = 0
    for _ in range(rounds):
        found = plan()
        if found.refusals:
            raise RefusedError(found.refusals)
        if not found.changes:
            return
        try:
            for change, following in zip(
                found.changes, (*found.changes[1:], None), strict=True
            ):
                tell(change)
                apply(change)
                # Servers get their units one by one; that is one step.
                if change.look_again and type(following) is not type(change):
                    break
        except (ConflictError, NotThereError) as exc:
            # Someone else was faster: look at what is there now.
            conflicts += 1
            if host and conflicts == CONFLICTS:
                raise CloudError(
                    f"{host} is being changed by others, {CONFLICTS} times in a row "
                    f"({exc}): run this again",
                    exc.status,
                ) from exc
            time.sleep(PAUSE_S * conflicts)
    if host:
        raise CloudError(f"{host} does not come to rest: run this again")
    raise CloudError("it does not stay as it was set, others change it: try again")

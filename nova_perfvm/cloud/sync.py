# SPDX-License-Identifier: Apache-2.0
"""Look, plan, change, and look again, until there is nothing left to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm.changes.steps import Change, Plan
from nova_perfvm.cloud.errors import (
    CloudError,
    ConflictError,
    NotThereError,
    RefusedError,
)

# Few change the same things at once, and with each conflict one of them succeeds.
CONFLICTS: Final = 8
PAUSE_S: Final = 0.2


@dataclass(frozen=True)
class Failed:
    """A change that was refused, while the others went on.

    :ivar asked: whether an operator named its subject; otherwise that is left alone
    """

    change: Change
    why: str
    asked: bool = True


def _none(_change: Change, _error: CloudError) -> bool:
    return False


def carry_out(
    plan: Callable[[], Plan],
    apply: Callable[[Change], None],
    tell: Callable[[Change], None],
    *,
    alone: Callable[[Change, CloudError], bool] = _none,
    host: str = "",
    rounds: int = CONFLICTS,
) -> list[Failed]:
    """Look, change, and look again; return what failed by itself.

    :param plan: looks at what is there now
    :param tell: called before each change
    :param alone: returns whether an error is about one flavor or image alone: that
        one is left, and the others go on
    :param host: name of the host that is changed, for errors; empty if there is none
    :param rounds: after how many plans to give up
    :raises RefusedError: when something is in the way
    :raises CloudError: when a request failed; running again goes on from there
    """
    conflicts = 0
    failed: list[Failed] = []
    for _ in range(rounds):
        found = plan()
        if found.refusals:
            raise RefusedError(found.refusals)
        changes = [change for change in found.changes if not _stopped(change, failed)]
        if not changes:
            return failed
        try:
            for change, following in zip(changes, (*changes[1:], None), strict=True):
                if _stopped(change, failed):
                    continue
                tell(change)
                failed += _apply(change, apply, alone)
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
        raise CloudError(f"{host} keeps changing: run this again")
    raise CloudError("somebody else changes it back each time: try again")


def _stopped(change: Change, failed: list[Failed]) -> bool:
    """Return whether a step before, of the same flavor or image, has failed."""
    return bool(failed) and _subject(change) in [_subject(f.change) for f in failed]


def _subject(change: Any) -> str | None:
    return getattr(change, "id", None) or getattr(change, "name", None)


def _apply(
    change: Change,
    apply: Callable[[Change], None],
    alone: Callable[[Change, CloudError], bool],
) -> list[Failed]:
    """Make one change; return it if it failed, and the others may go on."""
    try:
        apply(change)
    except (ConflictError, NotThereError):
        raise
    except CloudError as exc:
        if not alone(change, exc):
            raise
        return [Failed(change, str(exc))]
    return []

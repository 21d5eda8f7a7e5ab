# SPDX-License-Identifier: Apache-2.0
"""Change a host in rounds: read it, make a plan, carry it out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from nova_perfvm.changes import steps as do
from nova_perfvm.changes.enroll import plan_close
from nova_perfvm.cloud.answers import Hypervisors
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.errors import (
    CloudError,
    ConflictError,
    NotThereError,
    RefusedError,
)
from nova_perfvm.cloud.live_hosts import hypervisors, read_host
from nova_perfvm.facts.host_view import HostView

# A Planner makes the plan for a view of a host; a Tell is called before each change.
Planner = Callable[[HostView], do.Plan]
Tell = Callable[[do.Change], None]

# Rounds in one run: a few steps require a new plan, and so does each conflict.
_ROUNDS: Final = 40
# Few clients change the same host at once, and in each conflict one of them succeeds.
_CONFLICTS: Final = 8
_PAUSE_S: Final = 0.2


def change_host(
    api: API,
    host: str,
    planner: Planner,
    *,
    tell: Tell = lambda _change: None,
    among: Hypervisors | None = None,
) -> int:
    """Change a host until its plan is empty; return the number of changes made.

    :param planner: makes the plan for the host's current view
    :param tell: called before each change
    :param among: see :func:`nova_perfvm.cloud.live_hosts.read_host`
    :raises RefusedError: when the plan is refused; then either nothing was changed, or
        the host was closed to new VMs
    :raises CloudError: when a request failed; a new run continues from there
    """
    return _Run(api, host, tell, among).to_the_end(planner)


class _Run:
    """One run on one host.

    Each plan is made from the host's current state.  So a run continues where an
    earlier run or a crash has stopped, and two concurrent runs reach the same state.
    """

    def __init__(
        self, api: API, host: str, tell: Tell, among: Hypervisors | None
    ) -> None:
        self._api = api
        self._host = host
        self._tell = tell
        self._among = among
        self._made = 0
        self._applier: Applier
        self._opened = False
        # UUIDs of children that were detached before this run; None before the host is
        # first read.
        self._old: frozenset[str] | None = None
        # ID of the compute service that this run has disabled; empty if it disabled
        # none.
        self._disabled = ""

    def to_the_end(self, planner: Planner) -> int:
        """Change the host until its plan is empty; return the number of changes.

        The compute service is enabled again in any case.
        """
        try:
            self._carry_out(planner)
        except RefusedError:
            if self._opened:
                # Keep VMs with units off a host where one without was found.
                self._carry_out(plan_close)
            raise
        finally:
            self._restore_service()
        return self._made

    def _carry_out(self, planner: Planner) -> None:
        """Plan and apply, again and again, until the plan is empty."""
        conflicts = 0
        for _ in range(_ROUNDS):
            found = self._plan(planner)
            if found.refusals:
                raise RefusedError(found.refusals)
            if not found.changes:
                return
            try:
                self._apply_until_a_look(found.changes)
            except (ConflictError, NotThereError) as exc:
                # Another client has changed the host since it was read.
                conflicts += 1
                if conflicts == _CONFLICTS:
                    raise CloudError(
                        f"{self._host} is being changed by others ({exc}): run this "
                        "again",
                        exc.status,
                    ) from exc
                time.sleep(_PAUSE_S * conflicts)
        raise CloudError(f"{self._host} is being changed by others: run this again")

    def _apply_until_a_look(self, changes: Sequence[do.Change]) -> None:
        for change, following in zip(changes, (*changes[1:], None), strict=True):
            self._tell(change)
            self._apply(change)
            # Allocations of several servers follow each other as one step, without a
            # new plan.
            if change.look_again and type(following) is not type(change):
                return

    def _plan(self, planner: Planner) -> do.Plan:
        if self._among is None:
            self._among = hypervisors(self._api)
        view = read_host(self._api, self._host, self._among)
        self._applier = Applier(self._api, view)
        # A service that an interrupted run left disabled is enabled by this run.
        self._disabled = view.compute.service if view.compute.interrupted else ""
        plan = planner(view)
        if self._old is None:
            self._old = frozenset(child.uuid for child in view.detached)
        # nova-compute may still know children that this run has detached: delete them
        # in a later run.
        changes = [
            change
            for change in plan.changes
            if not isinstance(change, do.DeleteChild) or change.uuid in self._old
        ]
        return replace(plan, changes=tuple(changes))

    def _apply(self, change: do.Change) -> None:
        # Noted before the request, as even a request that fails may have opened the
        # host.
        if isinstance(change, do.SetTraits) and change.opens:
            self._opened = True
        if isinstance(change, do.SetService) and not change.enabled:
            self._disabled = change.id
        self._applier.apply(change)
        self._made += 1

    def _restore_service(self) -> None:
        if not self._disabled:
            return
        change = do.SetService(self._disabled, self._host, enabled=True)
        self._tell(change)
        try:
            Applier(self._api).apply(change)
        except CloudError as exc:
            raise CloudError(
                f"nova-compute on {self._host} is still disabled: {exc}; run this "
                "again, or openstack compute service set --enable",
                exc.status,
            ) from exc

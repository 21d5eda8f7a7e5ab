# SPDX-License-Identifier: Apache-2.0
"""Look, plan, change, and look again, until nothing is left to do."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nova_perfvm.changes import steps as do
from nova_perfvm.changes.enroll import plan_close, plan_enroll
from nova_perfvm.changes.unenroll import plan_unenroll
from nova_perfvm.cloud import observe
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.errors import CloudError, ConflictError, RefusedError
from nova_perfvm.facts.elastic_host import ComputeService

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nova_perfvm.cloud.api import API
    from nova_perfvm.facts.elastic_host import ElasticHost
    from nova_perfvm.policy import Policy

    Hypervisors = Sequence[dict[str, Any]] | None
    Planner = Callable[[ElasticHost], do.Plan]
    Tell = Callable[[do.Change], None]

# Others who change the same host are few, and each time one of them gets on.
CONFLICTS: Final = 8
PAUSE_S: Final = 0.2
# Steps after which a plan is made anew: a handful, and one for each attempt.
_ROUNDS: Final = 40


def silent(_change: do.Change) -> None:
    """Tell nobody."""


def enroll(
    api: API,
    policy: Policy,
    host: str,
    *,
    slots: int | None = None,
    aggregate: str | None = None,
    backfill: bool = False,
    tell: Tell = silent,
    among: Hypervisors = None,
) -> int:
    """Make a host elastic, or repair it; return the number of changes made.

    :param slots: see :func:`nova_perfvm.diagnose.sizing.host_slots`
    :param aggregate: see :func:`nova_perfvm.changes.enroll.plan_enroll`
    :param backfill: give VMs that run on the host the units that they should have
    :param tell: called before each change
    :param among: see :func:`nova_perfvm.cloud.observe.view_host`
    :raises RefusedError: when something is in the way; then nothing was
        changed, or the host was left closed to new VMs
    :raises CloudError: when a request failed; running again goes on from there
    """
    planner = partial(
        plan_enroll, policy, slots=slots, aggregate=aggregate, backfill=backfill
    )
    return _Run(api, host, tell, among).to_the_end(planner)


def unenroll(
    api: API,
    host: str,
    *,
    strip: bool = False,
    tell: Tell = silent,
    among: Hypervisors = None,
) -> int:
    """Make a host an ordinary one again; return the number of changes made.

    :param strip: take the units out of the allocations of VMs on it
    :raises RefusedError: while VMs there carry units, unless they are stripped
    :raises CloudError: when a request failed; running again goes on from there
    """
    planner = partial(plan_unenroll, strip=strip)
    return _Run(api, host, tell, among).to_the_end(planner)


class _Run:
    """One run on one host.

    Each plan is made on what is there now.  So a run goes on where another,
    or a crash, has left off, and two at once come to the same end.
    """

    def __init__(self, api: API, host: str, tell: Tell, among: Hypervisors) -> None:
        self._api = api
        self._host = host
        self._tell = tell
        self._among = among
        self._made = 0
        self._opened = False
        # The service that is out of service for the time of this run.
        self._disabled: ComputeService | None = None

    def to_the_end(self, planner: Planner) -> int:
        """Change until a plan is empty."""
        try:
            self._rounds(planner)
        except RefusedError:
            if self._opened:
                self._close()
            raise
        finally:
            self._restore_service()
        return self._made

    def _rounds(self, planner: Planner) -> None:
        conflicts = 0
        for _ in range(_ROUNDS):
            view = self._look()
            # An earlier run that was cut off counts as this one.
            self._disabled = view.service if view.service.interrupted else None
            plan = planner(view)
            if plan.refusals:
                raise RefusedError(plan.refusals)
            if not plan.changes:
                return
            try:
                self._some(view, plan.changes)
            except ConflictError as exc:
                conflicts += 1
                if conflicts == CONFLICTS:
                    raise CloudError(
                        f"{self._host} is being changed by others, {CONFLICTS} times "
                        f"in a row ({exc}): run this again",
                        exc.status,
                    ) from exc
                time.sleep(PAUSE_S * conflicts)
        raise CloudError(f"{self._host} does not come to rest: run this again")

    def _look(self) -> ElasticHost:
        if self._among is None:
            self._among = observe.hypervisors(self._api)
        return observe.view_host(self._api, self._host, self._among)

    def _some(self, view: ElasticHost, changes: Sequence[do.Change]) -> None:
        """Make changes up to one after which to look again."""
        applier = Applier(self._api, view)
        for number, change in enumerate(changes):
            self._tell(change)
            self._note(view, change)
            applier.apply(change)
            self._made += 1
            following = changes[number + 1 : number + 2]
            # Servers get their units one by one; that is one step.
            more = any(type(f) is type(change) for f in following)
            if change.look_again and not more:
                return

    def _note(self, view: ElasticHost, change: do.Change) -> None:
        """Remember what an error would have to undo, before the request is sent."""
        if isinstance(change, do.SetTraits) and change.opens:
            self._opened = True
        if isinstance(change, do.SetService) and not change.enabled:
            self._disabled = view.service

    def _close(self) -> None:
        """Keep VMs with units off a host where one without was found."""
        for _ in range(CONFLICTS):
            view = self._look()
            try:
                self._some(view, plan_close(view).changes)
            except ConflictError:
                time.sleep(PAUSE_S)
            else:
                return

    def _restore_service(self) -> None:
        if self._disabled is None:
            return
        change = do.SetService(self._disabled.id, self._host, enabled=True)
        self._tell(change)
        try:
            Applier(self._api).apply(change)
        except CloudError as exc:
            raise CloudError(
                f"nova-compute on {self._host} is disabled still: {exc}; run this "
                "again, or openstack compute service set --enable",
                exc.status,
            ) from exc

# SPDX-License-Identifier: Apache-2.0
"""Change the allocations of running servers in Placement.

A change is refused if the server or its allocation has changed since the plan was made.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Collection, Iterable
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import Allocate, Realign, RemoveUnits
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import ConflictError, NotThereError
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.migration_states import UNFINISHED
from nova_perfvm.facts.snapshot import OFFLOADED

# Placement's error code for a stale generation; a lack of capacity has another code.
CONCURRENT: Final = "placement.concurrent_update"


def allocate(api: API, step: Allocate, held: dict[str, Any], view: HostView) -> None:
    """Add to a server's allocation the resources that it lacks on its host.

    Nova changes the allocation when it begins to move the server.  Therefore `held` is
    read before Nova is asked for the server's host: if a move begins in between,
    Placement refuses the change by its consumer generation.  A server without an
    allocation has no generation.  So Nova is asked a second time after the change, and
    the change is undone if the server has left the host meanwhile.

    :param held: the server's allocation, as Placement answered
    :param view: the view of the host on which the step was planned
    :raises ConflictError: when the server is on another host, or Nova is changing it;
        when the server's allocation differs from the one in `view`; or when Placement
        refuses the change, with Placement's code
    """
    allocations = {
        provider: {"resources": dict(entry["resources"])}
        for provider, entry in held["allocations"].items()
        if provider not in step.elsewhere
    }
    _expect_as_seen(step.server, held, view)
    for provider, lacking in step.resources.items():
        resources = allocations.setdefault(provider, {"resources": {}})["resources"]
        for name, amount in lacking.items():
            resources[name] = resources.get(name, 0) + amount
    body: dict[str, Any] = {"allocations": allocations}
    found = _at_rest(api, step.server, view.host)
    for key, owner in (("project_id", "tenant_id"), ("user_id", "user_id")):
        body[key] = held.get(key, found[owner])
    # Placement expects null for a consumer without an allocation.
    body["consumer_generation"] = held.get("consumer_generation")
    api.placement("PUT", f"/allocations/{step.server}", body)
    try:
        _at_rest(api, step.server, view.host)
    except ConflictError:
        _take_back(api, step.server, body, held)
        raise


def _take_back(
    api: API, server: str, changed: dict[str, Any], former: dict[str, Any]
) -> None:
    """Restore the server's former allocation, unless Nova has changed it since."""
    now = answers.allocation(api, server)
    found = {u: {"resources": e["resources"]} for u, e in now["allocations"].items()}
    if found == changed["allocations"]:
        body = changed | {"allocations": former["allocations"]}
        body["consumer_generation"] = now["consumer_generation"]
        with contextlib.suppress(ConflictError):
            api.placement("PUT", f"/allocations/{server}", body)


def realign(api: API, step: Realign, view: HostView) -> None:
    """Let each server hold on its host's children what it uses, in one request.

    As in :func:`allocate`, Nova is asked for each server after its allocation is read.
    A server that moved away and came back is corrected by the next plan, which is made
    on a new view of the host.

    :raises ConflictError: when one of the servers is gone, elsewhere or being changed,
        when its allocation is not as in `view`, or when Placement refuses
    """
    body = {}
    for consumer, wanted in step.resources.items():
        held = answers.allocation(api, consumer)
        _expect_as_seen(consumer, held, view)
        allocations = _without_units(held, of=held["allocations"])
        for provider, taken in wanted.items():
            resources = allocations.setdefault(provider, {"resources": {}})["resources"]
            resources.update(taken)
        _at_rest(api, consumer, step.host)
        body[consumer] = held | {"allocations": allocations}
    api.placement("POST", "/allocations", body)


def remove_units(api: API, step: RemoveUnits) -> None:
    """Remove the units from a consumer's allocation, and keep the rest.

    Placement refuses the change by the consumer generation if anybody has changed the
    allocation since it was read.

    :raises ConflictError: when nothing would be left, or Placement refuses
    """
    held = answers.allocation(api, step.consumer)
    kept = _without_units(held, of=step.providers)
    if not kept:
        # Writing no allocations would delete the consumer's allocation, which belongs
        # to Nova.
        raise ConflictError(f"{step.consumer} has no other allocation", 409)
    body = held | {"allocations": kept}
    api.placement("PUT", f"/allocations/{step.consumer}", body)


def _without_units(
    held: dict[str, Any], of: Collection[str]
) -> dict[str, dict[str, dict[str, int]]]:
    """Return the allocations that are left without the units of these providers."""
    kept = {}
    for provider, entry in held["allocations"].items():
        left_out = const.CHILD_CLASSES if provider in of else frozenset()
        resources = {n: a for n, a in entry["resources"].items() if n not in left_out}
        if resources:
            kept[provider] = {"resources": resources}
    return kept


def migrating(api: API, servers: Iterable[str]) -> set[str]:
    """Return the servers among `servers` on whose migration Nova may be at work.

    :param servers: IDs of servers that are not busy
    """
    now = dt.datetime.now(dt.UTC)
    return {
        server
        for server in servers
        if any(
            move.status in UNFINISHED and not move.is_left(now)
            for move in answers.migrations(api, instance_uuid=server)
        )
    }


def _expect_as_seen(consumer: str, held: dict[str, Any], view: HostView) -> None:
    """Check that a server's allocation on a host is still as the view shows it.

    :raises ConflictError: when the allocation has changed
    """
    for provider in (view.root, *view.children, *view.detached):
        entry = held["allocations"].get(provider.uuid, {})
        if entry.get("resources", {}) != provider.allocations.get(consumer, {}):
            words = f"{view.describe(consumer)} holds something else now"
            raise ConflictError(words, 409, CONCURRENT)


def _at_rest(api: API, server: str, host: str) -> dict[str, Any]:
    """Return Nova's answer for a server that is on `host` and not being changed.

    :raises ConflictError: when the server is gone, on another host, offloaded, or busy
    """
    try:
        found: dict[str, Any] = api.nova("GET", f"/servers/{server}", key="server")
    except NotThereError as exc:
        raise ConflictError(f"server {server} is gone", 409, CONCURRENT) from exc
    shown = answers.server(found)
    # When Nova offloads a server, it deletes the allocation first and clears the
    # server's host a moment later.
    if shown.busy or shown.host != host or shown.status == OFFLOADED:
        raise ConflictError(f"Nova is at work with {shown}", 409, CONCURRENT)
    return found

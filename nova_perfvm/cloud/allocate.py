# SPDX-License-Identifier: Apache-2.0
"""Change allocations of running servers, unless either has changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import Allocate, Realign
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import ConflictError, NotThereError
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.migration_states import UNFINISHED
from nova_perfvm.facts.snapshot import OFFLOADED

# Placement's code when generations differ; a lack of room has another.
CONCURRENT: Final = "placement.concurrent_update"


def allocate(api: API, step: Allocate, held: dict[str, Any], view: HostView) -> None:
    """Add what a server lacks on a host to its allocation.

    Nova changes an allocation when it begins to move the server.  The allocation is
    read before Nova is asked where the server is: if a move began in between, Placement
    refuses the change.  Of a server that holds nothing there is no generation to refuse
    it by, so Nova is asked once more, and the allocation taken back where the server
    left meanwhile.

    :param held: what it has been allocated, as Placement answered
    :param view: of the host, on which the step was planned
    :raises ConflictError: when the server is elsewhere, or Nova is at work with it;
        when it holds something else than the view shows; or when Placement refuses,
        see its code
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
    # None for one that has no allocation at all.
    body["consumer_generation"] = held.get("consumer_generation")
    api.placement("PUT", f"/allocations/{step.server}", body)
    try:
        _at_rest(api, step.server, view.host)
    except ConflictError:
        _take_back(api, step.server, body, held)
        raise


def _take_back(
    api: API, server: str, given: dict[str, Any], held: dict[str, Any]
) -> None:
    """Let a server hold what it held before, unless Nova has changed that since."""
    now = answers.allocation(api, server)
    found = {u: {"resources": e["resources"]} for u, e in now["allocations"].items()}
    if found == given["allocations"]:
        body = given | {"allocations": held["allocations"]}
        body["consumer_generation"] = now["consumer_generation"]
        with contextlib.suppress(ConflictError):
            api.placement("PUT", f"/allocations/{server}", body)


def realign(api: API, step: Realign, view: HostView) -> None:
    """Let servers of a host hold what they use of its children, all in one request.

    As in :func:`allocate`, each is looked up after its allocation is read.  One that
    was away and is back is found when the host is looked at again.

    :raises ConflictError: when Nova is at work with one, or Placement refuses
    """
    body = {}
    for consumer, wanted in step.resources.items():
        held = answers.allocation(api, consumer)
        _expect_as_seen(consumer, held, view)
        allocations: dict[str, dict[str, dict[str, int]]] = {}
        for provider, entry in held["allocations"].items():
            rest = {
                name: amount
                for name, amount in entry["resources"].items()
                if name not in const.CHILD_CLASSES
            }
            if rest:
                allocations[provider] = {"resources": rest}
        for provider, taken in wanted.items():
            resources = allocations.setdefault(provider, {"resources": {}})["resources"]
            resources.update(taken)
        _at_rest(api, consumer, step.host)
        body[consumer] = held | {"allocations": allocations}
    api.placement("POST", "/allocations", body)


def migrating(api: API, servers: Iterable[str]) -> set[str]:
    """Return those of some servers with a migration that is not over."""
    return {
        server
        for server in servers
        if any(
            move.status in UNFINISHED
            for move in answers.migrations(api, instance_uuid=server)
        )
    }


def _expect_as_seen(consumer: str, held: dict[str, Any], view: HostView) -> None:
    """Compare what a server holds of a host with what a step was planned on.

    :raises ConflictError: when it is something else by now
    """
    for provider in (view.root, *view.children, *view.detached):
        entry = held["allocations"].get(provider.uuid, {})
        if entry.get("resources", {}) != provider.allocations.get(consumer, {}):
            words = f"{view.describe(consumer)} holds something else now"
            raise ConflictError(words, 409, CONCURRENT)


def _at_rest(api: API, server: str, host: str) -> dict[str, Any]:
    """Return a server as Nova shows it.

    :raises ConflictError: when it is elsewhere, or Nova is at work with it
    """
    try:
        found: dict[str, Any] = api.nova("GET", f"/servers/{server}", key="server")
    except NotThereError as exc:
        raise ConflictError(f"server {server} is gone", 409, CONCURRENT) from exc
    shown = answers.server(found)
    # Nova takes the allocation of one that it offloads, and its host a moment later.
    if shown.busy or shown.host != host or shown.status == OFFLOADED:
        raise ConflictError(f"Nova is at work with {shown}", 409, CONCURRENT)
    return found

# SPDX-License-Identifier: Apache-2.0
"""Add to the allocation of a running server, unless either has changed."""

from __future__ import annotations

from typing import Any, Final

from nova_perfvm.changes.steps import Allocate
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import ConflictError
from nova_perfvm.facts.host_view import HostView

# Placement's code when generations differ; a lack of room has another.
CONCURRENT: Final = "placement.concurrent_update"


def allocate(api: API, step: Allocate, held: dict[str, Any], view: HostView) -> None:
    """Add what a server lacks on a host to its allocation.

    Nova changes an allocation when it begins to move the server.  The allocation is
    read before Nova is asked where the server is: if a move began in between, Placement
    refuses the change.

    :param held: what it has been allocated, as Placement answered
    :param view: of the host, on which the step was planned
    :raises ConflictError: when the server is elsewhere, or Nova is at work with it;
        when it holds something else than the view shows; or when Placement refuses,
        see its code
    """
    allocations = {
        provider: {"resources": dict(entry["resources"])}
        for provider, entry in held["allocations"].items()
    }
    known = (view.root, *view.children, *view.detached)
    if any(
        allocations.get(p.uuid, {}).get("resources", {})
        != p.allocations.get(step.server, {})
        for p in known
    ):
        raise ConflictError(f"{step.name} holds something else now", 409, CONCURRENT)
    for provider, lacking in step.resources.items():
        resources = allocations.setdefault(provider, {"resources": {}})["resources"]
        for name, amount in lacking.items():
            resources[name] = resources.get(name, 0) + amount
    body: dict[str, Any] = {"allocations": allocations}
    found = api.nova("GET", f"/servers/{step.server}", key="server")
    server = answers.server(found)
    if server.busy or server.host != view.host:
        raise ConflictError(f"Nova is at work with {server}", 409, CONCURRENT)
    for key, owner in (("project_id", "tenant_id"), ("user_id", "user_id")):
        body[key] = held.get(key, found[owner])
    # None for one that has no allocation at all.
    body["consumer_generation"] = held.get("consumer_generation")
    api.placement("PUT", f"/allocations/{step.server}", body)

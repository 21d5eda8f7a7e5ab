# SPDX-License-Identifier: Apache-2.0
"""Restore what servers have lost of their allocations, one server at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from nova_perfvm.changes.heal import Healing, plan_heal
from nova_perfvm.changes.steps import Allocate
from nova_perfvm.cloud import answers, live_hosts
from nova_perfvm.cloud.allocate import CONCURRENT, allocate, migrating
from nova_perfvm.cloud.answers import Hypervisors
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import ConflictError, RefusedError, openstack_errors
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.policy import Policy

# Only Nova changes the same allocation meanwhile, and mostly once.
_TRIES: Final = 4


def look(
    api: API, policy: Policy, host: str, among: Hypervisors | None = None
) -> Healing:
    """Return what the servers of a host have lost.

    :param among: see :func:`nova_perfvm.cloud.live_hosts.read_host`
    """
    view = live_hosts.read_host(api, host, among)
    found = _plan(api, policy, view)
    steps = {}
    for server, step in found.steps.items():
        held = answers.allocation(api, server)
        others = _elsewhere(api, view, server, held, among)
        steps[server] = replace(step, elsewhere=others)
    return replace(found, steps=steps)


@openstack_errors()
def heal(
    api: API, policy: Policy, host: str, server: str, among: Hypervisors | None = None
) -> Allocate | None:
    """Restore what a server has lost, and return the step that did.

    Return None if the server lacks nothing any more, or has left the host.

    :param server: its ID
    :raises RefusedError: when something is in the way, such as other servers that have
        taken its room
    :raises ConflictError: when its allocation is changed again and again
    """
    for left in reversed(range(_TRIES)):
        # Read first: any change from here on changes the generation, too.
        held = answers.allocation(api, server)
        view = live_hosts.read_host(api, host, among)
        healing = _plan(api, policy, view)
        name = view.describe(server)
        if server in healing.left:
            raise RefusedError((healing.left[server],))
        step = healing.steps.get(server)
        if step is None:
            return None
        step = replace(step, elsewhere=_elsewhere(api, view, server, held, among))
        if step.elsewhere and view.cloud.server_by_id[server].status == "ERROR":
            # The guest may still run on the other host.
            words = f"{name} is in ERROR: see audit.allocation_elsewhere"
            raise RefusedError((words,))
        try:
            allocate(api, step, held, view)
        except ConflictError as exc:
            if exc.code != CONCURRENT:
                raise RefusedError(
                    (f"{name}: {host} has no room for it left, migrate it: {exc}",)
                ) from exc
            if not left:
                raise
        else:
            return step
    raise AssertionError


def _elsewhere(
    api: API,
    view: HostView,
    server: str,
    held: dict[str, Any],
    among: Hypervisors | None,
) -> dict[str, str]:
    """Return other compute hosts by the providers of theirs that a server holds.

    A resize of a server without allocation leaves that of the new host to it when it
    is reverted.  A failed host does not count: Nova removes its part when the host is
    back.
    """
    others = held["allocations"].keys() - {provider.uuid for provider in view.tree}
    if not others:
        return {}
    moves = answers.migrations(api, instance_uuid=server)
    failed = {move.source for move in moves if move.awaits_source}
    listed = among or live_hosts.hypervisors(api)
    hosts = {found["id"]: found["service"]["host"] for found in listed}
    found = {}
    for uuid in others:
        shown = api.placement("GET", f"/resource_providers/{uuid}")
        host = hosts.get(shown["root_provider_uuid"])
        if host and host not in {view.host, *failed}:
            found[uuid] = host
    return found


def _plan(api: API, policy: Policy, view: HostView) -> Healing:
    """Return what can be healed; only servers that lack something are looked up."""
    return plan_heal(policy, view, migrating(api, plan_heal(policy, view).steps))

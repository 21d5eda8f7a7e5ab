# SPDX-License-Identifier: Apache-2.0
"""Restore what servers have lost of their allocations, one server at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from nova_perfvm.changes.heal import Healing, plan_heal
from nova_perfvm.changes.steps import Allocate
from nova_perfvm.cloud import answers, live_hosts
from nova_perfvm.cloud.allocate import CONCURRENT, allocate, migrating
from nova_perfvm.cloud.answers import Hypervisors
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import ConflictError, RefusedError, openstack_errors
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.policy import Policy

# Only Nova changes the same allocation at that time, usually once.
_TRIES: Final = 4


def look(
    api: API, policy: Policy, host: str, among: Hypervisors | None = None
) -> Healing:
    """Return the resources that each server of a host lacks in its allocation."""
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
    """Restore the resources that a server's allocation lacks; return the step made.

    Return None if the server lacks nothing any more, or has left the host.

    :param server: the server's ID
    :raises RefusedError: when the allocation cannot be restored, for example because
        other servers have taken the capacity
    :raises ConflictError: when the allocation is changed again and again
    """
    for left in reversed(range(_TRIES)):
        # Read before the view: any later change of the allocation makes this generation
        # stale.
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
                    (f"{name}: {host} has no room for the VM, migrate the VM: {exc}",)
                ) from exc
            if not left:
                raise
        else:
            return step
    raise AssertionError


def look_at_all(
    api: API,
    policy: Policy,
    hosts: Iterable[str],
    among: Hypervisors,
    say: Callable[[str], object],
) -> list[tuple[str, Allocate]]:
    """Return the steps that heal the servers of hosts; say what cannot be healed."""
    steps = []
    for host in hosts:
        try:
            found = look(api, policy, host, among)
        except PerfVMError as exc:
            say(f"left: {host}: {exc}")
            continue
        for reason in found.left.values():
            say(f"left: {reason}")
        steps += [(host, step) for step in found.steps.values()]
    return steps


def heal_all(
    api: API,
    policy: Policy,
    steps: Iterable[tuple[str, Allocate]],
    among: Hypervisors,
    say: Callable[[str], object],
) -> None:
    """Heal servers in turn; say for each the change, or why nothing changed."""
    for host, step in steps:
        try:
            done = heal(api, policy, host, step.server, among)
        except PerfVMError as exc:
            say(f"left: {exc}")
        else:
            say(f"{host}: {done or f'nothing left to give to {step.name}'}")


def _elsewhere(
    api: API,
    view: HostView,
    server: str,
    held: dict[str, Any],
    among: Hypervisors | None,
) -> dict[str, str]:
    """Return {UUID of a provider that a server holds: its host} of other hosts.

    When a resize of a server without an allocation is reverted, the server keeps its
    allocation on the new host.  Hosts from which the server was evacuated do not count:
    Nova removes the allocation there when the host is back.
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
    """Plan to heal a host; only servers that lack resources are checked for moves."""
    return plan_heal(policy, view, migrating(api, plan_heal(policy, view).steps))

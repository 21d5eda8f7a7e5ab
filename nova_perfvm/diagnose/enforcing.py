# SPDX-License-Identifier: Apache-2.0
"""Find what the filter would refuse in a running cloud once it enforces a policy.

The answer is by flavor.  Running VMs of a refused flavor stay where they are, but no
such VM comes to a host any more, be it a new one or one that is moved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nova_perfvm.diagnose.explain.verdicts import (
    SchedulerSettings,
    offers,
    rules_against,
    settings_for,
)
from nova_perfvm.diagnose.explain.words import words
from nova_perfvm.facts import Reason, RequestCell, RequestFacts
from nova_perfvm.facts.demand import RequestError, request_for, server_facts
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.snapshot import Flavor, Server, Snapshot
from nova_perfvm.policy import Policy
from nova_perfvm.rules import check_request


@dataclass(frozen=True)
class RefusedFlavor:
    """A flavor that a policy refuses for one reason.

    :ivar code: of the first reason
    :ivar words: the reason on one of the hosts
    :ivar vms: how many run with it and would not be let onto their own host; 0 for a
        flavor without VMs that no host would take any more
    :ivar hosts: how many hosts these VMs are on, or would have taken one
    """

    flavor: str
    code: str
    words: str
    vms: int
    hosts: int

    def __str__(self) -> str:
        """Return numbers and reason in one line."""
        where = f"hosts that refuse it: {self.hosts}; " if self.hosts else ""
        return f"running VMs: {self.vms}; {where}{self.code}: {self.words}"


def refused_flavors(policy: Policy, snapshot: Snapshot) -> tuple[RefusedFlavor, ...]:
    """Return what would be refused: flavors in use, most VMs first; then the others.

    Of those without a VM only public ones.
    """
    views = views_of(snapshot)
    found: dict[tuple[str, str], list[tuple[Reason, str]]] = defaultdict(list)
    for view in views:
        for server in view.servers:
            reason = _against(policy, snapshot, server, view)
            if reason is not None:
                found[server.flavor, reason.code].append((reason, view.name))
    in_use = [
        RefusedFlavor(
            flavor,
            code,
            words(refusals[0][0]),
            vms=len(refusals),
            hosts=len({host for _, host in refusals}),
        )
        for (flavor, code), refusals in found.items()
    ]
    in_use.sort(key=lambda refused: (-refused.vms, refused.flavor, refused.code))
    names = {server.flavor for view in views for server in view.servers}
    others = [f for f in snapshot.flavors if f.public and f.name not in names]
    return (*in_use, *_unused(policy, others, views))


def _against(
    policy: Policy, snapshot: Snapshot, server: Server, view: HostView
) -> Reason | None:
    """Return why a server would not come to its own host, were it not there."""
    if not server.known:
        return None
    request = server_facts(server, snapshot.image_of(server))
    if not request.pinned and server.owns_cpus:
        # Nobody looked on which NUMA node it is.
        own = RequestCell(vcpus=0, pcpus=server.vcpus, memory_mb=server.memory_mb)
        request = request._replace(cells=(own,))
    return _first(policy, request, view.without([server]))


def _first(policy: Policy, request: RequestFacts, view: HostView) -> Reason | None:
    return next(iter(rules_against(policy, request, view)), None)


def _unused(
    policy: Policy, flavors: Sequence[Flavor], views: Sequence[HostView]
) -> Iterator[RefusedFlavor]:
    """Yield the flavors that have hosts now, and would have none."""
    # Nova's default, by which pinned VMs come to hosts without CPU sets.
    settings = replace(settings_for(policy), fallback=True)
    # Who is there today may be gone tomorrow.
    empty = [view.without(view.servers) for view in views]
    for flavor in sorted(flavors, key=lambda flavor: flavor.name):
        refusal = _everywhere(policy, flavor, empty, settings)
        if refusal is not None:
            reason, hosts = refusal
            yield RefusedFlavor(flavor.name, reason.code, words(reason), 0, hosts)


def _everywhere(
    policy: Policy,
    flavor: Flavor,
    empty: Sequence[HostView],
    settings: SchedulerSettings,
) -> tuple[Reason, int] | None:
    """Return why no host takes a flavor, and how many did; None if one still does."""
    try:
        request = request_for(flavor)
    except RequestError:
        # No policy is needed: nova-api refuses it.
        return None
    wrong = check_request(policy, request.facts)
    if wrong:
        return wrong[0], 0
    found = []
    for view in empty:
        reason = _first(policy, request.facts, view)
        if offers(request, view, settings):
            if reason is None:
                return None
            found.append(reason)
    return (found[0], len(found)) if found else None

# SPDX-License-Identifier: Apache-2.0
"""Find the smallest change after which a host would take a request.

Servers are moved away in thought, and everything is judged again: what is told
is enough, and each of the servers is needed.  It is the smallest there is when
it is one server or two; of more, another set may be smaller.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nova_perfvm import constants as const
from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.explain.leaving import Leaving
from nova_perfvm.diagnose.explain.verdicts import (
    HostVerdict,
    SchedulerSettings,
    accepts,
    judge,
)
from nova_perfvm.diagnose.hosts import OfferFault, stale_traits
from nova_perfvm.facts import Reason
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.placement.candidates import DISABLED
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of
from nova_perfvm.rules import REFUSALS

# So many servers are tried two by two; on a host with more, one by one.
_MOST_PAIRED = 24

# What no server that leaves can change; of the rules, each says it itself.
_STANDING = frozenset(
    {
        const.NOVA_AVAILABILITY_ZONE,
        const.NOVA_TENANT_AGGREGATE,
        const.PLACEMENT_NO_PROVIDER,
        const.PLACEMENT_NO_INVENTORY,
        const.PLACEMENT_TRAIT_MISSING,
        const.PLACEMENT_TRAIT_FORBIDDEN,
        const.PLACEMENT_ISOLATED,
        const.CELLS_UNKNOWN,
    }
)


@dataclass(frozen=True)
class Fix:
    """What to do for one host.

    :ivar host: its name
    :ivar steps: in words, first what the service needs
    :ivar frees: what the servers give back, in words; empty without servers
    :ivar servers: those to be moved away
    """

    host: str
    steps: tuple[str, ...] = ()
    frees: str = ""
    servers: tuple[Server, ...] = ()

    @property
    def cost(self) -> tuple[int, int, int, str]:
        """How much it takes: the smallest is the best."""
        vcpus = sum(server.vcpus for server in self.servers)
        before = sum(not moves.ready(server) for server in self.servers)
        return len(self.servers), vcpus, len(self.steps) + before, self.host

    def __str__(self) -> str:
        """Return one sentence, such as ``host hp2: free 8 pCPUs ...``."""
        parts = list(self.steps)
        if self.servers:
            frees = f"free {self.frees}: " if self.frees else ""
            parts.append(f"{frees}{moves.describe(self.servers)}")
        return f"host {self.host}: {'; '.join(parts)}"


def fix_for(
    policy: Policy,
    request: Request,
    verdict: HostVerdict,
    settings: SchedulerSettings,
    leaving: Leaving,
) -> Fix | None:
    """Return the smallest change found for one host, None if none was found.

    Only servers are to go that another host would take.
    """
    if verdict.accepted:
        return None
    view, steps = _served(verdict)
    reasons = verdict.reasons
    for reason in verdict.rules:
        refusal = REFUSALS.get(reason.code)
        if refusal and refusal.fix:
            step, view = refusal.fix(reason.data, view)
            steps = (*steps, step)
            reasons = judge(policy, request, view, settings).reasons
    for stale in _stale(policy, view, reasons):
        steps = (*steps, f"remove {stale.stale_trait}: {stale.remedy}")
        view = _without_trait(view, stale.stale_trait)
        reasons = judge(policy, request, view, settings).reasons
    if any(_is_standing(reason) for reason in reasons):
        return None

    def enough(servers: Sequence[Server]) -> bool:
        after = view.without(servers)
        return accepts(policy, request, after, settings)

    # Nobody makes room for himself.
    others = [server for server in view.servers if server.id != request.server]
    if not enough(others):
        return None
    others = [server for server in others if leaving.can(server)]
    servers = _smallest(others, enough)
    if servers is None:
        leaving.stuck.append(view.name)
    if servers is None or not (servers or steps):
        return None
    return Fix(view.name, steps, _freed(view, servers), servers)


def _stale(
    policy: Policy, view: HostView, reasons: Iterable[Reason]
) -> list[OfferFault]:
    """Return the traits that keep a request off, and that are left of slots."""
    forbidden = {
        reason.data["trait"]
        for reason in reasons
        if reason.code == const.PLACEMENT_TRAIT_FORBIDDEN
    }
    found = stale_traits(policy, view) if forbidden else ()
    return [fault for fault in found if fault.stale_trait in forbidden]


def _without_trait(view: HostView, trait: str) -> HostView:
    top, *others = view.tree
    return replace(view, tree=(replace(top, traits=top.traits - {trait}), *others))


def _is_standing(reason: Reason) -> bool:
    refusal = REFUSALS.get(reason.code)
    if refusal is None:
        return reason.code in _STANDING
    return refusal.standing or reason.code.startswith(("flavor.", "request."))


def smallest(fixes: Iterable[Fix | None]) -> Fix | None:
    """Return the smallest of several."""
    return min((fix for fix in fixes if fix), key=lambda fix: fix.cost, default=None)


def _served(verdict: HostVerdict) -> tuple[HostView, tuple[str, ...]]:
    """Return the host with a service that runs, and what that takes."""
    view, host = verdict.view, verdict.view.compute
    steps = []
    if not host.up:
        steps.append(
            "end its being forced down (openstack compute service set --up)"
            if host.forced_down
            else "start nova-compute"
        )
    if not host.enabled:
        steps.append("enable nova-compute (openstack compute service set --enable)")
    view = replace(
        view,
        compute=replace(host, up=True, enabled=True),
        tree=tuple(
            # nova-compute takes it away itself.
            replace(provider, traits=provider.traits - {DISABLED})
            for provider in view.tree
        ),
    )
    return view, tuple(steps)


def _smallest(
    servers: Sequence[Server], enough: Callable[[Sequence[Server]], bool]
) -> tuple[Server, ...] | None:
    if enough(()):
        return ()
    if not enough(servers):
        return None
    ordered = sorted(
        servers, key=lambda server: (server.vcpus, not moves.ready(server), server.id)
    )
    # Leave out, one by one, the largest that need not go.
    kept = list(ordered)
    for server in reversed(ordered):
        fewer = [other for other in kept if other is not server]
        if enough(fewer):
            kept = fewer
    if len(kept) == len(ordered):
        # Each is needed.
        return tuple(kept)
    most = 2 if len(ordered) <= _MOST_PAIRED else 1
    for count in range(1, min(most, len(kept)) + 1):
        for some in itertools.combinations(ordered, count):
            if enough(some):
                return some
    return tuple(kept)


def _freed(view: HostView, servers: Sequence[Server]) -> str:
    """Return what is free afterwards that matters: pinned CPUs, units, or the rest."""
    found = []
    pins = {cpu for server in servers for cpu in server.pinned_cpus}
    for cell in view.facts.cells:
        own = len(cell.pinned_cpus & pins)
        if own:
            found.append(f"{own} pCPUs on NUMA node {cell.id}")
    gone = {server.id for server in servers}
    totals: Mapping[str, int] = {
        provider.name: units
        for provider in view.tree
        if (units := sum(n for c, n in provider.units().items() if c in gone))
    }
    found += [f"{number_of(units, 'unit')} of {name}" for name, units in totals.items()]
    if not found and servers:
        found = [f"{sum(server.vcpus for server in servers)} vCPUs"]
    return ", ".join(found)

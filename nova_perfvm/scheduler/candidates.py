# SPDX-License-Identifier: Apache-2.0
"""Which of a host's allocation candidates Nova claims.

On an elastic host each free child provider makes a candidate.  Nova
(nova/scheduler/manager.py, ``_schedule``) claims the first candidate of each HostState
that has passed the filters, one after the other, until a claim succeeds.  So a claim
that meets another one on the same
child would end on that host, whatever else is free there.  Here a host becomes
one HostState for each of its free children: a request is refused only when
every child is taken.

What is granted does not depend on any of this: Placement sees to that.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nova import objects
from nova.scheduler.host_manager import HostState

from nova_perfvm import constants as const

# Placement's allocation request, as HostState has it.
Candidate = dict[str, Any]
# With more hosts than this a claim that fails has other hosts to go to, and the
# filters behind this one would have to judge each child of each of them.
MANY_HOSTS = 16


class Attempt(HostState):
    """One claim that Nova may try: a host's state, and candidates to begin with.

    :ivar by_host: all attempts of the request, those at one host together; weak,
        as Nova holds those that count, and a ring of them would be garbage with
        all that their hosts have
    :ivar over: whether another attempt stands for the host from now on
    :ivar claimed_for: the server for which the last claim succeeded, on any of
        the request's hosts
    """

    def __init__(self, host_state: HostState) -> None:
        # No super(): this is the state of that host, not of a new one.  The
        # filters to come write their limits into it.
        vars(self).update(vars(host_state))
        self.limits = dict(host_state.limits)
        self.by_host: Sequence[Sequence[weakref.ref[Attempt]]] = ()
        self.over = False
        self.claimed_for: str | None = None

    def consume_from_request(self, spec_obj: objects.RequestSpec) -> None:
        """Take note of a claim that has succeeded.

        nova/scheduler/manager.py calls it then, in ``_consume_selected_host``.

        Afterwards one attempt stands for each host, with all candidates but
        those of the child that was claimed.  Among these Nova looks for hosts
        for the request's next server, and for alternates.
        """
        super().consume_from_request(spec_obj)
        kept = self.kept()
        for here in self.by_host:
            attempts = [a for ref in here if (a := ref()) is not None]
            if not attempts:
                # The filters behind this one have refused the host.
                continue
            left = [c for a in attempts for c in a.allocation_candidates]
            stands = next((a for a in attempts if a.allocation_candidates), attempts[0])
            if self in attempts:
                left = [c for c in left if kept(c)]
                stands = self
            for attempt in attempts:
                attempt.over = attempt is not stands
                attempt.allocation_candidates = left if attempt is stands else []
                attempt.claimed_for = spec_obj.instance_uuid

    def kept(self) -> Callable[[Candidate], bool]:
        """Return what tells the candidates of the host that a claim has left."""
        claimed = {child_of(c) for c in self.allocation_candidates[:1]}
        return lambda candidate: child_of(candidate) not in claimed


def current(hosts: Iterable[HostState]) -> list[HostState]:
    """Return the hosts of a request, each once, as its last claim left them."""
    return [host for host in hosts if not (isinstance(host, Attempt) and host.over)]


def attempts(
    hosts: Sequence[HostState], spec_obj: objects.RequestSpec
) -> list[HostState]:
    """Return what Nova shall try to claim for a VM that takes a whole child.

    :param hosts: those that may take the VM, each once
    """
    if has_its_host(hosts, spec_obj):
        return list(hosts)
    every: list[Attempt] = []
    by_host = []
    for host in hosts:
        children = by_child(host.allocation_candidates, _turn(spec_obj))
        if len(hosts) > MANY_HOSTS:
            children = [[c for candidates in children for c in candidates]]
        # A host that the request has claimed stays the same object, by which Nova
        # keeps it from being an alternate.
        first = host if isinstance(host, Attempt) else Attempt(host)
        here = [first, *(Attempt(first) for _ in children[1:])]
        for attempt, candidates in zip(here, children, strict=False):
            attempt.allocation_candidates = candidates
        every += here
        by_host.append([weakref.ref(attempt) for attempt in here])
    for attempt in every:
        attempt.by_host = by_host
    return list(every)


def has_its_host(hosts: Iterable[HostState], spec_obj: objects.RequestSpec) -> bool:
    """Return whether the VM has its host, and others are looked for.

    Nova asks once more after the last server of a request, for alternates.
    """
    return any(
        isinstance(host, Attempt) and host.claimed_for == spec_obj.instance_uuid
        for host in hosts
    )


def check(host: HostState) -> None:
    """Raise whatever Nova raises where a host lacks what its attempts are made of."""
    dict(host.limits)
    by_child(host.allocation_candidates, 0)


def by_child(candidates: Iterable[Candidate], start: int) -> list[list[Candidate]]:
    """Divide candidates by the children that they take, beginning at ``start``.

    The same candidates with ``start + 1`` begin with the next child.  Those of
    one child stay in Placement's order: they differ in what is not ours, such as
    PCI devices or bandwidth.

    :param candidates: Placement's allocation requests, as HostState has them
    """
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(child_of(candidate), []).append(candidate)
    ordered = [groups[child] for child in sorted(groups)]
    first = start % len(ordered) if ordered else 0
    return ordered[first:] + ordered[:first]


def child_of(candidate: Candidate) -> tuple[str, ...]:
    """Return the UUIDs of the providers that a candidate takes units of."""
    return tuple(
        sorted(
            provider
            for provider, taken in candidate["allocations"].items()
            if const.RC_UNIT in taken["resources"]
        )
    )


def _turn(spec_obj: objects.RequestSpec) -> int:
    """Return a number that tells a request from those made at the same time.

    That of its record: creates at the same time have neighbouring numbers, and
    so seldom meet on a child.  Where they do, as moves may, which keep the
    number of the server's creation, the next attempt finds another child.
    """
    return spec_obj.id if "id" in spec_obj else 0

# SPDX-License-Identifier: Apache-2.0
"""Let Nova try each free child provider of an elastic host.

Placement returns an allocation candidate for each free child provider of a host.  Nova
(nova/scheduler/manager.py, ``_schedule``) tries to claim only the first candidate of
each HostState, one HostState after the other.  If another request has just claimed the
same child, Nova gives up the host, though other children are free.  So this module
makes a HostState for each free child: a request fails only if every child is taken.

Placement alone decides whether a claim succeeds.
"""

from __future__ import annotations

import copy
import datetime as dt
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nova import objects, utils
from nova.scheduler.host_manager import HostState

from nova_perfvm import constants as const

# An allocation request of Placement, as in HostState.allocation_candidates.
Candidate = dict[str, Any]
# With more hosts than this, a failed claim has enough other hosts, and an attempt for
# each child would multiply the work of the filters that follow.
MANY_HOSTS = 16


class Attempt(HostState):
    """A copy of a HostState with some of the host's candidates, for Nova to claim.

    :ivar by_host: the request's attempts, a list for each host.  Weak references, as
        Nova keeps the attempts in use, and a cycle of strong references would leave
        hosts' data to the garbage collector
    :ivar origin: the HostState that nova-scheduler keeps between requests
    :ivar over: whether another attempt now represents the host, so that filters skip
        this one
    :ivar claimed_for: UUID of the server for which the request's last claim succeeded,
        on whichever host
    """

    def __init__(self, host_state: HostState) -> None:
        # No super().__init__(), which would reset the state.  ``limits`` is copied, as
        # the filters that follow write into it.
        vars(self).update(vars(host_state))
        self.limits = dict(host_state.limits)
        self.origin: HostState = vars(host_state).get("origin", host_state)
        self.by_host: Sequence[Sequence[weakref.ref[Attempt]]] = ()
        self.over = False
        self.claimed_for: str | None = None

    @property
    def updated(self) -> dt.datetime | None:
        """When nova-compute reported the host, or the last claim; None to read anew.

        ``_ensure_sufficient_hosts`` of nova/scheduler/manager.py sets None when a
        request fails after claims, which the kept HostState then forgets, too.
        """
        found: dt.datetime | None = vars(self)["updated"]
        return found

    @updated.setter
    def updated(self, value: dt.datetime | None) -> None:
        vars(self)["updated"] = value
        if value is None:
            self.origin.updated = None

    def consume_from_request(self, spec_obj: objects.RequestSpec) -> None:
        """Update the request's attempts after a successful claim on this one.

        Called by ``_consume_selected_host`` of nova/scheduler/manager.py.

        Afterwards one attempt represents each host, with all candidates except those
        of the claimed child.  From these attempts Nova selects hosts for the request's
        next server, and alternates.
        """
        self._consume_origin(spec_obj)
        super().consume_from_request(spec_obj)
        kept = self.kept()
        for here in self.by_host:
            attempts = [a for ref in here if (a := ref()) is not None]
            if not attempts:
                # A later filter has refused the host, so Nova has dropped its attempts.
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

    def _consume_origin(self, spec_obj: objects.RequestSpec) -> None:
        """Consume the request on the kept HostState, too.

        Until nova-compute reports the VM, the next requests see it there alone.
        """
        origin = self.origin
        # Consuming writes the fitted NUMA topology into the request.
        asked = spec_obj.obj_clone() if spec_obj.numa_topology else spec_obj
        lock = vars(origin)["_lock_name"]

        @utils.synchronized(lock)
        def consume() -> None:
            before = vars(origin) | {
                # The claim's limits, so that Nova takes the same NUMA nodes.
                "limits": self.limits,
                "_lock_name": f"{lock}, a copy",
            }
            state = copy.copy(origin)
            vars(state).update(before)
            # Consuming writes into the pools, which this attempt shares.
            state.pci_stats = copy.deepcopy(origin.pci_stats)
            state.consume_from_request(asked)
            after = vars(state)
            changed = {key: v for key, v in after.items() if v is not before[key]}
            vars(origin).update(changed)

        consume()

    def kept(self) -> Callable[[Candidate], bool]:
        """Return a predicate: whether a candidate is still free after this claim."""
        claimed = {child_of(c) for c in self.allocation_candidates[:1]}
        return lambda candidate: child_of(candidate) not in claimed


def current(hosts: Iterable[HostState]) -> list[HostState]:
    """Return the hosts without attempts that are ``over``: each host once."""
    return [host for host in hosts if not (isinstance(host, Attempt) and host.over)]


def attempts(
    hosts: Sequence[HostState], spec_obj: objects.RequestSpec
) -> list[HostState]:
    """Return an attempt for each free child of the hosts, for a VM that takes a child.

    With more than ``MANY_HOSTS`` hosts, return one attempt for each host.  Return the
    hosts themselves if the VM already has its host.

    :param hosts: hosts that passed the filter, each once
    """
    if has_its_host(hosts, spec_obj):
        return list(hosts)
    every: list[Attempt] = []
    by_host = []
    for host in hosts:
        children = by_child(host.allocation_candidates, _turn(spec_obj))
        if len(hosts) > MANY_HOSTS:
            children = [[c for candidates in children for c in candidates]]
        # An attempt of an earlier claim stays the same object: Nova compares objects to
        # exclude the claimed host from the alternates.
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
    """Return whether a claim for the VM has succeeded, so Nova now seeks alternates.

    After the last of several servers, Nova runs the filters once more for alternates.
    """
    return any(
        isinstance(host, Attempt) and host.claimed_for == spec_obj.instance_uuid
        for host in hosts
    )


def check(host: HostState) -> None:
    """Raise Nova's error if a host lacks ``limits`` or readable candidates."""
    dict(host.limits)
    by_child(host.allocation_candidates, 0)


def by_child(candidates: Iterable[Candidate], start: int) -> list[list[Candidate]]:
    """Group candidates by child provider, and rotate the groups by ``start``.

    Candidates of one child keep Placement's order: they differ in other resources, such
    as PCI devices or bandwidth.

    :param candidates: Placement's allocation requests, as HostState has them
    :param start: number of the child that comes first, modulo the number of children
    """
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(child_of(candidate), []).append(candidate)
    ordered = [groups[child] for child in sorted(groups)]
    first = start % len(ordered) if ordered else 0
    return ordered[first:] + ordered[:first]


def child_of(candidate: Candidate) -> tuple[str, ...]:
    """Return the sorted UUIDs of the providers whose units a candidate takes."""
    return tuple(
        sorted(
            provider
            for provider, taken in candidate["allocations"].items()
            if const.RC_UNIT in taken["resources"]
        )
    )


def _turn(spec_obj: objects.RequestSpec) -> int:
    """Return the ID of the request's record, to spread requests over the children.

    Servers created at the same time have consecutive IDs, so their requests begin with
    different children.  A move keeps the ID of the server's creation, so two requests
    may begin with the same child; the loser's next attempt tries another child.
    """
    return spec_obj.id if "id" in spec_obj else 0

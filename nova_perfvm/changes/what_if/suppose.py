# SPDX-License-Identifier: Apache-2.0
"""A cloud after some changes: another policy, hosts flipped, added and removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.changes.migrations.goals import drain
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.changes.steps import with_changes
from nova_perfvm.changes.what_if.new_hosts import NewHosts, with_new_hosts
from nova_perfvm.diagnose.explain import SchedulerSettings
from nova_perfvm.diagnose.hosts import expected_slots, slot_class
from nova_perfvm.diagnose.policy_diff import compare_servers
from nova_perfvm.exceptions import PerfVMError, unknown_host
from nova_perfvm.facts.host_view import HostView, view_of, views_of
from nova_perfvm.facts.snapshot import (
    Provider,
    Server,
    Snapshot,
)
from nova_perfvm.placement.schemes import scheme_counting, scheme_of
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

# Enrolling is planned anew after some steps; a handful of plans end it.
_ROUNDS: Final = 40


class SupposeError(PerfVMError):
    """Changes that cannot be made, each with its reason."""


@dataclass(frozen=True)
class Supposed:
    """What is to be changed.

    :ivar policy: the new one; None for that in use
    :ivar flips: hosts to make elastic
    :ivar adds: hosts to add
    :ivar memory_gb: of each host that is added; None for as much as others have
    :ivar removes: hosts to remove
    """

    policy: Policy | None = None
    flips: tuple[str, ...] = ()
    adds: tuple[NewHosts, ...] = ()
    memory_gb: int | None = None
    removes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Supposition:
    """A cloud as it would be.

    :ivar policy: that which it would have
    :ivar added: names of the hosts that were added
    :ivar moves: where servers of removed hosts go
    :ivar homeless: servers that were on hosts removed, and fit no other
    :ivar left_behind: servers that the new policy would not have as they are
    :ivar notes: what an operator should know
    """

    policy: Policy
    snapshot: Snapshot
    added: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    homeless: tuple[Server, ...] = ()
    left_behind: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


def suppose(
    policy: Policy,
    snapshot: Snapshot,
    changes: Supposed,
    settings: SchedulerSettings,
) -> Supposition:
    """Return a cloud after changes: policy, hosts flipped, then added, then removed.

    :param policy: that in use
    :param settings: those of nova-scheduler afterwards
    :raises SupposeError: when some cannot be made, with all of these
    :raises NewHostsError: when nothing tells the memory of added hosts
    :raises HostConfigError: when the policy has no hosts as those to add
    """
    _check(snapshot, changes)
    new = changes.policy or policy
    found = Supposition(new, snapshot)
    if new.digest != policy.digest:
        found = _with_policy(policy, found)
    found = _flipped(found, changes.flips)
    for hosts in changes.adds:
        found = _added(found, hosts, changes.memory_gb)
    return _removed(found, changes.removes, settings)


def _check(snapshot: Snapshot, changes: Supposed) -> None:
    known = {host.host for host in snapshot.hosts}
    counts = Counter((*changes.flips, *changes.removes))
    problems = [unknown_host(name, known) for name in counts if name not in known]
    problems += [f"host {name} is named twice" for name, n in counts.items() if n > 1]
    if problems:
        raise SupposeError("; ".join(problems))


# The policy


def _with_policy(old: Policy, found: Supposition) -> Supposition:
    """Let hosts offer what the new policy says, and look which servers it leaves."""
    new, snapshot = found.policy, found.snapshot
    notes = list(found.notes)
    differences = compare_servers(old, new, snapshot)
    left = dict.fromkeys(d.name for d in differences if d.kind == "server")
    notes += [
        f"host {d.name}: {d.what}: {d.new}" for d in differences if d.kind == "host"
    ]
    scheme = scheme_of(new)
    if scheme.offers_slots:
        snapshot, changed = _with_slots(new, snapshot)
        if changed:
            notes.append(
                f"another number of slots on {number_of(len(changed), 'host')} when "
                f"provider.yaml is made anew (host config): {', '.join(changed)}"
            )
    if scheme.enrolls and scheme_of(old).enrolls:
        snapshot, more = _enrolled_anew(new, snapshot)
        notes += more
    elif scheme.enrolls:
        notes.append("hosts have slots for VMs with units when they are flipped")
    return replace(
        found,
        snapshot=snapshot,
        left_behind=tuple(left),
        notes=tuple(notes),
    )


def _with_slots(policy: Policy, snapshot: Snapshot) -> tuple[Snapshot, list[str]]:
    """Return a cloud whose hosts offer the slots that a policy gives them."""
    providers = dict(snapshot.provider_by_uuid)
    changed = []
    for view in views_of(snapshot):
        if not view.tree:
            continue
        made = _offering(policy, view)
        if made != view.root:
            providers[made.uuid] = made
            changed.append(view.host)
    found = tuple(providers[p.uuid] for p in snapshot.providers)
    return replace(snapshot, providers=found), changed


def _offering(policy: Policy, view: HostView) -> Provider:
    """Return a host's provider with the slots that provider.yaml should promise."""
    root, count = view.root, expected_slots(policy, view)
    if count is None:
        return root
    mine = slot_class(policy, view.facts.labels)
    scheme = scheme_of(policy)
    offer = scheme.offers(policy, mine, root.mode, count)
    inventories = {
        name: found
        for name, found in root.inventories.items()
        if scheme_counting([name]) is None
    } | dict(offer.inventories)
    ours = {scheme.trait(policy, c) for c in policy.pinned_classes}
    traits = root.traits - ours | offer.traits
    if inventories == root.inventories and traits == root.traits:
        return root
    return replace(root, inventories=inventories, traits=traits)


def _enrolled_anew(
    policy: Policy, snapshot: Snapshot
) -> tuple[Snapshot, Iterable[str]]:
    """Enroll the elastic hosts for a policy's number of children."""
    notes = []
    trait = scheme_of(policy).enrolled_trait(policy)
    for view in views_of(snapshot):
        if not view.enrolled or view.root.elastic_traits == {trait}:
            continue
        try:
            snapshot = _enroll(policy, snapshot, view.host)
        except SupposeError as exc:
            notes.append(f"stays as it is enrolled: {exc}")
        else:
            notes.append(f"{view.host} is enrolled anew, with {trait}")
    return snapshot, notes


# Hosts


def _flipped(found: Supposition, names: Iterable[str]) -> Supposition:
    snapshot = found.snapshot
    problems, notes = [], list(found.notes)
    for name in names:
        try:
            snapshot = _enroll(found.policy, snapshot, name)
        except SupposeError as exc:
            problems.append(str(exc))
            continue
        if view_of(snapshot, name).root.mode == "dedicated":
            notes.append(
                f"{name} has cpu_dedicated_set, and so no CPU for general VMs: "
                "nova-perfvm host config --mode elastic says what to change"
            )
    if problems:
        raise SupposeError("\n".join(problems))
    return replace(found, snapshot=snapshot, notes=tuple(notes))


def _enroll(policy: Policy, snapshot: Snapshot, name: str) -> Snapshot:
    """Return a cloud when a host is enrolled, its servers with units.

    :raises SupposeError: when something is in the way
    """
    for _ in range(_ROUNDS):
        view = view_of(snapshot, name)
        if not view.tree:
            raise SupposeError(f"{name}: Placement has no provider of it")
        plan = plan_enroll(policy, view, backfill=True)
        if plan.refusals:
            raise SupposeError("\n".join(f"{name}: {why}" for why in plan.refusals))
        if not plan.changes:
            return snapshot
        snapshot = with_changes(snapshot, plan.changes)
    raise SupposeError(f"{name}: enrolling it does not come to an end")


def _added(found: Supposition, new: NewHosts, memory_gb: int | None) -> Supposition:
    snapshot, names = with_new_hosts(found.policy, found.snapshot, new, memory_gb)
    if scheme_of(found.policy).enrolls:
        for name in names:
            snapshot = _enroll(found.policy, snapshot, name)
    return replace(found, snapshot=snapshot, added=found.added + names)


def _removed(
    found: Supposition, names: tuple[str, ...], settings: SchedulerSettings
) -> Supposition:
    """Move servers off hosts, then remove these with the servers that remain."""
    snapshot, moves = found.snapshot, list(found.moves)
    notes = list(found.notes)
    for name in names:
        wishes = PlanOptions(excluded=frozenset(names) - {name})
        plan = drain(Planning(found.policy, snapshot, settings, wishes), name)
        snapshot = plan.after
        moves += plan.moves
        notes += [f"{name}: {why}" for why in plan.reasons]
    homeless = tuple(s for s in snapshot.servers if s.host in names)
    return replace(
        found,
        snapshot=_without(snapshot, frozenset(names)),
        moves=tuple(moves),
        homeless=homeless,
        notes=tuple(notes),
    )


def _without(snapshot: Snapshot, names: frozenset[str]) -> Snapshot:
    gone = {host.provider for host in snapshot.hosts if host.host in names}
    return replace(
        snapshot,
        hosts=tuple(h for h in snapshot.hosts if h.host not in names),
        providers=tuple(
            p for p in snapshot.providers if (p.root or p.uuid) not in gone
        ),
        servers=tuple(s for s in snapshot.servers if s.host not in names),
        aggregates=tuple(
            replace(a, hosts=a.hosts - names) for a in snapshot.aggregates
        ),
    )


def in_words(found: Supposition) -> Iterator[str]:
    """Return what would happen to servers, one sentence each."""
    for move in found.moves:
        yield f"{move.name} ({move.server}) goes from {move.source} to {move.target}"
    for server in found.homeless:
        yield f"{server} on {server.host} fits no other host"
    if found.left_behind:
        yield (
            f"{number_of(len(found.left_behind), 'server')} left behind, as the new "
            "policy would not have them (policy diff says why): "
            f"{', '.join(found.left_behind)}"
        )
    yield from found.notes

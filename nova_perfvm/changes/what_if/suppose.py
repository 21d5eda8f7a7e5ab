# SPDX-License-Identifier: Apache-2.0
"""Simulate a cloud after another policy, and hosts made elastic, added and removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.changes.migrations import density
from nova_perfvm.changes.migrations.estimates import Estimates
from nova_perfvm.changes.migrations.goals import drain
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.changes.steps import with_changes
from nova_perfvm.changes.what_if.new_hosts import NewHosts, with_new_hosts
from nova_perfvm.diagnose.hosts import expected_slots, slot_class
from nova_perfvm.diagnose.policy_diff import compare_servers
from nova_perfvm.diagnose.verdicts import SchedulerSettings
from nova_perfvm.exceptions import PerfVMError, unknown_host
from nova_perfvm.facts.host_view import HostView, view_of, views_of
from nova_perfvm.facts.snapshot import Provider, Snapshot
from nova_perfvm.placement.host_schemes import host_scheme_of, scheme_counting
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

# Rounds of planning; enrolling needs a handful.
_ROUNDS: Final = 40


class SupposeError(PerfVMError):
    """A supposed change that is not possible, with the reason."""


@dataclass(frozen=True)
class Supposed:
    """The supposed changes.

    :ivar policy: the new policy; None for the present one
    :ivar flips: names of hosts to make elastic
    :ivar adds: hosts to add
    :ivar memory_gb: memory of each added host in GiB
    :ivar removes: names of hosts to remove
    :ivar max_ratio: the most vCPUs for each CPU of hosts that general servers come to;
        None for Placement's allocation ratio
    :ivar time_limit_s: see :class:`.planning.PlanOptions`, for each removed host
    """

    policy: Policy | None = None
    flips: Sequence[str] = ()
    adds: Sequence[NewHosts] = ()
    memory_gb: int = 0
    removes: Sequence[str] = ()
    max_ratio: float | None = None
    time_limit_s: float = PlanOptions.time_limit_s


@dataclass
class Supposition:
    """A cloud after the supposed changes.

    :ivar policy: the policy that the cloud would have
    :ivar moves: the migrations of servers from removed hosts
    :ivar staying: reasons why servers could not leave removed hosts
    :ivar left_behind: servers that violate the new policy
    :ivar notes: further remarks for an operator
    """

    policy: Policy
    snapshot: Snapshot
    moves: list[Move] = field(default_factory=list)
    staying: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def in_words(self, estimates: Estimates) -> Iterator[str]:
        """Yield the effects on servers and the further remarks, one sentence each."""
        for move in self.moves:
            where = f"from {move.source} to {move.target}"
            if found := estimates.of(move):
                minutes = "endless" if found.minutes is None else found.minutes
                where += f" in {minutes} minutes"
                where += f" (converges: {found})"
            yield f"{move.name} ({move.server}) goes {where}"
        yield from estimates.assumptions(self.moves)
        yield from self.staying
        if self.left_behind:
            yield (
                f"{number_of(len(self.left_behind), 'server')} left behind, as they "
                "violate the new policy (policy diff says why): "
                f"{', '.join(self.left_behind)}"
            )
        yield from self.notes


def suppose(
    policy: Policy,
    snapshot: Snapshot,
    changes: Supposed,
    settings: SchedulerSettings,
) -> Supposition:
    """Return the cloud after changes: policy, hosts made elastic, added, removed.

    :param policy: the present policy
    :param settings: of nova-scheduler after the changes
    :raises SupposeError: when a change is not possible
    :raises NewHostsError: when the policy or Linux does not allow the hosts to add
    """
    known = {host.host for host in snapshot.hosts}
    for name in (*changes.flips, *changes.removes):
        if name not in known:
            raise SupposeError(unknown_host(name, known, snapshot.unseen_hosts))
    found = Supposition(changes.policy or policy, snapshot)
    if found.policy.digest != policy.digest:
        _change_policy(policy, found)
    for name in changes.flips:
        found.snapshot = _enrolled(found.policy, found.snapshot, name)
    for hosts in changes.adds:
        _add(found, hosts, changes.memory_gb)
    _remove(found, changes, settings)
    found.notes += density.of_all(views_of(found.snapshot))
    return found


# The policy


def _change_policy(old: Policy, found: Supposition) -> None:
    """Apply the new policy to hosts' offers, and note the servers that violate it."""
    new = found.policy
    for difference in compare_servers(old, new, found.snapshot):
        if difference.kind == "host":
            name, what = difference.name, difference.what
            found.notes.append(f"host {name}: {what}: {difference.new}")
        elif difference.name not in found.left_behind:
            found.left_behind.append(difference.name)
    scheme = scheme_of(new)
    if scheme.offers_slots:
        _offer_slots(found)
    if scheme.enrolls and scheme_of(old).enrolls:
        _enroll_anew(found)
    elif scheme.enrolls:
        found.notes.append("hosts get slots for VMs with units when they are flipped")


def _offer_slots(found: Supposition) -> None:
    """Set the slots of each host's provider to those that the policy gives it."""
    providers = dict(found.snapshot.provider_by_uuid)
    changed = []
    for view in views_of(found.snapshot):
        made = _offering(found.policy, view) if view.tree else None
        if made is not None and made != view.root:
            providers[made.uuid] = made
            changed.append(view.host)
    found.snapshot = replace(found.snapshot, providers=tuple(providers.values()))
    if changed:
        found.notes.append(
            f"another number of slots on {number_of(len(changed), 'host')} when "
            f"provider.yaml is made anew (host config): {', '.join(changed)}"
        )


def _offering(policy: Policy, view: HostView) -> Provider:
    """Return a host's provider with the slots of provider.yaml, if they are known."""
    root, count = view.root, expected_slots(policy, view)
    if count is None:
        return root
    scheme = scheme_of(policy)
    mine = slot_class(policy, view.facts.labels)
    offer = host_scheme_of(policy).offers(policy, mine, root.mode, count)
    others = {n: i for n, i in root.inventories.items() if scheme_counting([n]) is None}
    ours = {scheme.trait(policy, c) for c in policy.pinned_classes}
    return replace(
        root,
        inventories=others | dict(offer.inventories),
        traits=root.traits - ours | offer.traits,
    )


def _enroll_anew(found: Supposition) -> None:
    """Enroll hosts again that have another trait than the policy's; note each host."""
    trait = scheme_of(found.policy).enrolled_trait(found.policy)
    for view in views_of(found.snapshot):
        if not view.enrolled or view.root.elastic_traits == {trait}:
            continue
        try:
            found.snapshot = _enrolled(found.policy, found.snapshot, view.host)
        except SupposeError as exc:
            found.notes.append(f"stays as it is enrolled: {exc}")
        else:
            found.notes.append(f"{view.host} is enrolled anew, with {trait}")


# Hosts


def _enrolled(policy: Policy, snapshot: Snapshot, name: str) -> Snapshot:
    """Return the snapshot after a host is enrolled and its servers have units.

    :raises SupposeError: when the host cannot be enrolled
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


def _add(found: Supposition, new: NewHosts, memory_gb: int) -> None:
    policy = found.policy
    seen, names, lacking = with_new_hosts(policy, found.snapshot, new, memory_gb)
    found.snapshot = seen
    found.notes += [f"added {new.shape}: {why}" for why in lacking]
    for name in names if scheme_of(policy).enrolls else ():
        found.snapshot = _enrolled(policy, found.snapshot, name)


def _remove(found: Supposition, changes: Supposed, settings: SchedulerSettings) -> None:
    """Move servers off hosts, then remove the hosts with the servers that stay."""
    names, most = changes.removes, changes.max_ratio
    for name in names:
        wishes = PlanOptions(
            excluded=frozenset(names) - {name},
            max_ratio=most,
            time_limit_s=changes.time_limit_s,
        )
        plan = drain(Planning(found.policy, found.snapshot, settings, wishes), name)
        found.snapshot = plan.after
        found.moves += plan.moves
        found.staying += [f"{name}: {why}" for why in plan.reasons]
    seen = found.snapshot
    targets = {move.target for move in found.moves}
    views = views_of(seen, targets)
    found.notes += density.of_fullest(views)
    found.notes += density.limit(views, found.moves, most)
    gone = {host.provider for host in seen.hosts if host.host in names}
    found.snapshot = replace(
        seen,
        hosts=tuple(h for h in seen.hosts if h.host not in names),
        providers=tuple(p for p in seen.providers if (p.root or p.uuid) not in gone),
        servers=tuple(s for s in seen.servers if s.host not in names),
        aggregates=tuple(
            replace(a, hosts=a.hosts.difference(names)) for a in seen.aggregates
        ),
    )

# SPDX-License-Identifier: Apache-2.0
"""Plan to let servers hold in Placement the child providers that Nova runs them on.

All of a host at once: two that hold each other's NUMA node can only change places.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter

from nova_perfvm.changes import steps as do
from nova_perfvm.diagnose.drift import Drift, away, drifted
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Provider
from nova_perfvm.placement import commands
from nova_perfvm.placement.schemes import enrolled_by_another, scheme_of
from nova_perfvm.placement.schemes.residents import Holding
from nova_perfvm.policy import Policy

# Returns those of some servers, by ID, that have a migration that is not over.
Migrating = Callable[[Sequence[str]], Collection[str]]


def plan_align(policy: Policy, view: HostView, migrating: Migrating) -> do.Plan:
    """Return the step after which servers of a host hold no other children than theirs.

    Servers that cannot be aligned now are left, and those that these are in the way of.
    """
    scheme = scheme_of(policy)
    enroll = commands.enroll(scheme, view.host)
    if not scheme.enrolls or not view.enrolled or enrolled_by_another(policy, view):
        refusal = (
            f"{view.host} is not enrolled by this policy (placement: {scheme.name}): "
            f"{enroll}"
        )
        return do.Plan(refusals=(refusal,))
    found = list(drifted(policy, view))
    moving = migrating([d.server.id for d in found if not d.server.busy])
    uuids = {child.name: child.uuid for child in view.children}
    left = []
    for drift in tuple(found):
        server = drift.server
        if missing := drift.run.keys() - uuids.keys():
            why = f"{view.host} does not have {', '.join(sorted(missing))}: {enroll}"
        elif server.busy or server.id in moving:
            why = (
                f"it is in Nova's hands ({server.task or server.status}): run this "
                "again when that is over, or confirmed or reverted"
            )
        else:
            continue
        found.remove(drift)
        left.append(do.Left("server", str(server), why))
    for resident in away(policy, view):
        why = "where it would come back to shows only then: confirm or revert it, and "
        name = view.describe(resident.consumer)
        left.append(do.Left("consumer", name, f"{why}run this again"))
    # Who is left keeps what it holds, and so others may have no room.
    without_room = []
    while full := _too_full(view, found):
        without_room.append(full)
        found.remove(full[0])
    for drift, why in without_room:
        if _too_full(view, [*found, drift]):
            left.append(do.Left("server", str(drift.server), why))
        else:
            # Those for which it had none are left themselves.
            found.append(drift)
    if not found:
        return do.Plan(left=tuple(left))
    held: dict[str, Mapping[str, Mapping[str, int]]] = {
        drift.server.id: {uuids[n]: dict(taken) for n, taken in drift.run.items()}
        for drift in found
    }
    names = {drift.server.id: str(drift.server) for drift in found}
    return do.Plan((do.Realign(view.host, names, held),), left=tuple(left))


def _too_full(view: HostView, found: Sequence[Drift]) -> tuple[Drift, str] | None:
    """Return one that a child has no room for, if all of these changed, and why.

    The smallest of those without which there is room, else the largest.
    """
    for child in view.children:
        rest = child.without({drift.server.id for drift in found})
        for name, inventory in child.inventories.items():
            wanted = [
                (drift, amount)
                for drift in found
                if (amount := _amount(drift.run, child, name))
            ]
            after = rest.used(name) + sum(amount for _, amount in wanted)
            excess = after - inventory.capacity
            if not wanted or excess <= 0:
                continue
            more = [
                (amount - _amount(drift.held, child, name), drift)
                for drift, amount in wanted
            ]
            enough = [one for one in more if one[0] >= excess]
            best = min if enough else max
            _, drift = best(enough or more, key=itemgetter(0))
            others = {*rest.allocations, *(one.server.id for one, _ in wanted)}
            holders = map(view.describe, sorted(others - {drift.server.id}))
            return drift, (
                f"{child.name} has {inventory.capacity} {name}, and {after} would be "
                f"held, with what {', '.join(holders) or 'nobody else'} holds: "
                "wait for what Nova does with these, or move one away"
            )
    return None


def _amount(holding: Holding, child: Provider, name: str) -> int:
    return holding.get(child.name, {}).get(name, 0)

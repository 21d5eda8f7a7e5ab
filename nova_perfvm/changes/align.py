# SPDX-License-Identifier: Apache-2.0
"""Plan to align servers' allocations with the child providers that Nova runs them on.

All servers of a host are changed in one request: two servers that hold each other's
NUMA node can only change places at once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter

from nova_perfvm.changes import steps as do
from nova_perfvm.diagnose.drift import Drift, away, drifted
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Provider
from nova_perfvm.placement import commands
from nova_perfvm.placement.host_schemes import enrolled_by_another
from nova_perfvm.placement.host_schemes.residents import Holding
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy

# Given IDs of servers, returns the IDs of those with an unfinished migration.
Migrating = Callable[[Sequence[str]], Collection[str]]


def plan_align(policy: Policy, view: HostView, migrating: Migrating) -> do.Plan:
    """Return the step after which servers hold the children of the nodes they run on.

    Servers that cannot be aligned now keep their children.  The plan's ``left`` lists
    them, and the servers that need these children.

    :param migrating: returns the IDs of servers with an unfinished migration
    """
    scheme = scheme_of(policy)
    enroll = commands.enroll(policy, view.host)
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
                "again when Nova has finished, or after confirm or revert"
            )
        else:
            continue
        found.remove(drift)
        left.append(do.Left("server", str(server), why))
    for resident in away(policy, view):
        why = "the node that it may return to is not known: confirm or revert it, and "
        name = view.describe(resident.consumer)
        left.append(do.Left("consumer", name, f"{why}run this again"))
    # Servers that stay unaligned keep their allocation, so other servers may lack room.
    without_room = []
    while full := _too_full(view, found):
        without_room.append(full)
        found.remove(full[0])
    for drift, why in without_room:
        if _too_full(view, [*found, drift]):
            left.append(do.Left("server", str(drift.server), why))
        else:
            # Servers in its way joined `without_room` after it: now there is room.
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
    """Return a server that overfills a child if all of `found` changed, and the reason.

    Of the servers on the first child that is too full: the smallest one without which
    the others fit, else the largest; None if no child is too full.
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
                f"held, by this server and {', '.join(holders) or 'nobody else'}: "
                "wait until Nova has finished with these, or move one away"
            )
    return None


def _amount(holding: Holding, child: Provider, name: str) -> int:
    """Return how much of a resource class a holding has on a child."""
    return holding.get(child.name, {}).get(name, 0)

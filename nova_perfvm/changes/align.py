# SPDX-License-Identifier: Apache-2.0
"""Plan to let servers hold in Placement the child providers that Nova runs them on.

All of a host at once: two that hold each other's NUMA node can only change places.
"""

from collections.abc import Collection, Mapping

from nova_perfvm.changes import steps as do
from nova_perfvm.diagnose.drift import Drift, drifted
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.placement import commands
from nova_perfvm.placement.schemes import enrolled_by_another, scheme_of
from nova_perfvm.policy import Policy


def plan_align(
    policy: Policy, view: HostView, migrating: Collection[str] = ()
) -> do.Plan:
    """Return the step after which no server of a host holds another's children.

    :param migrating: servers with a migration that is not over
    """
    scheme = scheme_of(policy)
    if not scheme.enrolls or not view.enrolled or enrolled_by_another(policy, view):
        refusal = (
            f"{view.host} is not enrolled by this policy (placement: {scheme.name}): "
            + commands.enroll(scheme, view.host)
        )
        return do.Plan(refusals=(refusal,))
    found = tuple(drifted(policy, view))
    if not found:
        return do.Plan()
    refusals = [
        f"{view.host}: {drift.server} is in Nova's hands "
        f"({drift.server.task or drift.server.status}): run this again when that is "
        "over, or confirmed or reverted"
        for drift in found
        if drift.server.busy or drift.server.id in migrating
    ]
    refusals = refusals or list(_too_full(view, found))
    if refusals:
        return do.Plan(refusals=tuple(refusals))
    uuids = {child.name: child.uuid for child in view.children}
    held: dict[str, Mapping[str, Mapping[str, int]]] = {
        drift.server.id: {uuids[n]: dict(taken) for n, taken in drift.run.items()}
        for drift in found
    }
    names = {drift.server.id: str(drift.server) for drift in found}
    return do.Plan((do.Realign(view.host, names, held),))


def _too_full(view: HostView, found: tuple[Drift, ...]) -> list[str]:
    """Return which children would be given more than they have, and who holds them."""
    moved = {drift.server.id for drift in found}
    refusals = []
    for child in view.children:
        rest = child.without(moved)
        for name, inventory in child.inventories.items():
            wanted = sum(d.run.get(child.name, {}).get(name, 0) for d in found)
            after = wanted + rest.used(name)
            if wanted and after > inventory.capacity:
                holders = ", ".join(map(view.describe, sorted(rest.allocations)))
                refusals.append(
                    f"{child.name} has {inventory.capacity} {name}, and {after} would "
                    f"be held, with what {holders or 'nobody else'} holds: wait for "
                    "what Nova does with these, or move one away"
                )
    return refusals

# SPDX-License-Identifier: Apache-2.0
"""Take the whole cloud out of the scheme, with its VMs running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import DeleteChild
from nova_perfvm.changes.unenroll import kept_aggregates, plan_forget, plan_unenroll
from nova_perfvm.cloud import answers, converge, live_hosts
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.errors import CloudError, RefusedError
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose.views import elastic_hosts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nova_perfvm.changes.steps import Change
    from nova_perfvm.cloud.api import API
    from nova_perfvm.cloud.converge import Tell
    from nova_perfvm.facts.snapshot import Snapshot


@dataclass(frozen=True)
class RollbackPlan:
    """What a rollback would do, and what it cannot.

    :ivar hosts: names of the hosts, in order
    :ivar changes: on all of them, and then on what they had in common
    :ivar refusals: what is in the way
    :ivar warnings: flavors and servers that still ask for units, and the consequences
    :ivar kept: aggregates that stay, and why
    """

    hosts: tuple[str, ...]
    changes: tuple[Change, ...]
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]
    kept: tuple[str, ...]


def plan_rollback(
    api: API, *, strip: bool = False, delete_children: bool = False
) -> RollbackPlan:
    """Look at every host that is enrolled, if only in part.

    :param strip: take the units out of the allocations of running VMs
    :param delete_children: delete the providers that earlier runs have detached
    """
    seen = read_snapshot(api)
    views = elastic_hosts(seen)
    plans = [plan_unenroll(view, strip=strip) for view in views]
    changes = [change for plan in plans for change in plan.changes]
    warnings = _warnings(seen)
    refusals = tuple(refusal for plan in plans for refusal in plan.refusals)
    if seen.unseen_hosts:
        refusals += seen.gaps
    if refusals:
        # Nothing is done then, so what an earlier run has left remains as well.
        refusals += tuple(remains for view in views for remains in view.remains)
    common = _common(
        api, asked=bool(warnings), delete_children=delete_children, emptied=True
    )
    changes += [change for change in common if change not in changes]
    return RollbackPlan(
        hosts=tuple(view.host for view in views),
        changes=tuple(changes),
        refusals=refusals,
        warnings=warnings,
        kept=tuple(kept_aggregates(seen.aggregates)),
    )


def rollback(
    api: API,
    *,
    strip: bool = False,
    delete_children: bool = False,
    tell: Tell = converge.silent,
) -> tuple[int, list[str]]:
    """Unenroll every host, then remove what they had in common.

    :returns: the number of changes made, and why what remained did
    :raises RefusedError: before anything is changed, while VMs carry units and
        are not to be stripped of them
    :raises CloudError: when a request failed; running again goes on from there
    """
    plan = plan_rollback(api, strip=strip, delete_children=delete_children)
    if plan.refusals:
        raise RefusedError(plan.refusals)
    among = live_hosts.hypervisors(api)
    made = sum(
        converge.unenroll(api, host, strip=strip, tell=tell, among=among)
        for host in plan.hosts
    )
    remained = []
    common = _common(api, asked=bool(plan.warnings), delete_children=delete_children)
    for change in common:
        if isinstance(change, DeleteChild) and change not in plan.changes:
            # nova-compute may know those that this run has detached.
            continue
        tell(change)
        try:
            Applier(api).apply(change)
            made += 1
        except CloudError as exc:
            remained.append(str(exc))
    return made, remained


def _common(
    api: API, *, asked: bool, delete_children: bool, emptied: bool = False
) -> Sequence[Change]:
    """Return the steps that remove what no host needs any more.

    Names that flavors ask for stay: Placement refuses a request with an unknown
    name, and nova-scheduler then fails (with a TypeError for pinned VMs) instead of
    finding no valid host.
    """
    names = frozenset() if asked else answers.names(api)
    return plan_forget(
        names,
        answers.aggregates(api),
        live_hosts.detached_children(api) if delete_children else (),
        emptied=emptied,
    ).changes


def _warnings(seen: Snapshot) -> tuple[str, ...]:
    found = []
    flavors = sorted(f.name for f in seen.flavors if _asks_units(f.extra_specs))
    if flavors:
        found.append(
            f"flavors ask for units, which no host will have: {', '.join(flavors)}: "
            "make those of a policy without units, and delete these"
        )
    servers = [s for s in seen.servers if _asks_units(s.extra_specs)]
    if servers:
        names = ", ".join(str(server) for server in servers)
        found.append(
            f"VMs have flavors embedded that ask for units: {names}: they run on, but "
            "Nova moves or unshelves them to no host until they are resized to a "
            "flavor without units"
        )
    if found:
        found.append(
            "while any of these ask for units, the resource class and the traits stay: "
            "run this again afterwards"
        )
    return tuple(found)


def _asks_units(extra_specs: Mapping[str, str]) -> bool:
    """Return whether a flavor asks for units."""
    return any(
        key.startswith("resources") and key.endswith(f":{const.RC_UNIT}")
        for key in extra_specs
    )

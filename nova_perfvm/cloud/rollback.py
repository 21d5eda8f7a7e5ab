# SPDX-License-Identifier: Apache-2.0
"""Take the whole cloud out of the scheme, with its VMs running."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import Change, DeleteChild
from nova_perfvm.changes.unenroll import kept_aggregates, plan_forget, plan_unenroll
from nova_perfvm.cloud import answers, converge, live_hosts
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.converge import Tell
from nova_perfvm.cloud.errors import CloudError, RefusedError
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose.hosts import elastic_hosts
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.snapshot import Flavor


@dataclass(frozen=True)
class RollbackPlan:
    """What a rollback would do, and what it cannot.

    :ivar strip: take the units out of the allocations of running VMs
    :ivar delete_children: delete the providers that earlier runs have detached
    :ivar hosts: names of the hosts that are enrolled, if only in part
    :ivar changes: on all of them, and then on what they had in common
    :ivar refusals: what is in the way
    :ivar askers: flavors and servers that still ask for units.  The names that they
        ask for stay: Placement refuses a request with an unknown name, and
        nova-scheduler then fails (with a TypeError for pinned VMs) instead of finding
        no valid host
    :ivar kept: aggregates that stay, and why
    """

    strip: bool
    delete_children: bool
    hosts: tuple[str, ...]
    changes: tuple[Change, ...]
    refusals: tuple[str, ...]
    askers: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an operator has to do besides."""
        if not self.askers:
            return self.kept
        warning = (
            f"these ask for what no host will have: {', '.join(self.askers)}: "
            "replace the flavors, and resize the VMs, which run on but move to no host "
            "until then; the resource class and the traits stay as long"
        )
        return (warning, *self.kept)


def plan_rollback(
    api: API, *, strip: bool = False, delete_children: bool = False
) -> RollbackPlan:
    """Look at every host that is enrolled, if only in part; see RollbackPlan."""
    seen = read_snapshot(api)
    views = elastic_hosts(views_of(seen))
    plans = [plan_unenroll(view, strip=strip) for view in views]
    refusals = [refusal for plan in plans for refusal in plan.refusals]
    if refusals:
        refusals.append("or let VMs run on without: rollback --strip-units")
    if seen.unseen_hosts:
        refusals += seen.gaps
    if refusals:
        # Nothing is done then, so what an earlier run has left remains as well.
        refusals += [remains for view in views for remains in view.remains]
    askers = _asking(seen.flavors) + tuple(
        f"VM {server}" for server in seen.servers if _asks_units(server.extra_specs)
    )
    changes = [change for plan in plans for change in plan.changes]
    common = _common(api, askers, delete_children=delete_children, emptied=True)
    # Some have inventories or allocations, and so no hash.
    changes += [change for change in common if change not in changes]
    return RollbackPlan(
        strip=strip,
        delete_children=delete_children,
        hosts=tuple(view.host for view in views),
        changes=tuple(changes),
        refusals=tuple(refusals),
        askers=askers,
        kept=tuple(kept_aggregates(seen.aggregates)),
    )


def rollback(api: API, plan: RollbackPlan, tell: Tell) -> list[str]:
    """Unenroll every host, then remove what they had in common.

    :returns: why what remained did
    :raises RefusedError: while VMs carry units and are not to be stripped of them
    :raises CloudError: when a request failed; running again goes on from there
    """
    if plan.refusals:
        raise RefusedError(plan.refusals)
    among = live_hosts.hypervisors(api)
    planner = partial(plan_unenroll, strip=plan.strip)
    for host in plan.hosts:
        converge.change_host(api, host, planner, tell=tell, among=among)
    # Since the plan was made somebody may have made a flavor.
    askers = (*plan.askers, *_asking(answers.flavors(api)))
    remained = []
    for change in _common(api, askers, delete_children=plan.delete_children):
        if isinstance(change, DeleteChild) and change not in plan.changes:
            # nova-compute may know those that this run has detached.
            continue
        tell(change)
        try:
            Applier(api).apply(change)
        except CloudError as exc:
            remained.append(str(exc))
    return remained


def _common(
    api: API, askers: Sequence[str], *, delete_children: bool, emptied: bool = False
) -> Sequence[Change]:
    """Return the steps that remove what no host needs any more."""
    return plan_forget(
        frozenset() if askers else answers.names(api),
        answers.aggregates(api),
        live_hosts.detached_children(api) if delete_children else (),
        emptied=emptied,
    ).changes


def _asking(flavors: Iterable[Flavor]) -> tuple[str, ...]:
    """Return the flavors that ask for units."""
    return tuple(f"flavor {f.name}" for f in flavors if _asks_units(f.extra_specs))


def _asks_units(extra_specs: Mapping[str, str]) -> bool:
    return any(
        key.startswith("resources") and key.partition(":")[2] in const.CHILD_CLASSES
        for key in extra_specs
    )

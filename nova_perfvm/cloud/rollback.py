# SPDX-License-Identifier: Apache-2.0
"""Take the whole cloud out of the scheme while its VMs run."""

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
    """The steps of a rollback, and the obstacles to it.

    :ivar strip: remove the units from the allocations of running VMs
    :ivar delete_children: delete the providers that earlier runs have detached
    :ivar hosts: names of the hosts that are enrolled, also partly
    :ivar changes: steps on these hosts, then on the objects that the hosts share
    :ivar refusals: the obstacles, each with its remedy
    :ivar askers: flavors and servers that still ask for units.  The names of the units
        are kept for them: Placement refuses a request with an unknown name, and
        nova-scheduler then fails (with a TypeError for pinned VMs) instead of finding
        no valid host
    :ivar kept: sentences about the aggregates that stay
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
        """The work that remains for an operator after the rollback."""
        if not self.askers:
            return self.kept
        warning = (
            f"these ask for units that hosts will lack: {', '.join(self.askers)}: "
            "replace the flavors, and resize the VMs: until then they run but cannot "
            "move to another host, and the resource class and the traits are kept"
        )
        return (warning, *self.kept)


def plan_rollback(
    api: API, *, strip: bool = False, delete_children: bool = False
) -> RollbackPlan:
    """Plan the rollback of all hosts that are enrolled, even partly."""
    seen = read_snapshot(api)
    views = elastic_hosts(views_of(seen))
    plans = [plan_unenroll(view, strip=strip) for view in views]
    refusals = [refusal for plan in plans for refusal in plan.refusals]
    if refusals:
        refusals.append("or take the units from running VMs: rollback --strip-units")
    if seen.unseen_hosts:
        refusals += seen.gaps
    if refusals:
        # A refused rollback changes nothing: leftovers of an earlier run remain as
        # well.
        refusals += [remains for view in views for remains in view.remains]
    askers = _asking(seen.flavors) + tuple(
        f"VM {server}" for server in seen.servers if _asks_units(server.extra_specs)
    )
    changes = [change for plan in plans for change in plan.changes]
    common = _common(api, askers, delete_children=delete_children, emptied=True)
    # Compared one by one: some changes hold dicts (inventories) and cannot be hashed.
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
    """Unenroll every host, then remove the objects that the hosts shared.

    :returns: the errors of changes that were refused in the end
    :raises RefusedError: when the plan has refusals
    :raises CloudError: when a request failed; a new run continues from there
    """
    if plan.refusals:
        raise RefusedError(plan.refusals)
    among = live_hosts.hypervisors(api)
    planner = partial(plan_unenroll, strip=plan.strip)
    for host in plan.hosts:
        converge.change_host(api, host, planner, tell=tell, among=among)
    # A flavor may have been created since the plan was made.
    askers = (*plan.askers, *_asking(answers.flavors(api)))
    remained = []
    for change in _common(api, askers, delete_children=plan.delete_children):
        if isinstance(change, DeleteChild) and change not in plan.changes:
            # nova-compute may still know children that this run has detached.
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
    """Return the steps that remove the shared objects that no host needs any more."""
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

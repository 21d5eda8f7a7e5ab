# SPDX-License-Identifier: Apache-2.0
"""Find what migrations would bring before any rule is enforced: slots, empty hosts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from nova_perfvm.changes.migrations import goals
from nova_perfvm.changes.migrations.model import MigrationPlan
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.changes.what_if.emptying import (
    Emptied,
    Progress,
    emptied,
    least_used,
    silent,
)
from nova_perfvm.diagnose.survey import pinned_sizes
from nova_perfvm.diagnose.survey.judged import as_if, is_taken_in
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.policy import Policy, VMClass

# ``plan defragment`` allows more, with a limit that the operator chooses.
MOST_MOVES: Final = 100
# ``plan servers --cloud`` tries all hosts.
MOST_HOSTS: Final = 30


def recovery(policy: Policy, snapshot: Snapshot) -> MigrationPlan:
    """Return migrations that free unfit slots of the first pinned class.

    A cloud that uses nova_perfvm already is judged by the policy's rules.  Any other
    cloud is judged by Nova's rules alone: VMs of other sizes may go to any host with
    room, as today.
    """
    judging, seen = _judged(policy, snapshot)
    options = PlanOptions(max_moves=MOST_MOVES)
    planning = Planning(judging, seen, settings_for(judging), options)
    return goals.defragment(planning, judging.pinned_classes[0])


def convertible(
    policy: Policy,
    snapshot: Snapshot,
    hosts: Collection[str],
    max_ratio: float | None = None,
    progress: Progress = silent,
) -> tuple[Emptied, ...]:
    """Return the hosts to convert to the class, in order: each can be emptied.

    Their servers go to the hosts that are not converted.  At most ``MOST_HOSTS`` are
    tried, those with the least memory in use.

    :param hosts: those that would gain slots
    :param max_ratio: see :class:`.suppose.Supposed`
    """
    judging, seen = _judged(policy, snapshot)
    nearest = [name for name in least_used(seen) if name in hosts][:MOST_HOSTS]
    settings = settings_for(judging)
    return emptied(judging, seen, settings, progress, nearest, max_ratio)


def _judged(policy: Policy, snapshot: Snapshot) -> tuple[Policy, Snapshot]:
    """Return the policy and the snapshot by which migrations are judged today."""
    if not is_taken_in(snapshot):
        mine, *_ = policy.pinned_classes
        classes = (mine, *_others(policy, snapshot))
        policy = replace(
            policy,
            classes=(
                *(replace(c, exclusive="none", mem_page_size=None) for c in classes),
                policy.default_class,
            ),
        )
    return as_if(policy, snapshot)


def _others(policy: Policy, snapshot: Snapshot) -> Iterator[VMClass]:
    """Yield a class for each other size of pinned VMs, so that plans move them."""
    known = {size for vm_class in policy.pinned_classes for size in vm_class.sizes}
    for size in pinned_sizes(snapshot):
        if size.vcpus not in known:
            yield VMClass(
                f"size-{size.vcpus}",
                vcpus=size.vcpus,
                cpu_policy="dedicated",
                numa_nodes=size.cells,
            )

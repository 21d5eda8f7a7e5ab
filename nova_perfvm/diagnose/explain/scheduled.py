# SPDX-License-Identifier: Apache-2.0
"""The verdict of Nova's own scheduler on each host, in the words of the model.

The scheduler says which of its parts refuse a host.  Why, with figures, the model tells
where it knows the part; else the part is named.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.diagnose.explain.fixes import Fixer
from nova_perfvm.diagnose.explain.report import Explanation, named
from nova_perfvm.diagnose.verdicts import (
    TENANT_FILTER,
    HostVerdict,
    SchedulerSettings,
    judge_all,
    no_cells,
)
from nova_perfvm.facts import Reason
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.dry_run import DESTINATION, NO_STATE, SchedulerAnswer
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.generate.options import FILTER, NOVAS_NUMA_FILTER, NUMA_FILTER
from nova_perfvm.policy import Policy
from nova_perfvm.rules import REFUSALS, check_request

_NUMA: Final = (
    *(const.NOVA_NUMA_TOPOLOGY, const.NOVA_NODES_UNNAMED, const.NOVA_PCI_NUMA),
)
# Which codes of the model tell why a part of the scheduler refuses a host.
_CODES: Final = {
    "ComputeFilter": (const.SERVICE_DISABLED, const.SERVICE_DOWN),
    "PciPassthroughFilter": (const.NOVA_PCI, const.NOVA_PCI_NUMA),
    "ServerGroupAffinityFilter": (const.NOVA_GROUP_AFFINITY,),
    "ServerGroupAntiAffinityFilter": (const.NOVA_GROUP_ANTI_AFFINITY,),
    TENANT_FILTER: (const.NOVA_TENANT_AGGREGATE,),
    NOVAS_NUMA_FILTER: _NUMA,
    NUMA_FILTER: _NUMA,
    FILTER: tuple(REFUSALS),
    DESTINATION: (const.NOVA_SAME_HOST,),
}


def explain_scheduled(
    policy: Policy,
    snapshot: Snapshot,
    request: Request | None,
    settings: SchedulerSettings,
    answer: SchedulerAnswer,
    *,
    host: str | None = None,
) -> Explanation:
    """Return what Nova's scheduler answered, host by host.

    :param request: None where the model does not know what is asked for
    :param host: name of a compute host or of its node; None for all
    :raises NotFoundError: when there is no such host
    """
    everything = views_of(snapshot)
    views = named(snapshot, everything, host)
    if request is None:
        blank = (HostVerdict(view, (), (), ()) for view in views)
        verdicts = tuple(_verdict(one, None, answer) for one in blank)
        return Explanation(None, verdicts, (), (None,) * len(views), answer.notes)
    found = judge_all(policy, request, views, settings)
    verdicts = tuple(_verdict(one, request, answer) for one in found)
    reasons: tuple[Reason, ...] = ()
    if settings.enforced and not any(verdict.accepted for verdict in verdicts):
        reasons = check_request(policy, request.facts)
    fixer = Fixer(policy, snapshot, request, everything, settings)
    fixes = tuple(map(fixer.fix, verdicts))
    return Explanation(request, verdicts, reasons, fixes, answer.notes)


def _verdict(
    verdict: HostVerdict, request: Request | None, answer: SchedulerAnswer
) -> HostVerdict:
    """Return the scheduler's verdict on a host.

    Of a host that Placement does not offer the model's reasons stay.

    :param verdict: the model's
    """
    refusing = answer.offered.get(verdict.view.compute.provider)
    if refusing is None:
        refused = Reason(const.PLACEMENT_REFUSED, {"judged": request is not None})
        return replace(verdict, placement=verdict.placement or (refused,))
    reasons = (_reasons(name, verdict.reasons, request) for name in refusing)
    return HostVerdict(verdict.view, (), (), (), tuple(chain.from_iterable(reasons)))


def _reasons(
    name: str, known: tuple[Reason, ...], request: Request | None
) -> Iterator[Reason]:
    """Yield why a part of the scheduler refuses a host."""
    mine = [reason for reason in known if reason.code in _CODES.get(name, ())]
    numa = name in {NOVAS_NUMA_FILTER, NUMA_FILTER}
    if mine:
        yield from mine
    elif numa and request is not None and request.facts.cells:
        yield no_cells(request.facts)
    elif name == DESTINATION:
        yield Reason(const.NOVA_DESTINATION, {})
    elif name == NO_STATE:
        yield Reason(const.NOVA_NO_STATE, {})
    else:
        yield Reason(const.NOVA_FILTER, {"filter": name})

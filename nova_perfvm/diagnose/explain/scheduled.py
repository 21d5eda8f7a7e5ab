# SPDX-License-Identifier: Apache-2.0
"""Show the verdict of Nova's own scheduler on each host, in the words of the model.

The scheduler's answer names the filters that refuse a host.  The model adds the reason
with figures if it knows the filter; else only the filter is named.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from nova_perfvm import constants as const
from nova_perfvm.diagnose.explain.fixes import Fixer
from nova_perfvm.diagnose.explain.report import Explanation, named, stays_put
from nova_perfvm.diagnose.nova_filters import FILTERS, FilterCase
from nova_perfvm.diagnose.nova_filters.numa import no_cells
from nova_perfvm.diagnose.verdicts import HostVerdict, SchedulerSettings, judge_all
from nova_perfvm.diagnose.words import in_words
from nova_perfvm.facts import Reason
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.dry_run import DESTINATION, NO_STATE, SchedulerAnswer
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.policy import Policy
from nova_perfvm.rules import check_request
from nova_perfvm.rules.enabled_filters import NOVAS_NUMA_FILTER, NUMA_FILTER


def explain_scheduled(
    policy: Policy,
    snapshot: Snapshot,
    request: Request | None,
    settings: SchedulerSettings,
    answer: SchedulerAnswer,
    *,
    host: str | None = None,
) -> Explanation:
    """Return the answer of Nova's scheduler, host by host.

    :param request: None if the model cannot reproduce the request
    :param host: name of a compute host or of its node; None for all
    :raises NotFoundError: when the host does not exist
    """
    everything = views_of(snapshot)
    views = named(snapshot, everything, host)
    if request is None:
        verdicts = tuple(_verdict(HostVerdict(view), None, answer) for view in views)
        return Explanation(None, verdicts, (), (None,) * len(views), _notes(answer))
    found = judge_all(policy, request, views, settings)
    verdicts = tuple(
        _verdict(one, FilterCase(policy, request, one.view, settings.options), answer)
        for one in found
    )
    reasons: tuple[Reason, ...] = ()
    if settings.enforced and not any(verdict.accepted for verdict in verdicts):
        reasons = check_request(policy, request.facts)
    fixer = Fixer(policy, snapshot, request, everything, settings)
    fixes = tuple(map(fixer.fix, verdicts))
    doubts = (
        f"nova-scheduler takes {one.view.name}; in its claim, nova-compute may refuse: "
        f"{in_words(chain.from_iterable(one.filters))}"
        for one, verdict in zip(found, verdicts, strict=True)
        if verdict.accepted and one.filters
    )
    notes = (*_notes(answer), *stays_put(request), *doubts)
    return Explanation(request, verdicts, reasons, fixes, notes)


def _notes(answer: SchedulerAnswer) -> tuple[str, ...]:
    """Return the notes of the scheduler's answer, and one about cells that are down."""
    if not answer.unseen:
        return tuple(answer.notes)
    cells = ", ".join(answer.unseen)
    down = f"Nova's cells {cells} do not answer: nova-scheduler ignores their hosts"
    return (*answer.notes, down)


def _verdict(
    verdict: HostVerdict, case: FilterCase | None, answer: SchedulerAnswer
) -> HostVerdict:
    """Return the scheduler's verdict on a host.

    If Placement does not offer the host, the model's reasons are kept.

    :param verdict: the model's verdict
    :param case: None if the model cannot reproduce the request
    """
    refusing = answer.offered.get(verdict.view.compute.provider)
    if refusing is None:
        refused = Reason(const.PLACEMENT_REFUSED, {"judged": case is not None})
        return replace(verdict, placement=verdict.placement or (refused,))
    reasons = (tuple(_reasons(name, verdict, case)) for name in refusing)
    return HostVerdict(verdict.view, filters=tuple(reasons))


def _reasons(
    name: str, verdict: HostVerdict, case: FilterCase | None
) -> Iterator[Reason]:
    """Yield why a filter, or another part of the scheduler, refuses a host."""
    known: Iterable[Reason] = ()
    if name == DESTINATION:
        known = (one for one in verdict.before if one.code == const.NOVA_SAME_HOST)
    elif case is not None and name in FILTERS:
        known = (one for one in FILTERS[name](case) if one.code != const.NOT_JUDGED)
    mine = tuple(known)
    numa = name in {NOVAS_NUMA_FILTER, NUMA_FILTER}
    if mine:
        yield from mine
    elif numa and case is not None and case.request.facts.cells:
        yield no_cells(case.request.facts)
    elif name == DESTINATION:
        yield Reason(const.NOVA_DESTINATION, {})
    elif name == NO_STATE:
        yield Reason(const.NOVA_NO_STATE, {})
    else:
        yield Reason(const.NOVA_FILTER, {"filter": name})

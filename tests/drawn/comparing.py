# SPDX-License-Identifier: Apache-2.0
"""What the dry run and the model say, held against nova-scheduler."""

import collections
import dataclasses
import itertools

from nova_perfvm import constants as const
from tests.drawn.scheduler import DESTINATION, PLACEMENT

JUDGED, NOT_JUDGED, CLAIM = "judged", "not judged", "refused by a compute's claim"
# By code of a reason: the filter that uses the function by which a compute looks anew
# whether it takes a server (nova/compute/claims.py; of groups,
# ComputeManager._validate_instance_group_policy).
LATER = {
    const.NOVA_NUMA_TOPOLOGY: "NUMATopologyFilter",
    const.NOVA_PCI: "PciPassthroughFilter",
    const.NOVA_PCI_NUMA: "NUMATopologyFilter",
    const.NOVA_GROUP_AFFINITY: "ServerGroupAffinityFilter",
    const.NOVA_GROUP_ANTI_AFFINITY: "ServerGroupAntiAffinityFilter",
}
# Rounding of sums that are added up in another order.
_SAME_WEIGHT = 1e-9


@dataclasses.dataclass(frozen=True)
class Disagreement:
    """One verdict of ours that is not nova-scheduler's.

    :ivar kind: which are of one kind, for counting
    :ivar host: name of the host, empty if it is about the request
    """

    kind: str
    host: str
    nova: str
    ours: str


def dry_run(answer, refused, whole, alone, uuids, *, together):
    """Yield what a dry run says otherwise than nova-scheduler.

    :param answer: the Answer, or the exception that the dry run raised
    :param refused: why nova-api refuses the request; empty if it does not
    :param whole: the Outcome for all hosts
    :param alone: Outcomes for one host each, by its name; hosts that pass with all
        others may be left out
    :param uuids: of compute nodes, by name of the host
    :param together: whether a filter judges hosts by each other
    """
    if isinstance(answer, Exception):
        yield Disagreement("raises", "", refused or str(whole), repr(answer))
        return
    if refused:
        if not answer.refused:
            yield Disagreement("nova-api refuses", "", refused, _passing(answer))
        return
    said = answer.refused
    if whole.error and not said and answer.ranked:
        yield Disagreement("request fails", "", whole.error, _passing(answer))
    if said and whole.counts:
        yield Disagreement("refuses the request", "", str(whole.counts), said)
    if said or whole.error:
        return
    for host, uuid in uuids.items():
        yield from _host(answer, whole, alone, host, uuid, together=together)
    if others := set(answer.offered) - set(uuids.values()):
        told = str({uuid: answer.offered[uuid] for uuid in others})
        yield Disagreement("offers what is no compute node", "", "", told)
    yield from _counts(answer, whole)
    yield from _weights(answer, whole, {uuid: host for host, uuid in uuids.items()})


def _host(answer, whole, alone, host, uuid, *, together):
    """Compare whether one host passes, and what refuses it."""
    passes, parts = host in whole.passed, answer.offered.get(uuid)
    by = alone[host].refused_by if host in alone else ""
    if passes != (uuid in dict(answer.ranked)):
        kind = f"refuses, Nova takes; {parts}"
        if not passes:
            kind = f"takes, {by or 'filters together'} refuses"
        yield Disagreement(kind, host, by, f"{parts}; {answer.notes}")
    if together:
        return
    if passes == bool(by):
        raise AssertionError(f"alone {host} is {by or 'taken'}, with others not")
    told = PLACEMENT if parts is None else next(iter(parts), "")
    if told != by:
        yield Disagreement(f"{told or 'none'} for {by or 'none'}", host, by, told)


def several(answer, outcome, count):
    """Yield whether a dry run has hosts for several servers, where Nova has not."""
    placed = len(answer.placed) == count
    if placed != bool(outcome.selected):
        told = f"{len(answer.placed)} of {count}: {answer.placed}"
        yield Disagreement("several at once", "", str(outcome), told)


def _passing(answer):
    return f"{len(answer.ranked)} hosts pass; {answer.offered}; {answer.notes}"


def _counts(answer, whole):
    """Compare how many hosts each filter lets pass."""
    first = collections.Counter(
        next(iter(parts), "") for parts in answer.offered.values()
    )
    left, counts = len(answer.offered) - first[DESTINATION], []
    for name, _ in whole.counts:
        left -= first[name]
        counts.append((name, left))
    if tuple(counts) != whole.counts:
        yield Disagreement("counts of filters", "", str(whole.counts), str(counts))


def _weights(answer, whole, hosts):
    found = [
        (hosts[uuid], sum(one.multiplier * one.normalised for one in shares))
        for uuid, shares in answer.ranked
    ]
    told = (str(whole.weighed), str(found))
    expected = dict(whole.weighed)
    if any(
        abs(weight - expected.get(host, weight)) > _SAME_WEIGHT
        for host, weight in found
    ):
        yield Disagreement("weights", "", *told)
        return
    # Equal weights may stand in any order.
    for (above, _), (below, _) in itertools.pairwise(found):
        if expected.get(above, 0) < expected.get(below, 0) - _SAME_WEIGHT:
            yield Disagreement("order", "", *told)
            return
    if bool(whole.selected) != bool(answer.placed):
        yield Disagreement("placed", "", whole.selected, str(answer.placed))
    elif whole.selected:
        best = expected[whole.selected]
        if abs(expected.get(answer.placed[0], best + 1) - best) > _SAME_WEIGHT:
            yield Disagreement("placed", "", whole.selected, str(answer.placed))


def model(found, refused, whole, alone, claimed):
    """Yield each verdict as (how it is judged, its Disagreement or None).

    It is JUDGED, or the model names what it has NOT_JUDGED, or the scheduler lets pass
    what the CLAIM of a compute refuses.

    :param found: the Explanation, or the RequestError of a refusal
    :param refused: why nova-api refuses the request; empty if it does not
    :param whole: the Outcome for all hosts
    :param alone: gives the Outcome for one host, by its name
    :param claimed: gives the Outcome for one host with some filters alone
    """
    if isinstance(found, Exception):
        if not refused:
            kind = f"refuses the request: {type(found).__name__}"
            told = whole.error or f"{sorted(whole.passed)} take it"
            yield NOT_JUDGED, Disagreement(kind, "", told, str(found))
        else:
            yield JUDGED, None
        return
    judged = NOT_JUDGED if getattr(found, "unjudged", ()) else JUDGED
    if refused:
        kind = "takes, nova-api refuses"
        passes = ", ".join(found.accepting)
        yield judged, Disagreement(kind, "", refused, passes) if passes else None
        return
    for verdict in found.verdicts:
        host, codes = verdict.view.host, [reason.code for reason in verdict.reasons]
        takes = host in found.accepting
        if takes == (host in whole.passed):
            yield judged, None
            continue
        if takes:
            by = whole.error or alone(host).refused_by or "filters together"
            yield judged, Disagreement(f"takes, {by} refuses", host, by, "takes it")
            continue
        if LATER.keys() >= set(codes) and not found.request_reasons:
            filters = {LATER[code] for code in codes}
            if not claimed(filters, host).passed:
                yield CLAIM, None
                continue
        reasons = [*codes, *(reason.code for reason in found.request_reasons)]
        kind = f"refuses by {', '.join(dict.fromkeys(reasons))}"
        yield judged, Disagreement(kind, host, "takes it", str(verdict.reasons))

# SPDX-License-Identifier: Apache-2.0
"""The result of ``explain`` in one line."""

from __future__ import annotations

from collections import Counter

from nova_perfvm.diagnose.explain.report import Explanation
from nova_perfvm.diagnose.words import in_words
from nova_perfvm.facts.dry_run import SchedulerAnswer
from nova_perfvm.printable import number_of


def placed(answer: SchedulerAnswer, count: int) -> str:
    """Return a line with the hosts on which `count` new servers would be placed."""
    hosts = Counter(answer.placed)
    where = ", ".join(f"{number} on {host}" for host, number in hosts.items())
    return f"{len(answer.placed)} of {count} servers would be placed: {where or 'none'}"


def headline(found: Explanation) -> str:
    """Return a line with the number of hosts that would take the server, or a fix."""
    total, taking = len(found.verdicts), len(found.accepting)
    if taking:
        said = f"{taking} of {number_of(total, 'host')} would take it"
        unjudged = ", ".join(found.unjudged)
        return f"{said}, as far as seen: {unjudged} not judged" if unjudged else said
    if found.request_reasons:
        return (
            "no host would take it: the request is not of its class: "
            f"{in_words(found.request_reasons)}"
        )
    if not total:
        return "no host would take it: there are no compute hosts"
    best, *_ = found.rows()
    remedy = f"smallest fix found: {best.fix}" if best.fix else "no fix found"
    return f"none of {number_of(total, 'host')} would take it; {remedy}"

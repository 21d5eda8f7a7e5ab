# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file, with all that draws its plots inside."""

from __future__ import annotations

import functools
from itertools import groupby
from typing import Final, NamedTuple

import vl_convert

from nova_perfvm.measure.report.content import Content
from nova_perfvm.measure.report.plots import plots
from nova_perfvm.measure.statistics.verdict import Verdict
from nova_perfvm.pages import page_source, render_page

_LOOKS: Final = {
    Verdict.PASS: "ok",
    Verdict.INCONCLUSIVE: "warning",
    Verdict.FAIL: "failure",
}


class Overall(NamedTuple):
    """The verdict of all comparisons together."""

    look: str
    verdict: str
    words: str


def html(content: Content) -> str:
    """Return the page: verdicts, failures, plots, machines."""
    found = list(plots(content))
    sections = groupby(enumerate(found), lambda numbered: numbered[1].section)
    order = list(Verdict)
    worst_first = sorted(content.comparisons, key=lambda row: -order.index(row.verdict))
    numbers = {verdict: content.count(verdict) for verdict in reversed(Verdict)}
    return render_page(
        "report.html",
        content=content,
        overall=None if content.not_compared else _overall(content),
        counts=[(n, _LOOKS[v], v.value) for v, n in numbers.items()],
        comparisons=[(_LOOKS[r.verdict], r.verdict.value, r) for r in worst_first],
        doubts=dict.fromkeys(r for row in content.comparisons for r in row.remarks),
        sections=[(name, list(members)) for name, members in sections],
        specs=[plot.spec for plot in found],
        script=_bundle() if found else "",
    )


def _overall(content: Content) -> Overall:
    """Return the worst verdict that one comparison has."""
    worst = next(v for v in reversed(Verdict) if content.count(v))
    words = (
        f"{content.count(worst)} of {len(content.comparisons)} comparisons of a VM "
        "with its host, or with its share of it"
    )
    if content.failures:
        failures = len(content.failures)
        words += f"; {failures} could not be made"
        if worst is Verdict.PASS:
            worst = Verdict.INCONCLUSIVE
            words = f"not all was measured: {failures} failed"
    return Overall(_LOOKS[worst], worst.value, words)


@functools.cache
def _bundle() -> str:
    """Return Vega with the script of the page; making it takes a moment."""
    found: str = vl_convert.javascript_bundle(page_source("report.js"))
    return found.replace("</script", "<\\/script")

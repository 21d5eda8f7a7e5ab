# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file.

Its scripts are Vega's, all inside; its policy of contents forbids it any other, and
the network.  Names in it are anybody's choice: they are escaped.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any, Final

import vl_convert

from nova_perfvm.measure.report import style
from nova_perfvm.measure.report.content import Content
from nova_perfvm.measure.report.elements import bullets, cell, counts, sentence, table
from nova_perfvm.measure.report.plots import Plot, plots
from nova_perfvm.measure.statistics.intervals import Estimate
from nova_perfvm.measure.statistics.verdict import Verdict

_CLASSES: Final = {
    Verdict.PASS: "ok",
    Verdict.INCONCLUSIVE: "warning",
    Verdict.FAIL: "critical",
}
# Expressions of Vega are interpreted, as eval is not allowed.
_ALLOWED: Final = ("script-src 'unsafe-inline'", "img-src data:")
_SCRIPT: Final = """
const specs = JSON.parse(document.getElementById("plots").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
let shown = [];
async function show() {
  for (const view of shown) { view.finalize(); }
  shown = [];
  const look = getComputedStyle(document.documentElement);
  const text = look.getPropertyValue("--text").trim();
  const line = look.getPropertyValue("--line").trim();
  const words = { labelColor: text, titleColor: text };
  const config = {
    background: "transparent",
    font: "system-ui, sans-serif",
    axis: { ...words, gridColor: line, domainColor: line, tickColor: line },
    legend: words,
    view: { stroke: "transparent" },
  };
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true,
    config, tooltip: { theme: dark.matches ? "dark" : "light" } };
  for (const [index, spec] of specs.entries()) {
    shown.push(await vegaEmbed("#plot" + index, spec, options));
  }
  document.documentElement.dataset.drawn = String(shown.length);
}
dark.addEventListener("change", show);
show();
"""


def html(content: Content) -> str:
    """Return the page: verdicts, failures, plots, machines."""
    found = list(plots(content))
    sections = [
        (name, list(members)) for name, members in groupby(found, lambda p: p.section)
    ]
    numbers = {id(plot): number for number, plot in enumerate(found)}
    body = [
        "<h1>Is the VM as fast as the machine?</h1>\n",
        f'<p class="facts">{escape(", ".join(content.files))}</p>\n',
        _verdicts(content),
        _failures(content),
        *(_section(name, members, numbers) for name, members in sections),
        _machines(content),
        bullets("Not shown", content.not_shown),
    ]
    if found:
        body.append(_scripts(found))
    return style.document("perfvm bench report", "".join(body), allowed=_ALLOWED)


def _verdicts(content: Content) -> str:
    if content.not_compared:
        return f'<p class="warning">{escape(content.not_compared)}</p>\n'
    numbers = {verdict: content.count(verdict) for verdict in reversed(Verdict)}
    order = list(Verdict)
    worst_first = sorted(content.comparisons, key=lambda row: -order.index(row.verdict))
    rows = [
        (
            f'<td class="{_CLASSES[row.verdict]}">{row.verdict.value}</td>',
            *map(cell, (row.metric, row.who)),
            *map(_number, (row.threads, row.at_once)),
            *(
                _number(_ratio(value, marked=name == row.against))
                for name, value in (("host", row.vs_host), ("share", row.vs_share))
            ),
            _number(("≥ " if row.better == "higher" else "≤ ") + f"{row.target:.3g}"),
            sentence(row.reason),
        )
        for row in worst_first
    ]
    head = (
        *("Verdict", "Metric", "VM", "Threads", "At once"),
        *("VM / host", "VM / share", "Target", "Reason"),
    )
    remarks = dict.fromkeys(r for row in content.comparisons for r in row.remarks)
    return (
        _overall(numbers, len(content.failures))
        + counts(
            (n, _CLASSES[verdict], verdict.value) for verdict, n in numbers.items()
        )
        + f"<h2>Verdicts</h2>\n{table(head, rows, 'Verdicts')}"
        '<p class="note">In brackets: 95 % interval. The ratio that the target is for '
        "has a *.</p>\n" + bullets("Doubts", remarks)
    )


def _overall(numbers: Mapping[Verdict, int], failures: int) -> str:
    """Return the verdict of all together: the worst that one comparison has.

    :param numbers: how many comparisons have each verdict, the worst first
    :param failures: how many things could not be measured
    """
    worst = next(verdict for verdict, number in numbers.items() if number)
    words = (
        f"{numbers[worst]} of {sum(numbers.values())} comparisons of a VM with its "
        "host, or with its share of it"
    )
    if failures:
        words += f"; {failures} could not be made"
        if worst is Verdict.PASS:
            worst = Verdict.INCONCLUSIVE
            words = f"not all was measured: {failures} failed"
    return (
        f'<p class="verdict {_CLASSES[worst]}">{worst.value}</p>\n'
        f'<p class="facts">{words}</p>\n'
    )


def _ratio(found: Estimate | None, *, marked: bool) -> str:
    if found is None:
        return ""
    mark = "*" if marked else ""
    if found.low is None or found.high is None:
        return f"{found.ratio:.3f}{mark}"
    return f"{found.ratio:.3f}{mark} ({found.low:.3f}-{found.high:.3f})"


def _failures(content: Content) -> str:
    found = "".join(
        f'<article class="critical"><p class="code">{escape(one.where)}: '
        f"{escape(one.who)}</p><p>{escape(one.reason)}</p>"
        + (f"<pre>{escape(one.stderr)}</pre>" if one.stderr else "")
        + "</article>\n"
        for one in content.failures
    )
    return f"<h2>Not measured</h2>\n{found}" if found else ""


def _section(name: str, members: Sequence[Plot], numbers: dict[int, int]) -> str:
    figures = "".join(_figure(plot, numbers[id(plot)]) for plot in members)
    return f'<h2>{escape(name)}</h2>\n<div class="plots">\n{figures}</div>\n'


def _figure(plot: Plot, number: int) -> str:
    rows = [tuple(map(cell, row)) for row in plot.rows]
    figures = table(plot.columns, rows, f"Figures of {plot.title}")
    return (
        f"<figure{' class=wide' if plot.wide else ''}>"
        f"<figcaption>{escape(plot.title)}</figcaption>"
        f'<div class="plot" id="plot{number}"></div>'
        f"<details><summary>Figures</summary>{figures}</details></figure>\n"
    )


def _machines(content: Content) -> str:
    rows = [
        tuple(
            map(
                cell,
                (
                    *(one.who, one.hostname, one.kernel, one.cpu_model),
                    *(one.governor, one.versions, one.clock),
                ),
            )
        )
        for one in content.machines
    ]
    head = ("Who", "Hostname", "Kernel", "CPU", "Governor", "Tools", "Clock")
    return f"<h2>Machines</h2>\n{table(head, rows, 'Machines')}" if rows else ""


def _number(value: object) -> str:
    return f'<td class="number">{escape(str(value))}</td>'


@functools.cache
def _bundle() -> str:
    """Return Vega with the script of the page; making it takes a moment."""
    found: str = vl_convert.javascript_bundle(_SCRIPT)
    return found.replace("</script", "<\\/script")


def _scripts(found: Iterable[Plot]) -> str:
    specs: list[dict[str, Any]] = [plot.spec for plot in found]
    # No text in it can end the element.
    data = json.dumps(specs, allow_nan=False).replace("<", "\\u003c")
    bundle = _bundle()
    return (
        f'<script type="application/json" id="plots">{data}</script>\n'
        f"<script type=module>{bundle}</script>\n"
    )

# SPDX-License-Identifier: Apache-2.0
"""The plots of a report, as Vega-Lite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from nova_perfvm.measure.report.content import Content, NodePins, Spread
from nova_perfvm.measure.samples import Measurement
from nova_perfvm.measure.statistics.compare import Comparison
from nova_perfvm.measure.statistics.intervals import Estimate

_HEIGHT: Final = 220
_ROW: Final = 18
_CPUS_ALL_NAMED: Final = 32


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot.

    :ivar section: what it shows, together with the others of its kind
    :ivar title: what is different about it
    :ivar spec: Vega-Lite
    :ivar columns: of the table that says the same
    :ivar wide: whether it takes the page's whole width
    """

    section: str
    title: str
    spec: dict[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    wide: bool = False


def plots(content: Content) -> Iterator[Plot]:
    """Yield the plots in the page's order."""
    yield from _ratios(content.comparisons)
    yield from _tails(content.measurements)
    yield from map(_interrupts, content.spreads)
    for number, node in enumerate(node for node in content.nodes if node.cpus):
        yield _pins(node, legend=number == 0)


def _ratios(comparisons: Iterable[Comparison]) -> Iterator[Plot]:
    by_metric: dict[tuple[str, int], list[Comparison]] = {}
    for row in comparisons:
        by_metric.setdefault((row.metric, row.at_once), []).append(row)
    names = _names(row.who for rows in by_metric.values() for row in rows)
    legend: alt.Legend | None = alt.Legend(orient="bottom")
    for (metric, at_once), rows in by_metric.items():
        data = [
            {
                "vm": row.who,
                "threads": row.threads,
                "ratio": found.ratio,
                "low": found.low if found.low is not None else found.ratio,
                "high": found.high if found.high is not None else found.ratio,
                "target": row.target,
                "verdict": row.verdict.value,
            }
            for row in rows
            if (found := _judged(row)) is not None
        ]
        if not data:
            continue
        against = "fair share of the host" if rows[0].against == "share" else "host"
        least = "at least" if rows[0].better == "higher" else "at most"
        base = _chart(data)
        # Intervals of several VMs stand beside each other.
        x = alt.X("threads:O", title="threads").axis(labelAngle=0)
        place: dict[str, Any] = {"x": x, "xOffset": alt.XOffset("vm:N")}
        # Intervals over a factor of some hundreds would hide the rest.
        y = alt.Y("ratio:Q", title=f"VM / {against}").scale(zero=True)
        color, shape = _told_apart("vm:N", "VM", names, legend)
        tooltip = ["vm:N", "threads:O", "ratio:Q", "low:Q", "high:Q", "verdict:N"]
        chart = alt.layer(
            base.mark_rule(strokeDash=[6, 4], color="#b36b00").encode(y="target:Q"),
            base.mark_rule(strokeWidth=2).encode(
                **place, y=alt.Y("low:Q"), y2="high:Q", color=color, tooltip=tooltip
            ),
            base.mark_point(size=70, filled=True).encode(
                **place,
                y=y,
                color=color,
                shape=shape,
                tooltip=tooltip,
            ),
        )
        legend = None
        yield Plot(
            "Ratios by threads",
            f"{metric}, {at_once} at once ({least} {rows[0].target:.3g})",
            _spec(chart, _HEIGHT),
            ("VM", "Threads", "Ratio", "Low", "High", "Verdict"),
            tuple(
                (
                    one["vm"],
                    one["threads"],
                    f"{one['ratio']:.3f}",
                    f"{one['low']:.3f}",
                    f"{one['high']:.3f}",
                    one["verdict"],
                )
                for one in data
            ),
        )


def _judged(row: Comparison) -> Estimate | None:
    return row.vs_share if row.against == "share" else row.vs_host


def _tails(measurements: Iterable[Measurement]) -> Iterator[Plot]:
    by_metric: dict[tuple[str, str], list[Measurement]] = {}
    for m in measurements:
        if "latency" in m.metric:
            by_metric.setdefault((m.metric, m.unit), []).append(m)
    names = _names(_who(m) for found in by_metric.values() for m in found)
    legend: alt.Legend | None = alt.Legend(orient="bottom", columns=2)
    for (metric, unit), found in by_metric.items():
        data = [
            {
                "who": _who(m),
                "threads": m.threads,
                "value": m.value,
                "round": m.round,
            }
            for m in found
        ]
        color, shape = _told_apart("who:N", "", names, legend)
        chart = (
            _chart(data)
            .mark_point(size=45, opacity=0.8)
            .encode(
                x=alt.X("threads:O", title="threads").axis(labelAngle=0),
                xOffset=alt.XOffset("who:N"),
                y=alt.Y("value:Q", title=unit_words(unit)).scale(type="log"),
                color=color,
                shape=shape,
                tooltip=["who:N", "threads:O", "round:O", "value:Q"],
            )
        )
        legend = None
        yield Plot(
            "Latency tails",
            metric,
            _spec(chart, _HEIGHT),
            ("Who", "Threads", "Round", f"Value ({unit})"),
            tuple(
                (one["who"], one["threads"], one["round"], f"{one['value']:.4g}")
                for one in data
            ),
        )


def _who(measurement: Measurement) -> str:
    at_once = measurement.at_once
    return f"{measurement.who} ({at_once} at once)" if at_once else measurement.who


def _names(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))


def _told_apart(
    field: str, title: str, names: list[str], legend: alt.Legend | None
) -> tuple[alt.Color, alt.Shape]:
    """Return colour and shape of each name, the same in all plots of a section.

    :param legend: None for a plot behind one that has it
    """
    scale = alt.Scale(domain=names)
    return (
        alt.Color(field, title=title, scale=scale, legend=legend),
        alt.Shape(field, title=title, scale=scale, legend=legend),
    )


def unit_words(unit: str) -> str:
    """Return the title of an axis of a logarithmic scale."""
    return f"{unit}, each round (logarithmic)"


def _interrupts(spread: Spread) -> Plot:
    data = [
        {"vector": name, "cpu": cpu, "times": times}
        for (name, cpu), times in spread.fired.items()
    ]
    names = list(dict.fromkeys(name for name, _cpu in spread.fired))
    cpus = sorted({cpu for _name, cpu in spread.fired})
    chart = (
        _chart(data)
        .mark_rect()
        .encode(
            x=_cpu_axis(cpus),
            y=alt.Y("vector:N", title="", sort=names).axis(labelLimit=140),
            color=alt.Color("times:Q", title="times")
            .scale(type="symlog", scheme="viridis")
            .legend(orient="bottom"),
            tooltip=["vector:N", "cpu:O", "times:Q"],
        )
    )
    title = f"{spread.who} ({spread.source})"
    if spread.left_out:
        title += f"; {spread.left_out} vectors that fired less are left out"
    return Plot(
        "Interrupts by CPU",
        title,
        _spec(chart, _ROW * len(names) + 20),
        ("Vector", "CPU", "Times"),
        tuple((o["vector"], o["cpu"], o["times"]) for o in data if o["times"]),
        wide=True,
    )


def _pins(node: NodePins, *, legend: bool) -> Plot:
    order = list(dict.fromkeys((pin.vm, pin.what) for pin in node.pins))
    rows = [_row(vm, what) for vm, what in order]
    data: list[dict[str, Any]] = [
        {
            "row": _row(pin.vm, pin.what),
            "what": pin.what,
            "number": pin.number,
            "cpu": pin.cpu,
        }
        for pin in node.pins
    ]
    free = "no VM"
    taken = {pin.cpu for pin in node.pins}
    data += [
        {"row": free, "what": free, "number": None, "cpu": cpu}
        for cpu in node.cpus
        if cpu not in taken
    ]
    chart = (
        _chart(data)
        .mark_rect(cornerRadius=2, strokeWidth=1, stroke="#8888")
        .encode(
            x=_cpu_axis(list(node.cpus)),
            y=alt.Y("row:N", title="", sort=[*rows, free]).axis(labelLimit=140),
            color=alt.Color("what:N", title="")
            .scale(
                domain=["vCPU", "emulator", "I/O thread", free],
                range=["#4c78a8", "#f58518", "#e45756", "#8886"],
            )
            .legend(alt.Legend(orient="bottom") if legend else None),
            tooltip=["row:N", "what:N", "number:O", "cpu:O"],
        )
    )
    return Plot(
        "Pins by NUMA node",
        f"{node.who}, node {node.node}",
        _spec(chart, (_ROW + 4) * (len(rows) + 1) + 20),
        ("VM", "Thread", "Number", "CPU"),
        tuple((pin.vm, pin.what, pin.number, pin.cpu) for pin in node.pins),
        wide=True,
    )


def _chart(data: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=data))


def _row(vm: str, what: str) -> str:
    return vm if what == "vCPU" else f"{vm}: {what}"


def _cpu_axis(cpus: list[int]) -> alt.X:
    # Some names of many are enough to find one's way.
    values = cpus if len(cpus) <= _CPUS_ALL_NAMED else cpus[:: len(cpus) // 16]
    axis = alt.X("cpu:O", title="CPU").scale(domain=cpus)
    return axis.axis(labelAngle=0, labelOverlap=True, values=values)


def _spec(chart: Any, height: int) -> dict[str, Any]:
    spec: dict[str, Any] = chart.properties(width="container", height=height).to_dict()
    return spec

# SPDX-License-Identifier: Apache-2.0
"""The plot of what requests cost, as SVG."""

import altair as alt
import vl_convert

from tests.benchmark.scheduling.arms import RECOMMENDED, REPLACEMENT, Arm
from tests.benchmark.scheduling.cost import STOCK

_KINDS = {
    STOCK.name: "stock",
    Arm("slots").name: "slots or elastic",
    Arm("units").name: "slots or elastic",
    Arm("slots", REPLACEMENT).name: "... NUMATopologyFilter replaced",
    Arm("units", REPLACEMENT).name: "... NUMATopologyFilter replaced",
    Arm("slots", REPLACEMENT, RECOMMENDED).name: f"... and limit {RECOMMENDED}",
    Arm("units", REPLACEMENT, RECOMMENDED).name: f"... and limit {RECOMMENDED}",
}


def svg(records):
    """Return the costs of the largest pools by how full they are."""
    largest = max(record["hosts"] for record in records)
    data = [
        {
            "pool": f"{record['pool']}: {record['request']}",
            "taken": f"{record['taken']:.0%}",
            "arm": _KINDS[record["arm"]],
            "ms": record["scheduler_ms"] + record["placement_ms"],
        }
        for record in records
        if record["hosts"] == largest and record["arm"] in _KINDS
    ]
    chart = (
        alt.Chart(alt.Data(values=data))
        .mark_bar()
        .encode(
            x=alt.X(
                "arm:N", title=None, sort=list(dict.fromkeys(_KINDS.values()))
            ).axis(labels=False, ticks=False),
            y=alt.Y("ms:Q", title=None),
            color=alt.Color(
                "arm:N", title=None, sort=list(dict.fromkeys(_KINDS.values()))
            ).legend(orient="bottom", columns=2, columnPadding=30, labelLimit=300),
            column=alt.Column("taken:O", title="taken", sort=None),
            row=alt.Row("pool:N", title=None, sort=None).header(
                labelAngle=0, labelAlign="left", labelLimit=200, labelPadding=40
            ),
        )
        .properties(width=90, height=80, title=f"CPU ms of a request, {largest} hosts")
    )
    found: str = vl_convert.vegalite_to_svg(chart.to_dict())
    return found

# SPDX-License-Identifier: Apache-2.0
"""What comparisons say in words: one finding each, and one line for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.statistics.compare import Comparison
from nova_perfvm.measure.statistics.intervals import Estimate
from nova_perfvm.printable import number_of

# The verdict on every record that is no single run of ``prove``.
MEASURED: Final = "measured, not a proof"
# Resources with a throughput, by the first word of their metrics.
_KINDS: Final = {"cpu": "CPU", "memory": "memory", "network": "network", "disk": "disk"}
# Latencies, by the end of their metric: name, and sentence with the ratio to the host.
_LONGER: Final = {
    "latency_p99_9_us": (
        "lateness of 1 wake-up in 1,000",
        "1 wake-up in 1,000 is {:.2f} times as late as on the host",
    ),
    "random_access_ns": (
        "time of a memory access",
        "a memory access takes {:.2f} times as long as on the host",
    ),
}


def ratio(found: Estimate | None) -> str:
    """Return a ratio, with its interval if it has one; empty for None."""
    if found is None:
        return ""
    if (ends := found.interval()) is None:
        return f"{found.ratio:.3f}"
    return "{:.3f} ({:.3f}-{:.3f})".format(found.ratio, *ends)


def finding(row: Comparison) -> Finding:
    """Return a comparison as a finding."""
    # A miss is seen in the figures.
    reason = row.reason if row.level is Level.UNKNOWN else ""
    return Finding(
        row.group.metric,
        row.level,
        f"{row.who}, {row.group.how}",
        "; ".join(filter(None, (ratio(row.judged), reason))),
        asked(row),
    )


def asked(row: Comparison) -> str:
    """Return the target in words."""
    if row.better == "lower":
        return f"at most {row.target:.3g} times the host's"
    share = "its share of the host" if row.against == "share" else "the host's"
    return f"at least {row.target:.3g} of {share}"


def answer(rows: Sequence[Comparison]) -> str:
    """Return in one line what VMs reach of their host, and what takes longer there.

    That is the worst ratio of each kind, with most VMs at once, of rows that decide.
    """
    rows = _deciding(rows)
    lower = dict.fromkeys(row.group.metric for row in rows if row.better == "lower")
    times = [slower(rows, metric) for metric in lower]
    return "; ".join(filter(None, (reached(rows), ", ".join(filter(None, times)))))


def reached(rows: Sequence[Comparison]) -> str:
    """Return which share of the host's throughput VMs reach: the worst of each kind."""
    rows = [row for row in _deciding(rows) if row.better == "higher"]
    shares = []
    for name in _KINDS.values():
        found = [one.ratio for row in rows if kind(row) == name and (one := row.judged)]
        if found:
            shares.append(f"{min(found):.2f} {name}")
    if not shares:
        return "no throughput could be compared"
    vms, target = rows[0].group.at_once, rows[0].target
    who = "1 VM reaches" if vms == 1 else f"{number_of(vms, 'VM')} at once reach"
    whose = "its" if vms == 1 else "their"
    return f"{who} {', '.join(shares)} of {whose} share (at least {target:.2f})"


def slower(rows: Iterable[Comparison], metric: str) -> str:
    """Return in words how much longer a metric is at worst; empty without a ratio."""
    found = [row for row in rows if row.group.metric == metric]
    worst = max((one.ratio for row in found if (one := row.judged)), default=None)
    if worst is None:
        return ""
    _, words = _longer(metric)
    return f"{words.format(worst)} (at most {found[0].target:.2f})"


def kind(row: Comparison) -> str:
    """Return what a row's figure is of, in plain words."""
    metric = row.group.metric
    if row.better == "lower":
        return _longer(metric)[0]
    return _KINDS.get(metric.split(".")[0], metric)


def _longer(metric: str) -> tuple[str, str]:
    """Return a plain name of a metric, and a sentence with a field for its ratio."""
    for end, words in _LONGER.items():
        if metric.endswith(end):
            return words
    return metric, f"{metric} is {{:.2f}} times the host's"


def _deciding(rows: Sequence[Comparison]) -> list[Comparison]:
    """Return the rows that decide, with most VMs at once."""
    at_once = max((row.group.at_once for row in rows if row.primary), default=0)
    return [row for row in rows if row.primary and row.group.at_once == at_once]

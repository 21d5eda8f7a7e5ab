# SPDX-License-Identifier: Apache-2.0
"""What comparisons say in words: one finding each, and one line for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.statistics.compare import Comparison
from nova_perfvm.measure.statistics.intervals import Estimate
from nova_perfvm.printable import number_of

# What can be 70 to 80 % of the machine's, by the first word of its metrics.
_KINDS: Final = {"cpu": "CPU", "memory": "memory", "network": "network", "disk": "disk"}


def ratio(found: Estimate | None) -> str:
    """Return a ratio with its interval, if it has one."""
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return f"{found.ratio:.3f}"
    return f"{found.ratio:.3f} ({found.low:.3f}-{found.high:.3f})"


def finding(row: Comparison) -> Finding:
    """Return a comparison as what a check has found."""
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
    """Return in one line what VMs reach of their host, with most of them at once.

    That is the worst ratio of each kind of throughput, and of each figure of which
    less is better, of rows that decide.
    """
    at_once = max((row.group.at_once for row in rows if row.primary), default=0)
    rows = [row for row in rows if row.primary and row.group.at_once == at_once]
    higher = [row for row in rows if row.better == "higher"]
    reached: list[str] = []
    # {why: which kinds}.
    untold: dict[str, list[str]] = {}
    for kind, name in _KINDS.items():
        found = [row for row in higher if row.group.metric.split(".")[0] == kind]
        worst = max(found, key=lambda row: row.level, default=None)
        if worst is None:
            untold.setdefault("not measured", []).append(name)
        elif worst.level is Level.UNKNOWN:
            untold.setdefault(f"not told ({worst.reason})", []).append(name)
        else:
            least = min(one.ratio for row in found if (one := row.judged))
            whose = "their share of the" if worst.against == "share" else "the host's"
            reached.append(f"{least:.2f} of {whose} {name}")
    times: dict[str, float] = {}
    for row in rows:
        if row.better == "lower" and row.judged:
            times[row.group.metric] = max(
                times.get(row.group.metric, 0.0), row.judged.ratio
            )
    parts = [f"{', '.join(names)} {why}" for why, names in untold.items()]
    if times:
        listed = ", ".join(f"{name} {ratio:.2f}" for name, ratio in times.items())
        parts.insert(0, f"{listed} times the host's")
    if reached:
        asked = f"at least {higher[0].target:.2f} is asked"
        parts.insert(0, f"{', '.join(reached)} ({asked})")
    vms = f"{number_of(at_once, 'VM')}{' at once' * (at_once > 1)}"
    return f"{vms}: {'; '.join(parts)}"

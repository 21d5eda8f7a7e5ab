# SPDX-License-Identifier: Apache-2.0
"""What comparisons say in words: one finding each, and one line for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nova_perfvm.findings import Finding
from nova_perfvm.measure.statistics.compare import Comparison
from nova_perfvm.measure.statistics.intervals import Estimate
from nova_perfvm.measure.statistics.verdict import Verdict
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
    reason = row.reason if row.verdict is Verdict.INCONCLUSIVE else ""
    return Finding(
        row.metric,
        row.verdict.level,
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
    """Return in one line which part of the host VMs reach, with most of them at once.

    That is the least ratio of each kind of throughput, of rows that decide.
    """
    rows = [row for row in rows if row.primary]
    at_once = max((row.at_once for row in rows), default=0)
    reached: list[str] = []
    missing: list[str] = []
    target = 0.0
    untold: dict[str, list[str]] = {}
    for kind, name in _KINDS.items():
        found = [
            row
            for row in rows
            if row.metric.split(".")[0] == kind
            and row.better == "higher"
            and row.at_once == at_once
        ]
        unsure = [row for row in found if row.verdict is Verdict.INCONCLUSIVE]
        told = [(one.ratio, row) for row in found if (one := row.judged)]
        if not found:
            missing.append(name)
        elif unsure and all(row.verdict is not Verdict.FAIL for row in found):
            untold.setdefault(unsure[0].reason, []).append(name)
        else:
            least, worst = min(told, key=lambda one: one[0])
            target = worst.target
            share = "their share of " if worst.against == "share" else ""
            whose = "its" if reached else "the host's"
            reached.append(f"{least:.2f} of {share}{whose} {name}")
    parts = []
    if reached:
        reach = "reaches" if at_once == 1 else "reach"
        parts.append(f"{reach} {', '.join(reached)}: at least {target:.2f} is asked")
    parts += [f"{', '.join(n)} not told ({why})" for why, n in untold.items()]
    parts += [f"{', '.join(missing)} not measured"] if missing else []
    vms = f"{number_of(at_once, 'VM')}{' at once' * (at_once > 1)}"
    return f"{vms}{'' if reached else ':'} {'; '.join(parts)}"

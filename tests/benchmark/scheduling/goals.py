# SPDX-License-Identifier: Apache-2.0
"""What requests may cost at most, as ratios to stock in the same run."""

import dataclasses
from collections.abc import Callable

from tests.benchmark.scheduling.arms import RECOMMENDED, REPLACEMENT, Arm
from tests.benchmark.scheduling.flavors import HIGH
from tests.benchmark.scheduling.pools import POOLS

_BUSY = 0.95


@dataclasses.dataclass(frozen=True)
class Goal:
    """One goal; what is worst counts.

    :ivar words: what it is about
    :ivar most: the ratio that may not be exceeded
    :ivar about: whether it is about a record
    """

    words: str
    most: float
    about: Callable

    def worst(self, records, idle=False):
        """Return the record with the highest ratio; None when there is none.

        :param idle: of the pools where nothing is taken alone
        """
        largest = max(record["hosts"] for record in records)
        found = [
            record
            for record in records
            if record["hosts"] == largest
            and self.about(record)
            and not (idle and record["taken"])
        ]
        return max(found, key=lambda record: record["ratio"], default=None)

    def measured(self, records, idle=False):
        """Return the worst ratio and where it was, in words."""
        worst = self.worst(records, idle)
        if worst is None:
            return "not measured" if not idle else ""
        where = f"{worst['pool']}, {worst['request']}"
        if not idle:
            where += f", {worst['taken']:.0%} taken, stock sees {worst['stock_sees']}"
        alone = f"nova-scheduler alone {worst['scheduler_ratio']:.2f}"
        return f"{worst['ratio']:.2f} ({alone}): {where}"

    def verdict(self, records):
        """Return whether it is met everywhere, and where nothing is taken."""
        worst, idle = self.worst(records), self.worst(records, idle=True)
        if worst is None:
            return ""
        if worst["ratio"] <= self.most:
            return "met"
        if idle and idle["ratio"] <= self.most:
            return "met where nothing is taken"
        return "missed"


def _ours(record, limit=None):
    names = {
        Arm(scheme, REPLACEMENT, limit).name if limit else Arm(scheme, REPLACEMENT).name
        for scheme in ("slots", "units")
    }
    return record["arm"] in names


GOALS = (
    Goal(
        "pinned, where counts tell, NUMATopologyFilter replaced",
        0.55,
        lambda r: _ours(r) and r["request"] == HIGH and POOLS[r["pool"]].counts,
    ),
    Goal(
        "general, NUMATopologyFilter replaced",
        0.70,
        lambda r: _ours(r) and r["request"] != HIGH and POOLS[r["pool"]].counts,
    ),
    Goal(
        "busy, where counts cannot tell",
        0.10,
        lambda r: (
            _ours(r)
            and r["taken"] >= _BUSY
            and r["request"] == HIGH
            and not POOLS[r["pool"]].counts
        ),
    ),
    Goal(
        f"max_placement_results {RECOMMENDED}, everywhere",
        0.15,
        lambda r: _ours(r, RECOMMENDED),
    ),
)

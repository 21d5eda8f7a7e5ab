# SPDX-License-Identifier: Apache-2.0
"""Whether Nova's NUMATopologyFilter costs more where a request asks for a slot.

Pairs of requests, one right after the other, each first as often as the other: stock
against a second process of the same stock, which shows the noise, and against slots.
"""

import statistics

from tests.benchmark.scheduling.arms import NUMA, Arm
from tests.benchmark.scheduling.flavors import ASKED, HIGH
from tests.benchmark.scheduling.pools import POOLS

STOCK = Arm("stock")
# What is compared with stock: an arm, and which process of it.
OTHERS = {
    "stock, another process": (STOCK, 1),
    "filter only": (Arm("filter"), 0),
    "slots": (Arm("slots"), 0),
}


def measure(rig, hosts, pairs, tell):
    """Return ratios of NUMATopologyFilter's CPU time to that of stock."""
    rig.fill(POOLS["dedicated"], hosts, 0)
    first = rig.scheduler(STOCK)
    records = []
    for name, (arm, number) in OTHERS.items():
        second = rig.scheduler(arm, number)
        ratios = []
        for turn in range(-1, pairs):
            order = (first, second) if turn % 2 else (second, first)
            found = {id(p): p.ask("schedule", ASKED[HIGH]) for p in order}
            ours, theirs = (found[id(p)]["phases"][NUMA] for p in (second, first))
            # The first of all requests reads what later ones know.
            if turn >= 0:
                ratios.append(ours / theirs)
        tell(f"paired: {name}")
        low, middle, high = statistics.quantiles(ratios, n=4)
        records.append(
            {
                "arm": name,
                "hosts": hosts,
                "pairs": pairs,
                "ratio": round(middle, 3),
                "quartiles": [round(low, 3), round(high, 3)],
                "range": [round(min(ratios), 3), round(max(ratios), 3)],
            }
        )
    return records

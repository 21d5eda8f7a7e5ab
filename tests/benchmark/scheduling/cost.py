# SPDX-License-Identifier: Apache-2.0
"""What a request costs, phase by phase, and how many a second are done."""

import itertools
import statistics
import time

from tests.benchmark.command import tell
from tests.benchmark.scheduling.arms import RECOMMENDED, REPLACEMENT, Arm, arms
from tests.benchmark.scheduling.flavors import ASKED, HIGH
from tests.benchmark.scheduling.pools import MIXED_POOLS, POOLS

SCHEDULERS = (1, 2, 4)
STOCK = Arm("stock")
TAKEN = (0.0, 0.5, 0.95, 0.99)
_WARM_HOSTS = 5


def cost(rig, options):
    """Return a record for each pool, share taken, request and arm."""
    return compare(rig, options.rounds, POOLS.values(), options.hosts)


def cells(rig, options):
    """Return such records of pinned VMs of several sizes."""
    return compare(rig, options.rounds, MIXED_POOLS.values(), [options.study_hosts])


def compare(rig, rounds, pools, counts):
    """Return a record for each pool, number of hosts, share taken, request and arm.

    Arms take turns, in a direction that changes from round to round.
    """
    records = []
    for pool, hosts in itertools.product(pools, counts):
        compared = arms(pool.schemes)
        warm_up(rig, pool, compared)
        for share in TAKEN:
            rig.fill(pool, hosts, share)
            where = {"pool": pool.name, "hosts": hosts, "taken": share}
            for request in pool.requests:
                samples = {arm: [] for arm in compared}
                for number in range(rounds):
                    for arm in compared[:: -1 if number % 2 else 1]:
                        found = rig.scheduler(arm).ask("schedule", ASKED[request])
                        samples[arm].append(found)
                    tell(f"{hosts} hosts, {pool.name}, {share:.0%}, {number + 1}")
                records += [
                    where
                    | {"request": request}
                    | summary(arm, samples[arm], samples[STOCK])
                    for arm in compared
                ]
    return records


def warm_up(rig, pool, compared):
    """Let each process read what it reads once."""
    rig.fill(pool, _WARM_HOSTS, 0)
    for arm in compared:
        for request in pool.requests:
            rig.scheduler(arm).ask("schedule", ASKED[request])


def total(sample):
    """Return the CPU time of a request, that of Placement included, in ms."""
    return sample["scheduler_ms"] + sample["placement_ms"]


def summary(arm, samples, stock):
    """Return medians of the rounds, and the ratios to stock within each round."""

    def median(values):
        return round(statistics.median(values), 3)

    pairs = zip(samples, stock, strict=True)
    return {
        "arm": arm.name,
        "scheduler_ms": median(s["scheduler_ms"] for s in samples),
        "placement_ms": median(s["placement_ms"] for s in samples),
        "wall_ms": median(s["wall_ms"] for s in samples),
        "ratio": median(total(ours) / total(theirs) for ours, theirs in pairs),
        "candidates": samples[0]["candidates"],
        "hosts_seen": samples[0]["hosts"],
        "refused": samples[0]["refused"],
        "placed": sum(s["placed"] for s in samples),
        "rounds": len(samples),
    }


def throughput(rig, options):
    """Return how many requests a second several schedulers do at once."""
    hosts, each = options.study_hosts, options.rounds
    compared = (
        STOCK,
        Arm("slots", REPLACEMENT),
        Arm("slots", REPLACEMENT, RECOMMENDED),
    )
    rig.fill(POOLS["dedicated"], hosts, 0.5)
    records = []
    for count in SCHEDULERS:
        for arm in compared:
            found = [rig.scheduler(arm, number) for number in range(count)]
            rig.at_once((process, "repeat", ASKED[HIGH], 1) for process in found)
            started = time.monotonic()
            answers = rig.at_once(
                (process, "repeat", ASKED[HIGH], each) for process in found
            )
            seconds = time.monotonic() - started
            tell(f"{count} schedulers, {arm.name}")
            records.append(
                {
                    "schedulers": count,
                    "arm": arm.name,
                    "hosts": hosts,
                    "requests": count * each,
                    "placed": sum(placed for _, _, placed in answers),
                    "per_second": round(count * each / seconds, 3),
                    "cpu_ms_each": round(
                        sum(cpu for _, cpu, _ in answers) / count / each * 1000, 1
                    ),
                }
            )
    return records

# SPDX-License-Identifier: Apache-2.0
"""How far plans of migrations are from the best ones, on random clouds.

Each cloud has a few small hosts with VMs of both classes at random; room is made
for one to four more VMs of a random flavor.  The best that there may be is that of
:mod:`tests.benchmark.best_plan`: no cheaper plan gives as much room.

    python -m tests.benchmark.plan_gap [--clouds N]
"""

import argparse
import collections
import random
import sys
import time

from nova_perfvm.changes.migrations import goals
from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.planning import Planning
from nova_perfvm.diagnose.explain import request_of
from nova_perfvm.diagnose.verdicts import settings_for
from tests.benchmark.best_plan import UnsolvedError, best
from tests.benchmark.command import positive, tell
from tests.unit.changes.migrations import clouds

CLOUDS = 500
SEED = 1
HOSTS, SERVERS = 6, 14
MOST_VMS = 4


def measure(seed):
    """Return (VMs gained, gained at best, cost, cost of the best arrangement).

    Those of the best are None where it was not found.
    """
    rng = random.Random(seed)
    scene = clouds.scene(rng, HOSTS, SERVERS)
    planning = Planning(scene.policy, scene.snapshot, settings_for(scene.policy))
    kind = planning.kind_of_request(request_of(scene.snapshot, flavor=scene.flavor)[0])
    start = Arrangement(planning)
    have = start.room(kind, goals.ALL_SLOTS)
    count = have + rng.randint(1, MOST_VMS)
    end = goals.enlarged(start, kind, count, None)
    gained = end.room(kind, count) - have
    try:
        most, least = best(start, kind, count, end)
    except UnsolvedError:
        return gained, None, end.cost_mb, None
    return gained, most - have, end.cost_mb, least


def summary(found):
    """Return the figures of many clouds, as lines."""
    solved = [row for row in found if row[1] is not None]
    some = [row for row in solved if row[1]]
    vms = collections.Counter()
    for gained, most, _, _ in some:
        vms.update(gained=gained, most=most)
    same = [row for row in some if row[0] == row[1]]
    worse = sum(row[2] > row[3] for row in same)
    yield f"clouds: {len(found)}, of which the best is known: {len(solved)}"
    yield f"where something can be gained: {len(some)}"
    yield f"VMs gained: {vms['gained']}, at best {vms['most']}"
    yield f"fewer than at best: {len(some) - len(same)} clouds"
    yield f"as many, at a higher cost: {worse} of {len(same)} clouds"


def main(arguments=None):
    """Print the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmark.plan_gap",
        description="Show how far plans of migrations are from the best ones.",
    )
    parser.add_argument("--clouds", type=positive, default=CLOUDS, help="(%(default)s)")
    options = parser.parse_args(arguments)
    begun = time.process_time()
    found = []
    for number in range(options.clouds):
        found.append(measure(SEED * 1_000_000 + number))
        tell(f"{number + 1} of {options.clouds} clouds")
    tell("")
    for line in summary(found):
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{time.process_time() - begun:.0f} s of CPU time\n")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""How far plans of migrations are from the best ones, on random clouds.

Each cloud has a few small hosts with VMs of both classes at random; room is made
for one to four more VMs of a random flavor.  The best plan is that of
:mod:`tests.benchmark.best_plan`: no cheaper one gives as much room.

    python -m tests.benchmark.plan_gap [--clouds N]
"""

import argparse
import collections
import random
import sys
import time

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.planning import Planning
from nova_perfvm.changes.migrations.room import Demanded, enlarged
from nova_perfvm.diagnose.explain import request_of, settings_for
from tests.benchmark.best_plan import UnsolvedError, best_order
from tests.benchmark.command import positive, tell
from tests.unit.changes.migrations import clouds

CLOUDS = 500
SEED = 1
HOSTS, SERVERS = 6, 14
MOST_VMS = 4


def measure(seed):
    """Return (VMs gained, gained by the best plan, cost, cost of the best plan).

    Those of the best plan are None where it was not found.
    """
    rng = random.Random(seed)
    scene = clouds.scene(rng, HOSTS, SERVERS)
    planning = Planning(scene.policy, scene.snapshot, settings_for(scene.policy))
    kind = planning.kind_of_request(request_of(scene.snapshot, flavor=scene.flavor)[0])
    start = Arrangement(planning)
    demanded = Demanded(kind, Demanded(kind).room(start) + rng.randint(1, MOST_VMS))
    found = enlarged(start, demanded, None)
    gained, spent = demanded.gain(start, found.end), found.weight(demanded.weight)
    try:
        best = best_order(start, demanded, found)
    except UnsolvedError:
        return gained, None, spent, None
    return gained, demanded.gain(start, best.end), spent, best.weight(demanded.weight)


def summary(found):
    """Return the figures of many clouds, as lines."""
    solved = [row for row in found if row[1] is not None]
    some = [row for row in solved if row[1]]
    vms = collections.Counter()
    for gained, most, _, _ in some:
        vms.update(gained=gained, most=most)
    same = [row for row in some if row[0] == row[1]]
    worse = sum(row[2] > row[3] for row in same)
    yield f"clouds: {len(found)}, of which the best plan is known: {len(solved)}"
    yield f"with a plan that gains something: {len(some)}"
    yield f"VMs gained: {vms['gained']}, by the best plans {vms['most']}"
    yield f"fewer than the best plan gains: {len(some) - len(same)} clouds"
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

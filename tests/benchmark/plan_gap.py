# SPDX-License-Identifier: Apache-2.0
"""How far plans of migrations are from the best ones, on random clouds.

Each cloud has a few small hosts with VMs of both classes at random; room is made
for one to four more VMs of a random flavor.  The best plan is OR-tools', whose
answer is proved: no cheaper end gives as much room.

    python -m tests.benchmark.plan_gap [--clouds N] [--seed N]
"""

import argparse
import collections
import random
import sys
import time

from nova_perfvm.changes.migrations import exact
from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.patterns import Limits, TooLargeError
from nova_perfvm.changes.migrations.planning import Planning
from nova_perfvm.changes.migrations.room import Demanded, cost, enlarged
from nova_perfvm.diagnose.explain import request_of, settings_for
from tests.benchmark.command import positive, tell
from tests.unit.changes.migrations import clouds

CLOUDS = 500
SEED = 1
HOSTS, SERVERS = 6, 14
MOST_VMS = 4


def measure(seed):
    """Return (VMs wanted, gained, best, cost, least cost) of one cloud.

    The last two are None where nothing can be gained; all but the first two are where
    the best plan was not found.
    """
    rng = random.Random(seed)
    scene = clouds.scene(rng, HOSTS, SERVERS)
    planning = Planning(scene.policy, scene.snapshot, settings_for(scene.policy))
    start = Arrangement(planning)
    kind = planning.kind_of_request(request_of(scene.snapshot, flavor=scene.flavor)[0])
    have = Demanded(kind).room(start)
    wanted = rng.randint(1, MOST_VMS)
    demanded = Demanded(kind, have + wanted)
    found = enlarged(start, demanded, None)
    gained, spent = demanded.room(found.end) - have, cost(found, demanded.weight)
    limits = Limits(spent if gained == wanted else None)
    try:
        best = exact.best(start, demanded, limits)
    except (TooLargeError, exact.UnsolvedError):
        return wanted, gained, None, spent, None
    most = demanded.room(best.end) - have
    return wanted, gained, most, spent, cost(best, demanded.weight)


def summary(found):
    """Return the figures of many clouds, as lines."""
    solved = [row for row in found if row[2] is not None]
    some = [row for row in solved if row[2]]
    vms = collections.Counter()
    for _, gained, most, _, _ in some:
        vms.update(gained=gained, most=most)
    same = [row for row in some if row[1] == row[2]]
    worse = sum(row[3] > row[4] for row in same)
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
    parser.add_argument("--seed", type=int, default=SEED, help="(%(default)s)")
    options = parser.parse_args(arguments)
    begun = time.process_time()
    found = []
    for number in range(options.clouds):
        found.append(measure(options.seed * 1_000_000 + number))
        tell(f"{number + 1} of {options.clouds} clouds")
    tell("")
    for line in summary(found):
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{time.process_time() - begun:.0f} s of CPU time\n")


if __name__ == "__main__":
    main()

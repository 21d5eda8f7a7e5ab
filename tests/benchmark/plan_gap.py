# SPDX-License-Identifier: Apache-2.0
"""How far plans of migrations are from the best ones, on random clouds.

Each cloud has a few small hosts with VMs of both classes at random; room is made
for one to four more VMs of a random flavor, or, with --defragment, slots are won
by one to five migrations.  The best plan is that of :mod:`tests.benchmark.best_plan`:
no cheaper one gives as much room.

    python -m tests.benchmark.plan_gap [--defragment] [--clouds N] [--seed N]
"""

import argparse
import collections
import random
import sys
import time

from nova_perfvm.changes.migrations import goals
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
MOST_MOVES = 5


def room(seed):
    """Return the figures of a plan that makes room in one cloud; see compare()."""
    rng = random.Random(seed)
    scene, planning = cloud(rng)
    kind = planning.kind_of_request(request_of(scene.snapshot, flavor=scene.flavor)[0])
    have = Demanded(kind).room(Arrangement(planning))
    return compare(planning, Demanded(kind, have + rng.randint(1, MOST_VMS)))


def slots(seed):
    """Return the figures of a plan that wins slots in one cloud; see compare()."""
    rng = random.Random(seed)
    scene, planning = cloud(rng)
    (vm_class,) = scene.policy.pinned_classes
    demanded = goals.slots(planning, vm_class)
    return compare(planning, demanded, rng.randint(1, MOST_MOVES))


def cloud(rng):
    """Return a random cloud, and what plans are made with there."""
    scene = clouds.scene(rng, HOSTS, SERVERS)
    settings = settings_for(scene.policy)
    return scene, Planning(scene.policy, scene.snapshot, settings)


def compare(planning, demanded, most_moves=None):
    """Return (VMs gained, gained by the best plan, cost, cost of the best plan).

    Those of the best plan are None where it was not found.
    """
    start = Arrangement(planning)
    found = enlarged(start, demanded, most_moves)
    gained, spent = demanded.gain(start, found.end), found.weight(demanded.weight)
    try:
        best = best_order(start, demanded, found, most_moves)
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
    parser.add_argument("--seed", type=int, default=SEED, help="(%(default)s)")
    parser.add_argument(
        "--defragment",
        action="store_true",
        help="win slots by a few migrations, instead of making room for VMs",
    )
    options = parser.parse_args(arguments)
    measure = slots if options.defragment else room
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

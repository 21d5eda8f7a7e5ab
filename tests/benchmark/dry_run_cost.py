# SPDX-License-Identifier: Apache-2.0
"""What Nova's scheduler costs when it is run dry, beside one request that it serves.

Both on 1,000 hosts in a MariaDB and a real Placement, by turns in one process; the dry
run asks all filters of each host, as ``explain --long`` does.

    python -m tests.benchmark.dry_run_cost [HOSTS]
"""

import itertools
import resource
import statistics
import sys
import tempfile

from nova_perfvm.cloud.dry_run import process
from nova_perfvm.facts.dry_run import Question
from tests.benchmark.scheduling.arms import REPLACEMENT, Arm
from tests.benchmark.scheduling.cost import warm_up
from tests.benchmark.scheduling.databases import Databases
from tests.benchmark.scheduling.flavors import ASKED
from tests.benchmark.scheduling.pools import POOLS
from tests.benchmark.scheduling.rig import Rig

# With our filter alone many hosts are refused, and asked for all filters behind it.
ARMS = (Arm("filter", REPLACEMENT), Arm("slots", REPLACEMENT))
ROUNDS = 5
MOST_RATIO = 1.5


def main(hosts="1000"):
    """Print a table; exit 1 where a dry run costs more than it may."""
    worst = 0.0
    write = sys.stdout.write
    with (
        tempfile.TemporaryDirectory(prefix="dry-") as where,
        Databases(where) as database,
        Rig(database) as rig,
    ):
        pool = next(pool for pool in POOLS.values() if "slots" in pool.schemes)
        warm_up(rig, pool, ARMS)
        write(f"{'taken':>6} {'arm':22} {'served s':>9} {'dry s':>7} ratio\n")
        for taken, arm in itertools.product((0.0, 0.5, 0.95), ARMS):
            rig.fill(pool, int(hosts), taken)
            request = pool.requests[0]
            scheduler = rig.scheduler(arm)
            pairs = [
                (
                    scheduler.ask("schedule", ASKED[request])["scheduler_ms"] / 1000,
                    scheduler.ask("dry", ASKED[request])["seconds"],
                )
                for _ in range(ROUNDS)
            ]
            served, dry = map(statistics.median, zip(*pairs, strict=True))
            worst = max(worst, dry / served)
            write(
                f"{taken:6.0%} {arm.name:22} {served:9.3f} {dry:7.3f} "
                f"{dry / served:5.2f}\n"
            )
        conf = next(database.layout.etc.glob("nova-scheduler-*.conf"))
        write(f"start-up: {start_up(conf):.1f} s of CPU\n")
    return int(worst > MOST_RATIO)


def start_up(conf):
    """Return the CPU seconds of a process that is asked for a flavor nobody has."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = process.ask(str(conf), Question(flavor="none"))
    assert "FlavorNotFound" in answer.refused, answer
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""How far plans of migrations are from an upper bound, on clouds of production's shape.

Slots of 16 CPUs are freed within budgets of migrations on a cloud of
:mod:`tests.benchmark.plan_clouds`; :mod:`tests.benchmark.plan_bound` says what no plan
exceeds.  CPU seconds are those of the plan alone.

    python -m tests.benchmark.plan_gap [--hosts N] [--large] [--fill SHARE] [--greedy]
"""

import argparse
import sys
import time
from unittest import mock

from nova_perfvm import solver
from nova_perfvm.changes.migrations import goals
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.diagnose.verdicts import settings_for
from tests.benchmark import plan_bound, plan_clouds
from tests.benchmark.command import positive

BUDGETS = (10, 20, 50)
SLOT = 16


def measure(snapshot, budget, time_s, *, greedy=False):
    """Return (slots gained, migrations, CPU seconds, notes) of a plan."""
    policy = plan_clouds.policy()
    options = PlanOptions(max_moves=budget, time_limit_s=time_s)
    begun = time.process_time()
    planning = Planning(policy, snapshot, settings_for(policy), options)
    installed = solver.installed() and not greedy
    with mock.patch.object(solver, "installed", lambda: installed):
        plan = goals.defragment(planning, policy.pinned_class(f"pinned-{SLOT}"))
    return plan.gained, len(plan.moves), time.process_time() - begun, plan.notes


def main(arguments=None):
    """Print a row for each budget."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmark.plan_gap",
        description="Show how far plans of migrations are from an upper bound.",
    )
    parser.add_argument("--hosts", type=positive, default=237, help="(%(default)s)")
    parser.add_argument("--large", action="store_true", help="few large VMs a host")
    parser.add_argument("--seed", type=positive, default=1, help="(%(default)s)")
    parser.add_argument("--fill", type=float, help="share of CPUs in use (by chance)")
    parser.add_argument("--greedy", action="store_true", help="without the solver")
    parser.add_argument("--budgets", type=positive, nargs="+", default=BUDGETS)
    parser.add_argument("--time-limit", type=float, default=10.0, help="(%(default)s)")
    options = parser.parse_args(arguments)
    sizes = plan_clouds.LARGE if options.large else plan_clouds.SMALL
    snapshot = plan_clouds.snapshot(options.hosts, options.seed, sizes, options.fill)
    sys.stdout.write(f"{options.hosts} hosts, {len(snapshot.servers)} VMs\n")
    sys.stdout.write("budget  gained  bound  share  migrations  CPU s\n")
    for budget in options.budgets:
        gained, moves, cpu_s, _ = measure(
            snapshot, budget, options.time_limit, greedy=options.greedy
        )
        most, _ = plan_bound.bound(snapshot, SLOT, budget)
        share = gained / most if most else 1
        row = (
            f"{budget:6}  {gained:6}  {most:5}  {share:5.0%}  {moves:10}  {cpu_s:5.1f}"
        )
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

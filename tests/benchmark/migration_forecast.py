# SPDX-License-Identifier: Apache-2.0
"""How far forecasts of live migrations are from migrations between two QEMUs.

The guests write at planted rates, over limited bandwidths, with and without
auto-converge, with downtimes that rise, and with either action at a timeout.  The
forecast knows the dirty rate that QEMU has calculated before, and the working set; in
the last line, as plans, all memory for that.

    python -m tests.benchmark.migration_forecast [--migrations 200] [--seed N]
"""

import argparse
import concurrent.futures
import random
import statistics
import sys
import tempfile
from typing import NamedTuple

from nova_perfvm.changes.migrations.forecast import Forecast, Limits, Writing, forecast
from tests.benchmark.command import positive, tell
from tests.guest import migration
from tests.guest.migration import Measured, Planted

MIGRATIONS = 200
AT_ONCE = 2
# A socket of this machine, in MiB per second; it matters for a tenth of a second.
LINK = 1000
# {kind: (share of the migrations, least rate as a power of two of the bandwidth)}: a
# guest that writes slowly is neither throttled nor paused.
KINDS = {
    "plain": (50, -4),
    "steps": (20, -4),
    "auto-converge": (20, -1),
    "paused": (10, -1),
}
MOST_RATE = 2


class Trial(NamedTuple):
    """A migration as it was planted, forecast and measured."""

    kind: str
    planted: Planted
    forecast: Forecast
    measured: Measured

    @property
    def right(self):
        """Whether it converged, or did not, as forecast."""
        return self.forecast.outcome == self.measured.outcome

    @property
    def error(self):
        """How wrong the time was, as a share; None where a timeout has set it."""
        if not self.right or not self.forecast.moved:
            return None
        return abs(self.forecast.time_s - self.measured.time_s) / self.measured.time_s


def draw(rng):
    """Return a random kind and a migration of it, whose first round takes seconds."""
    (kind,) = rng.choices([*KINDS], [share for share, _ in KINDS.values()])
    memory = rng.randint(128, 192)
    first_s = rng.uniform(2, 3)
    bandwidth = round(memory / first_s)
    rate = bandwidth * 2 ** rng.uniform(KINDS[kind][1], MOST_RATE)
    downtime_s = rng.uniform(0.03, 0.5)
    downtimes = [(0.0, downtime_s)]
    if kind == "steps":
        downtimes = [(n * first_s / 2, downtime_s * (n + 1) / 4) for n in range(4)]
    # Nova's default is some hundred times the first round.
    timeout_s = first_s * rng.uniform(4, 6)
    limits = Limits(
        tuple(downtimes),
        timeout_s * 1.5 if kind == "auto-converge" else timeout_s,
        "pause" if kind == "paused" else "abort",
        auto_converge=kind == "auto-converge",
    )
    working_set = round(memory * rng.uniform(0.05, 0.8))
    return kind, Planted(memory, working_set, rate, bandwidth, limits)


def run(kernel, kind, planted):
    """Make a migration, and forecast it by what was known before."""
    with tempfile.TemporaryDirectory() as directory:
        measured = migration.migrate(kernel, directory, planted)
    found = foretell(planted, measured.dirty_rate, planted.working_set)
    return Trial(kind, planted, found, measured)


def foretell(planted, dirty_rate, working_set):
    """Return the forecast of a migration whose dirty rate was measured in a second."""
    # It was rounded down.
    guest = Writing.measured(planted.memory, dirty_rate + 0.5, 1, working_set)
    return forecast(guest, planted.bandwidth, planted.limits, LINK)


def without_working_set(trial):
    """Return a trial with the forecast that plans make: of a set of all memory."""
    planted, dirty_rate = trial.planted, trial.measured.dirty_rate
    return trial._replace(forecast=foretell(planted, dirty_rate, planted.memory))


def trials(count, seed):
    """Yield random trials as they end."""
    rng = random.Random(seed)
    drawn = [draw(rng) for _ in range(count)]
    with (
        tempfile.TemporaryDirectory() as directory,
        concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        kernel = migration.compile_guest(directory)
        jobs = [pool.submit(run, kernel, *one) for one in drawn]
        for job in concurrent.futures.as_completed(jobs):
            yield job.result()


def describe(found):
    """Return the figures of trials, a line for each kind and one for all."""
    yield (
        f"{'kind':14}{'trials':>7}{'converged':>11}{'right':>7}{'median error':>14}"
        f"{'worst':>8}"
    )
    by_kind = {kind: [one for one in found if one.kind == kind] for kind in KINDS}
    unknown = [without_working_set(trial) for trial in found]
    for kind, some in {**by_kind, "all": found, "set unknown": unknown}.items():
        errors = [trial.error for trial in some if trial.error is not None]
        right = sum(trial.right for trial in some)
        converged = sum(trial.measured.outcome == "converges" for trial in some)
        figures = ("", "")
        if errors:
            figures = f"{statistics.median(errors):.1%}", f"{max(errors):.1%}"
        yield (
            f"{kind:14}{len(some):7}{converged:11}{right:7}{figures[0]:>14}"
            f"{figures[1]:>8}"
        )


def main(arguments=None):
    """Print the figures, and each migration that came out otherwise."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmark.migration_forecast",
        description="Show how far forecasts of live migrations are from real ones.",
    )
    parser.add_argument("--migrations", type=positive, default=MIGRATIONS)
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().getrandbits(32)
    )
    parser.add_argument("--verbose", action="store_true", help="print every migration")
    options = parser.parse_args(arguments)
    sys.stdout.write(f"seed {options.seed}\n")
    found = []
    for trial in trials(options.migrations, options.seed):
        found.append(trial)
        tell(f"{len(found)} of {options.migrations} migrations")
        if options.verbose or not trial.right:
            sys.stdout.write(f"{trial}\n")
    tell("")
    for line in describe(found):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()

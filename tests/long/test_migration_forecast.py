# SPDX-License-Identifier: Apache-2.0
"""Forecasts of live migrations beside migrations between two QEMUs."""

import os
import random
import shutil
import statistics

import testtools

from tests.benchmark import migration_forecast as benchmark
from tests.guest.migration import NEEDED

COUNT = int(os.environ.get("PERFVM_MIGRATIONS", str(benchmark.MIGRATIONS)))
LEAST_RIGHT, MOST_ERROR = 0.95, 0.2


class MigrationForecastTest(testtools.TestCase):
    def test_time_and_convergence(self):
        if missing := [name for name in NEEDED if shutil.which(name) is None]:
            self.skipTest(f"not installed: {', '.join(missing)}")
        seed = random.SystemRandom().getrandbits(32)
        found = list(benchmark.trials(COUNT, seed))
        said = "\n".join(
            [
                f"seed {seed}",
                *benchmark.describe(found),
                *(f"{trial}" for trial in found if not trial.right),
            ]
        )
        errors = [trial.error for trial in found if trial.error is not None]
        self.assertGreaterEqual(
            sum(trial.right for trial in found) / COUNT, LEAST_RIGHT, said
        )
        self.assertLessEqual(statistics.median(errors), MOST_ERROR, said)

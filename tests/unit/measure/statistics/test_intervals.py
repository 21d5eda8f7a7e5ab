# SPDX-License-Identifier: Apache-2.0

import math

import numpy as np
import testtools
from scipy import stats

from nova_perfvm.measure.statistics import intervals
from tests.benchmark import coverage


class EstimateTest(testtools.TestCase):
    def test_the_interval_is_that_of_students_t(self):
        ratios = [0.71, 0.74, 0.76, 0.73, 0.75]
        found = intervals.estimate(ratios)
        test = stats.ttest_1samp(np.log(ratios), 0)
        low, high = np.exp(test.confidence_interval(0.95))
        self.assertAlmostEqual(low, found.low)
        self.assertAlmostEqual(high, found.high)
        self.assertAlmostEqual(stats.gmean(ratios), found.ratio)
        self.assertFalse(found.drifts)

    def test_one_round_has_no_interval(self):
        found = intervals.estimate([0.977])
        self.assertEqual((None, None, 1), (found.low, found.high, found.rounds))
        self.assertEqual(intervals.LEAST_ROUNDS, intervals.rounds_needed(found, 0.7))

    def test_equal_ratios_are_a_point(self):
        found = intervals.estimate([0.5] * 20)
        self.assertEqual((0.5, 0.5), (found.low, found.high))
        self.assertEqual(21, intervals.rounds_needed(found, 0.7))

    def test_a_drift_widens_the_interval(self):
        drifting = [0.7 + 0.01 * n for n in range(20)]
        shuffled = [drifting[7 * n % 20] for n in range(20)]
        wide, narrow = map(intervals.estimate, (drifting, shuffled))
        self.assertTrue(wide.drifts)
        self.assertFalse(narrow.drifts)
        self.assertLess(wide.low, narrow.low)
        self.assertGreater(wide.high, narrow.high)

    def test_rounds_needed_are_enough(self):
        found = intervals.estimate([0.62, 0.80, 0.75, 0.66, 0.83])
        needed = intervals.rounds_needed(found, 0.70)
        distance = math.log(found.ratio / 0.70)
        self.assertGreater(needed, 5)
        self.assertLess(intervals.half_width(found.spread, needed), distance)
        self.assertGreater(intervals.half_width(found.spread, needed - 1), distance)

    def test_no_number_of_rounds_tells_equals_apart(self):
        found = intervals.estimate([0.6, 0.9, 0.7, 0.8, 0.75])
        self.assertIsNone(intervals.rounds_needed(found, found.ratio))


class CoverageTest(testtools.TestCase):
    """A short form of tests.benchmark.coverage."""

    TRIALS = 400

    def ours(self, rounds, autocorrelation, noise, trials=TRIALS):
        return coverage.coverage(
            coverage.ours,
            coverage.interleaved,
            rounds,
            autocorrelation,
            noise,
            trials,
        )

    def test_of_log_normal_noise(self):
        for noise in coverage.LOG_NORMAL:
            for rounds in (5, 20):
                for autocorrelation in (0.0, 0.6):
                    with self.subTest(noise=noise.name, rounds=rounds):
                        found = self.ours(rounds, autocorrelation, noise)
                        off = abs(found - 0.95)
                        self.assertLessEqual(off, coverage.tolerance(self.TRIALS))

    def test_stragglers_make_it_wide_not_narrow(self):
        found = self.ours(5, 0.9, coverage.STRAGGLING)
        self.assertGreater(found, 0.95)

    def test_the_page_has_what_comes_out(self):
        page = coverage.PAGE.read_text()
        rows = {tuple(row[4:-1].split('","')) for row in page.splitlines()}
        for noise, autocorrelation in (
            (coverage.NOISES[0], 0.0),
            (coverage.NOISES[2], 0.9),
            (coverage.STRAGGLING, 0.6),
        ):
            told = [r for r in rows if r[:2] == (noise.name, str(autocorrelation))]
            ((_, _, *cells),) = told
            for rounds, cell in list(zip(coverage.ROUNDS, cells, strict=True))[:2]:
                part = float(cell.split()[0]) / 100
                found = self.ours(rounds, autocorrelation, noise)
                # Of the page's trials, too, something is chance.
                off = math.hypot(
                    coverage.tolerance(self.TRIALS, part),
                    coverage.tolerance(coverage.TRIALS, part),
                )
                self.assertLessEqual(abs(found - part), off, (noise.name, rounds))

    def test_a_cell_of_the_page_to_the_digit(self):
        found = coverage.percent(
            coverage.ours, coverage.interleaved, 5, 0.9, coverage.STRAGGLING
        )
        row = f'   "{coverage.STRAGGLING.name}","0.9","{found}",'
        self.assertIn(row, coverage.PAGE.read_text())

    def test_a_bootstrap_of_five_would_not_do(self):
        found = coverage.coverage(
            coverage.bootstrap("percentile"),
            coverage.interleaved,
            5,
            0.0,
            coverage.NOISES[1],
            self.TRIALS,
        )
        self.assertLess(found, 0.95 - coverage.tolerance(self.TRIALS))

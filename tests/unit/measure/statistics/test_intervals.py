# SPDX-License-Identifier: Apache-2.0

import itertools

import numpy as np
import testtools
from scipy import stats

from nova_perfvm.measure.statistics import intervals
from tests.benchmark import coverage, proof


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
        self.assertIsNone(found.interval())

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

    def test_as_many_rounds_as_are_planned_tell(self):
        noise = coverage.Noise("10 %", 0.10)
        self.assertGreater(proof.told(0.75, noise, trials=100), intervals.POWER)
        # Where one round tells nothing of the spread the fewest are planned.
        single = intervals.estimate([0.977])
        self.assertEqual(intervals.LEAST_ROUNDS, intervals.rounds_needed(single, 0.7))

    def test_rows_that_are_judged_together(self):
        found = intervals.estimate([0.71, 0.74, 0.76, 0.73, 0.75])
        low, high = found.interval()
        self.assertEqual((found.low, found.high), (low, high))
        all_low, all_high = found.interval(of_rows=16)
        mean, scale = np.mean(logs := np.log([0.71, 0.74, 0.76, 0.73, 0.75])), 5**-0.5
        half = stats.t.isf(0.025 / 16, 4) * np.std(logs, ddof=1) * scale
        self.assertAlmostEqual(np.exp(mean - half), all_low)
        self.assertAlmostEqual(np.exp(mean + half), all_high)

    def test_no_number_of_rounds_tells_equals_apart(self):
        found = intervals.estimate([0.6, 0.9, 0.7, 0.8, 0.75])
        self.assertIsNone(intervals.rounds_needed(found, found.ratio))


class CoverageTest(testtools.TestCase):
    """A short form of tests.benchmark.coverage."""

    TRIALS = 400

    def held(self, rounds, autocorrelation, noise, trials=TRIALS):
        draw = coverage.interleaved
        return coverage.coverage(draw, rounds, autocorrelation, noise, trials)

    def test_of_log_normal_noise(self):
        for noise, rounds, autocorrelation in itertools.product(
            coverage.LOG_NORMAL, (5, 20), coverage.AUTOCORRELATIONS
        ):
            off = abs(self.held(rounds, autocorrelation, noise) - 0.95)
            most = coverage.tolerance(self.TRIALS)
            self.assertLessEqual(off, most, (noise.name, rounds, autocorrelation))

    def test_stragglers_make_it_wide_not_narrow(self):
        self.assertGreater(self.held(5, 0.9, coverage.STRAGGLING), 0.95)

    def test_the_page_has_what_comes_out(self):
        page = coverage.PAGE.read_text()
        trials = coverage.TRIALS
        for noise, autocorrelation in (
            (coverage.NOISES[0], 0.0),
            (coverage.STRAGGLING, 0.9),
        ):
            found = self.held(5, autocorrelation, noise, trials)
            row = f'   "{noise.name}","{autocorrelation}","{100 * found:.1f}",'
            self.assertIn(row, page)


class ProofTest(testtools.TestCase):
    """A short form of tests.benchmark.proof."""

    def test_a_vm_as_fast_as_its_host(self):
        for rounds in (5, 10):
            found = proof.rightly(rounds, proof.QUIET, trials=10)
            self.assertGreaterEqual(found, 0.9, rounds)

    def test_a_vm_that_misses_the_target(self):
        for bad in proof.BAD[:3]:
            found = proof.wrongly(5, bad, 0.9, trials=60)
            self.assertLessEqual(found, 0.025, bad.name)

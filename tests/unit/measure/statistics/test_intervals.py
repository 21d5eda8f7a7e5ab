# SPDX-License-Identifier: Apache-2.0

import itertools
import math

import numpy as np
import testtools
from scipy import stats

from nova_perfvm.measure.statistics import intervals
from nova_perfvm.measure.statistics.compare import LATENCY_TARGET, TARGET
from tests.benchmark import coverage, proof


class EstimateTest(testtools.TestCase):
    def test_the_interval_is_that_of_students_t(self):
        ratios = [0.71, 0.74, 0.76, 0.73, 0.75]
        found = intervals.estimate(ratios)
        test = stats.ttest_1samp(np.log(ratios), 0)
        low, high = np.exp(test.confidence_interval(0.95))
        found_low, found_high = found.interval()
        self.assertAlmostEqual(low, found_low)
        self.assertAlmostEqual(high, found_high)
        self.assertAlmostEqual(stats.gmean(ratios), found.ratio)
        self.assertFalse(found.drifts)

    def test_one_round_has_no_interval(self):
        found = intervals.estimate([0.977])
        self.assertEqual((None, 1), (found.interval(), found.rounds))
        self.assertEqual((0.977,), found.ratios)

    def test_equal_ratios_are_a_point(self):
        found = intervals.estimate([0.5] * 20)
        self.assertEqual((0.5, 0.5), found.interval())
        self.assertEqual(21, intervals.rounds_needed(found, 0.7, "higher"))

    def test_a_drift_widens_the_interval(self):
        drifting = [0.7 + 0.01 * n for n in range(20)]
        shuffled = [drifting[7 * n % 20] for n in range(20)]
        wide, narrow = map(intervals.estimate, (drifting, shuffled))
        self.assertTrue(wide.drifts)
        self.assertFalse(narrow.drifts)
        self.assertLess(wide.interval()[0], narrow.interval()[0])
        self.assertGreater(wide.interval()[1], narrow.interval()[1])

    def test_as_many_rounds_as_are_planned_tell(self):
        noise = coverage.Noise("10 %", 0.10)
        self.assertGreater(coverage.told(0.75, noise, trials=60), intervals.POWER)
        # Where one round tells nothing of the spread the fewest are planned.
        single = intervals.estimate([0.977])
        self.assertEqual(
            intervals.LEAST_ROUNDS, intervals.rounds_needed(single, 0.7, "higher")
        )

    def test_rows_that_are_judged_together(self):
        found = intervals.estimate([0.71, 0.74, 0.76, 0.73, 0.75])
        all_low, all_high = found.interval(of_rows=16)
        mean, scale = np.mean(logs := np.log([0.71, 0.74, 0.76, 0.73, 0.75])), 5**-0.5
        half = stats.t.isf(0.025 / 16, 4) * np.std(logs, ddof=1) * scale
        self.assertAlmostEqual(np.exp(mean - half), all_low)
        self.assertAlmostEqual(np.exp(mean + half), all_high)

    def test_no_number_of_rounds_tells_equals_apart(self):
        found = intervals.estimate([0.6, 0.9, 0.7, 0.8, 0.75])
        self.assertIsNone(intervals.rounds_needed(found, found.ratio, "higher"))


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


class AssuredTest(testtools.TestCase):
    """The bound that a mode nobody saw leaves."""

    def test_equal_rounds_leave_what_they_may_have_missed(self):
        """n equal rounds miss a mode in 1 - 0.025 ** (1 / n) of the runs."""
        for rounds in (5, 10, 20):
            found = intervals.estimate([0.8] * rounds)
            missed = 1 - 0.025 ** (1 / rounds)
            for better, sign in (("higher", 1), ("lower", -1)):
                part = intervals.assured(found, better) / 0.8
                self.assertAlmostEqual(-sign * missed, math.log2(part), delta=0.02)

    def test_it_holds_for_normal_noise_and_for_modes(self):
        rng = np.random.default_rng(7)
        normal = rng.standard_normal((1000, 10)) * 0.1
        half = np.where(rng.random((1000, 10)) < 0.2, np.log(0.5), 0.0)
        for _name, logs, mean in (
            ("normal", normal, 0.0),
            ("1 of 5 at half speed", half + normal / 10, 0.2 * np.log(0.5)),
        ):
            above = sum(
                intervals.assured(intervals.estimate(np.exp(row)), "higher")
                > np.exp(mean)
                for row in logs
            )
            self.assertLessEqual(above / 1000, 0.025 + 0.01)

    def test_a_stall_that_was_seen_is_as_deep_when_it_was_not(self):
        seen = [1.0] * 19
        half = intervals.assured(intervals.estimate([*seen, 0.5]), "higher")
        deep = intervals.assured(intervals.estimate([*seen, 0.1]), "higher")
        self.assertGreater(half, 0.75)
        self.assertLess(deep, 0.63)

    def test_a_drift_lowers_it(self):
        drifting = [0.9 + 0.01 * n for n in range(20)]
        shuffled = [drifting[7 * n % 20] for n in range(20)]
        low, high = (
            intervals.assured(intervals.estimate(one), "higher")
            for one in (drifting, shuffled)
        )
        self.assertLess(low, high - 0.01)


class ProofTest(testtools.TestCase):
    """A short form of tests.benchmark.proof."""

    def rates(self, trial, *args, trials):
        return proof.rates(trial, *args, trials=trials, seeds=(11, 12))

    def test_a_vm_as_fast_as_its_host(self):
        for variation, tail in ((0.02, 0.1), (0.10, 0.3)):
            found = self.rates(proof.of_all, 20, variation, tail, trials=30)
            self.assertGreaterEqual(min(found), 0.9)

    def test_a_vm_that_misses_the_target(self):
        """Of a rate of 2.5 %, 400 trials give above 4.3 % by chance in 1 % of cases."""
        for law in proof.LAWS:
            if law.name in proof.NOT_IN_AN_HOUR:
                continue
            found = self.rates(proof.of_one, 20, law, 0.9 * TARGET, trials=400)
            self.assertLessEqual(max(found), 0.043)

    def test_the_page_has_what_comes_out(self):
        (law,) = [
            law for law in proof.LAWS if law.name.startswith("1 of 5 runs at 0.4")
        ]
        found = (max(proof.rates(proof.of_one, n, law, 0.9 * TARGET)) for n in (5, 10))
        percents = ",".join(f'"{100 * part:.1f}"' for part in found)
        row = f'   "{law.name}",{percents},'
        self.assertIn(row, coverage.PAGE.read_text())

    def test_few_rounds_do_not_prove_what_has_modes(self):
        modes = [law for law in proof.LAWS if "half speed" in law.name]
        for rounds in (5, 10):
            for law in modes:
                found = self.rates(proof.of_one, rounds, law, 0.9 * TARGET, trials=100)
                self.assertLessEqual(max(found), 0.025)

    def test_latencies_are_judged_as_throughput_is(self):
        (law,) = [law for law in proof.LAWS if law.name == "1 of 4 runs at half speed"]
        args = (proof.of_one, 10, law, 0.9 / LATENCY_TARGET, proof.TAIL)
        self.assertLessEqual(max(self.rates(*args, trials=100)), 0.025)

    def test_more_rounds_never_lower_the_power(self):
        for part, cv in ((0.8, 0.02), (0.9, 0.05), (1.0, 0.1)):
            law = proof.Modes("", variation=cv)
            found = [
                sum(self.rates(proof.of_one, rounds, law, part, trials=40))
                for rounds in (10, 20, 30)
            ]
            self.assertEqual(sorted(found), found)

# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import testtools

from nova_perfvm.findings import Level
from nova_perfvm.measure.samples import Load, Moment, Samples, ScaleOut
from nova_perfvm.measure.statistics import scaling
from tests.unit.measure import published


def divided(totals, rounds=5):
    """Return N VMs of 120 / N threads each, that do totals together."""
    return [
        published.measurement(
            f"vm{vm}",
            "gmake.per_hour",
            120 // vms,
            total / vms * (1 + 0.002 * number),
            at_once=vms,
            round=number,
        )
        for vms, total in totals.items()
        for vm in range(vms)
        for number in range(1, rounds + 1)
    ]


def served(*loads):
    return list(scaling.judge_service(ScaleOut("api", loads)))


class VMsTest(testtools.TestCase):
    def test_vms_that_divide_a_host(self):
        found = scaling.judge_vms(divided({1: 100, 2: 90, 4: 60, 10: 30}))
        self.assertEqual(
            [(2, 0.9), (4, 0.6), (10, 0.3)],
            sorted(
                (row.number, round(row.observed, 6))
                for row in found
                if row.what == "of alone"
            ),
        )

    def test_a_run_alone_with_as_many_threads(self):
        both = [replace(m, threads=20) for m in divided({1: 100, 2: 150})]
        (found,) = [r for r in scaling.judge_vms(both) if r.what == "of alone"]
        self.assertAlmostEqual(1.5, found.observed)

    def test_the_peak(self):
        for totals, level in (
            ({1: 100, 2: 120, 4: 110}, Level.OK),
            ({1: 100, 2: 120, 4: 107}, Level.FAILURE),
        ):
            (found,) = [
                row
                for row in scaling.judge_vms(divided(totals))
                if row.what == "of the peak"
            ]
            self.assertEqual((4, level), (found.number, found.level))
            fails = level is Level.FAILURE
            self.assertEqual(fails, found.reason == "4 VMs do less together than 2")

    def test_verdicts(self):
        found = scaling.judge_all(Samples(tuple(divided({1: 100, 2: 95, 4: 60}))))
        self.assertEqual(
            [
                (4, "of alone", Level.FAILURE),
                (2, "of alone", Level.OK),
                (4, "of the peak", Level.FAILURE),
            ],
            [(row.number, row.what, row.level) for row in found],
        )

    def test_what_is_too_little(self):
        found = scaling.judge_all(Samples(tuple(divided({1: 100, 2: 95}, 1))))
        self.assertEqual(Level.UNKNOWN, found[0].level)
        alone = Samples(tuple(divided({1: 100})))
        self.assertEqual([], scaling.judge_all(alone))


class ScaleOutTest(testtools.TestCase):
    def test_rps(self):
        found = {
            (row.number, row.what): row
            for row in scaling.judge_service(published.rps())
        }
        self.assertEqual(
            [(2, 1.0), (10, 0.617)],
            [
                (number, round(row.observed, 3))
                for (number, what), row in found.items()
                if what == "linearity"
            ],
        )
        generator = found[10, "generator"]
        self.assertEqual(Level.FAILURE, generator.level)
        self.assertIn("90 % CPU", generator.reason)
        linearity = found[10, "linearity"]
        self.assertEqual(Level.UNKNOWN, linearity.level)
        self.assertIn("generator was saturated", linearity.reason)
        decay = found[10, "decay"]
        self.assertEqual((Level.FAILURE, 0.5), (decay.level, decay.observed))
        self.assertEqual(
            f"fell from {740_000 / 60:.6g} to {370_000 / 60:.6g} a second",
            decay.reason,
        )

    def test_a_service_that_scales(self):
        steady = tuple(Moment(float(s), 1990 + s % 3) for s in range(60))
        found = served(Load(1, 1000), Load(2, 1800, 50, steady))
        self.assertEqual({Level.OK}, {row.level for row in found})
        # By the steady window, not by the mean with the warm-up.
        self.assertAlmostEqual(0.9955, found[1].observed)

    def test_without_a_saturated_generator_it_fails(self):
        found = served(Load(1, 1000), Load(10, 6170, 40))
        self.assertEqual([Level.OK, Level.FAILURE], [row.level for row in found])

    def test_no_steady_window(self):
        rising = tuple(Moment(float(s), 100.0 * (s + 1)) for s in range(30))
        self.assertEqual((), scaling.steady_window(rising[:10]))
        found = served(Load(1, 1000), Load(2, 2000, None, rising[:10]))
        self.assertEqual(Level.UNKNOWN, found[0].level)

    def test_moments_in_any_order(self):
        falls = [Moment(float(s), 100.0 if s < 10 else 50.0) for s in range(30)]
        mixed = tuple(falls[n // 3 + 10 * (n % 3)] for n in range(30))
        found = [served(Load(1, 66.7, timeline=t)) for t in (tuple(falls), mixed)]
        self.assertEqual(Level.FAILURE, found[0][0].level)
        self.assertEqual(*found)

    def test_a_service_in_bursts(self):
        """Most moments are without any request."""
        bursts = tuple(Moment(float(s), 80.0 * (s % 4 == 2)) for s in range(30))
        found = served(Load(1, 20), Load(2, 40, timeline=bursts))
        self.assertEqual(["linearity"], [row.what for row in found])
        self.assertIn("no steady window", found[0].reason)

# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import testtools

from nova_perfvm.findings import Level
from nova_perfvm.measure.samples import Machine
from nova_perfvm.measure.statistics.compare import CannotCompareError, compare
from nova_perfvm.measure.statistics.verdict import far
from tests.unit.measure import published

STEADY = (0.99, 1.01, 1.0, 0.995, 1.005) * 2
NOISY = (0.8, 1.25, 1.0, 0.9, 1.1)


def cpu(host, vm, factors=STEADY, **given):
    rows = [
        published.measurement(who, "cpu.events_per_second", 4, value, **given)
        for who, value in (("host", host), ("vm1", vm))
    ]
    return published.repeated(rows, factors)


class PublishedTest(testtools.TestCase):
    def test_one_vm(self):
        found = {row.group.metric: row for row in compare(published.ly_alone())}
        self.assertEqual(
            {
                "cpu.events_per_second": 97.7,
                "cpu.latency_max_ms": 2027.3,
                "memory.write_mib_per_second": 84.9,
                "disk.read_75_25_iops": 97.2,
                "disk.write_75_25_iops": 83.3,
                "disk.read_iops": 81.3,
                "disk.write_iops": 107.5,
            },
            {name: round(100 * row.vs_host.ratio, 1) for name, row in found.items()},
        )
        tail = found.pop("cpu.latency_max_ms")
        self.assertEqual(Level.FAILURE, tail.level)
        self.assertIsNone(tail.vs_share)
        for row in found.values():
            self.assertEqual(Level.UNKNOWN, row.level)
            self.assertEqual("1 round: repeat it in at least 5", row.reason)
            self.assertIsNone(row.vs_host.interval())
            self.assertEqual(
                "sysbench: 1.0.17 on the host, 1.0.20 in the VM", row.remarks[0]
            )

    def test_two_vms(self):
        found = compare(published.ly_two())

        def percents(metric, who, ratio):
            return [
                round(100 * getattr(row, ratio).ratio)
                for row in found
                if (row.group.metric, row.who) == (metric, who)
            ]

        network = "network.gbit_per_second"
        self.assertEqual([69, 96, 105, 89], percents(network, "vm1", "vs_share"))
        self.assertEqual([67, 76, 64, 107], percents(network, "vm2", "vs_share"))
        self.assertEqual([34, 48, 52, 44], percents(network, "vm1", "vs_host"))
        cpu = "cpu.events_per_second"
        self.assertEqual([100, 100, 99, 90], percents(cpu, "vm1", "vs_host"))
        self.assertEqual([100, 100, 100, 90], percents(cpu, "vm2", "vs_host"))
        write = "memory.write_mib_per_second"
        self.assertEqual([97, 175, 154, 159], percents(write, "vm1", "vs_host"))
        self.assertEqual([97, 179, 150, 160], percents(write, "vm2", "vs_host"))
        read = "memory.read_mib_per_second"
        self.assertEqual([96, 107, 115, 78], percents(read, "vm1", "vs_host"))
        self.assertEqual({2}, {row.group.at_once for row in found})
        judged = {row.group.metric.split(".")[0]: row.against for row in found}
        self.assertEqual({"cpu": "host", "memory": "host", "network": "share"}, judged)
        self.assertEqual({Level.UNKNOWN}, {row.level for row in found})
        for row in found:
            unbound = any("not bound" in remark for remark in row.remarks)
            self.assertEqual(row.vs_host.ratio > 1, unbound)

    def test_repeated_throughput_hides_the_tail(self):
        found = {
            row.group.metric: row.level
            for row in compare(published.repeated(published.ly_alone(), STEADY))
        }
        self.assertEqual(Level.FAILURE, found["cpu.latency_max_ms"])
        self.assertEqual(Level.OK, found["cpu.events_per_second"])


class VerdictTest(testtools.TestCase):
    def verdict(self, measurements, **given):
        (found,) = compare(measurements, **given)
        return found.level

    def test_by_the_interval(self):
        self.assertEqual(Level.OK, self.verdict(cpu(100, 90)))
        self.assertEqual(Level.FAILURE, self.verdict(cpu(100, 60)))
        self.assertEqual(Level.FAILURE, self.verdict(cpu(100, 90), target=0.95))
        (found,) = compare(cpu(100, 75, NOISY))
        self.assertEqual(Level.UNKNOWN, found.level)
        self.assertRegex(found.reason, "about [0-9]+ rounds would tell")

    def test_busy_neighbours_are_a_comparison_of_their_own(self):
        (idle,) = compare(cpu(100, 90))
        beside = [
            replace(m, value=m.value / 2, at_once=1, loaded_neighbours=1)
            for m in cpu(100, 90)
            if m.who != "host"
        ]
        found = {
            row.group.loaded_neighbours: row
            for row in compare([*cpu(100, 90), *beside])
        }
        self.assertEqual(idle, found[0])
        self.assertEqual((Level.OK, Level.FAILURE), (found[0].level, found[1].level))
        self.assertAlmostEqual(idle.vs_host.ratio / 2, found[1].vs_host.ratio)

    def test_of_which_less_is_better(self):
        def rows(metric, host, vm):
            values = (("host", host), ("vm1", vm))
            found = [
                published.measurement(who, metric, 4, value, "lower")
                for who, value in values
            ]
            return published.repeated(found, STEADY)

        for vm, verdict in ((1.5, Level.OK), (3.0, Level.FAILURE)):
            latencies = rows("cpu.latency_p99_ms", 1.0, vm)
            self.assertEqual(verdict, self.verdict(latencies))
            self.assertEqual(Level.OK, self.verdict(latencies, latency_target=4))
        # Time for the same work.
        (found,) = compare(rows("gmake.seconds", 100, 125))
        self.assertEqual((Level.OK, 1 / 0.7), (found.level, found.target))

    def test_nothing_passes_without_five_rounds(self):
        self.assertEqual(Level.UNKNOWN, self.verdict(cpu(100, 99, STEADY[:4])))
        # Repeats in one round are no rounds.
        rows = [replace(m, round=1, repeat=m.round) for m in cpu(100, 99)]
        self.assertEqual(Level.UNKNOWN, self.verdict(rows))

    def test_a_slow_round_is_a_warning_and_a_slow_mode_no_pass(self):
        quick = (*[1.0, 0.99, 1.01] * 4,)
        for slow, verdict, words in (
            ((0.6,), Level.OK, "1 of 13 rounds in a slow mode, at 0.6: look what"),
            ((0.5, 0.6), Level.UNKNOWN, "2 of 14 rounds in a slow mode, at 0.5, 0.6"),
        ):
            (found,) = compare(cpu(100, 100, (*slow[1:], *quick, slow[0])))
            self.assertEqual(verdict, found.level)
            self.assertIn(words, found.remarks[0])
            in_reason = words if verdict is Level.UNKNOWN else ""
            self.assertIn(in_reason, found.reason)
        (found,) = compare(cpu(100, 100, (*quick, 0.66)))
        self.assertEqual((Level.OK, ()), (found.level, found.remarks))

    def test_wide_noise_is_no_mode(self):
        """Some of many noisy rounds miss the target, as far as the others exceed it."""
        factors = [0.6, 1 / 0.6, 0.75, 1 / 0.75, 0.85, 1 / 0.85, 1.0, 1.0] * 6
        (found,) = compare(cpu(100, 100, factors))
        self.assertEqual((Level.OK, ()), (found.level, found.remarks))

    def test_few_rounds_may_miss_a_mode(self):
        """Of a VM near the target they prove nothing, however little they vary."""
        for vm, rounds, verdict in (
            *((95, 5, Level.OK), (85, 5, Level.UNKNOWN), (85, 10, Level.OK)),
            *((72, 10, Level.UNKNOWN), (72, 20, Level.OK)),
        ):
            (found,) = compare(cpu(100, vm, (STEADY * 2)[:rounds]))
            self.assertEqual(verdict, found.level)
        (found,) = compare(cpu(100, 72))
        self.assertRegex(found.reason, "10 rounds may miss a mode .* about 1[0-9] ")

    def test_each_of_many_rows_has_its_part_of_the_error(self):
        """One row in forty fails by chance; a whole that fails so is no proof."""
        rows = cpu(100, 69, (1.0, 1.01, 0.99, 1.005, 0.995))
        many = [replace(m, metric=f"cpu{n}.x") for n in range(20) for m in rows]
        for measured, is_primary, verdict in (
            (rows, lambda _group, _better: True, Level.FAILURE),
            (many, lambda _group, _better: True, Level.UNKNOWN),
            (many, None, Level.FAILURE),
        ):
            found = compare(measured, is_primary=is_primary)
            self.assertEqual({verdict}, {row.level for row in found})
            self.assertTrue(all(row.primary for row in found))
        found = compare(
            many, is_primary=lambda group, _better: group.metric == "cpu7.x"
        )
        self.assertEqual(["cpu7.x"], [row.group.metric for row in found if row.primary])

    def test_rounds_apart_have_no_interval(self):
        rows = [replace(m, round=m.round + 10 * (m.who == "vm1")) for m in cpu(100, 99)]
        (found,) = compare(rows)
        self.assertEqual(Level.UNKNOWN, found.level)
        self.assertIn("interleave", found.reason)
        self.assertIsNone(found.vs_host.interval())

    def test_what_no_noise_explains_fails_without_repeats(self):
        for part, verdict in ((0.9, Level.FAILURE), (1.1, Level.UNKNOWN)):
            rows = cpu(100, 70 / far("higher") * part, (1.0,))
            self.assertEqual(verdict, self.verdict(rows))

    def test_a_vm_without_a_baseline(self):
        rows = cpu(100, 99)
        rows = [m if m.who == "host" else replace(m, threads=8) for m in rows]
        (found,) = compare(rows)
        self.assertEqual(Level.UNKNOWN, found.level)
        self.assertIn("on the host with 8 threads", found.reason)

    def test_only_one_side(self):
        for who in ("host", "vm1"):
            rows = [m for m in cpu(100, 99) if m.who == who]
            self.assertRaises(CannotCompareError, compare, rows)


class BaselineTest(testtools.TestCase):
    def test_two_bound_runs_are_the_baseline_of_two_vms(self):
        rows = [
            published.measurement(who, "network.gbit", 4, value)
            for who, value in (
                *(("host-0", 11), ("host-1", 12)),
                *(("vm1", 11.5), ("vm2", 9.2)),
            )
        ]
        found = compare(published.repeated(rows, STEADY))
        for row, ratio in zip(found, (1.0, 0.8), strict=True):
            self.assertAlmostEqual(ratio, row.vs_host.ratio, 3)
            self.assertAlmostEqual(ratio, row.vs_share.ratio, 3)

    def test_the_number_of_vms_may_be_given(self):
        rows = [
            published.measurement(who, "network.gbit", 4, value)
            for who, value in (("host", 20), ("vm1", 4))
        ]
        (found,) = compare(rows, vms=4)
        self.assertAlmostEqual(0.8, found.vs_share.ratio)

    def test_what_differs_is_named(self):
        machines = {
            "host": Machine("host", "6.1.0", "Xeon 6248", "powersave", 0),
            "vm1": Machine("guest", "5.15.0", "Xeon 6248"),
        }
        rows = [replace(m, machine=machines[m.who]) for m in cpu(100, 90)]
        (found,) = compare(rows)
        self.assertEqual(
            (
                "kernel: 6.1.0 on the host, 5.15.0 in the VM",
                "the host ran with governor powersave, which flatters the VM",
            ),
            found.remarks,
        )
        self.assertEqual((), compare(cpu(100, 90))[0].remarks)

    def test_more_than_a_bound_host(self):
        bound = Machine("host", node=0)
        rows = [
            replace(m, machine=bound) if m.who == "host" else m for m in cpu(100, 120)
        ]
        (found,) = compare(rows)
        self.assertEqual(
            ("more than the host, though bound: is it the same machine?",),
            found.remarks,
        )

    def test_values_that_were_copied(self):
        (found,) = compare(cpu(100, 90, (1.0,) * 5))
        self.assertIn("the same ratio in every round", found.remarks[0])

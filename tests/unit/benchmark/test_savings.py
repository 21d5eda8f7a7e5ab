# SPDX-License-Identifier: Apache-2.0
"""Arrivals as in the trace, and what happens to hosts when VMs come, move and leave."""

import collections
import contextlib
import io
import itertools
import random

import testtools

from tests.benchmark import arrivals, savings
from tests.benchmark.arrivals import Arrival
from tests.unit.scheduler.case import ConfigCase

BATCHES = 20_000
SMALL = (2, 4)
HIGH = arrivals.HP_SIZE


class ArrivalsTest(testtools.TestCase):
    def near(self, expected, found, delta, what):
        self.assertTrue(abs(expected - found) <= delta, f"{what}: {found}")

    def test_sizes_and_batches_are_those_of_the_trace(self):
        rng = random.Random(1)
        batches = [arrivals._batch(rng) for _ in range(BATCHES)]
        vms = [vm for batch in batches for vm in batch]
        self.assertEqual(16, len(arrivals.SIZES))
        sizes = collections.Counter(size for _, size, _ in vms)
        # Counted in the trace, where large VMs come in larger batches.
        for size, share in (
            ((1, 1.75), 0.43),
            ((2, 3.5), 0.28),
            ((4, 7), 0.11),
            ((8, 14), 0.11),
            ((8, 56), 0.05),
        ):
            self.near(share, sizes[size] / len(vms), 0.04, size)
        counts = collections.Counter(map(len, batches))
        self.near(0.571, counts[1] / BATCHES, 0.02, "batches of one")
        self.assertEqual(50, max(counts))
        self.near(arrivals.MEAN_BATCH, len(vms) / BATCHES, 0.2, "mean batch")
        pairs = [(a, b) for batch in batches for a, b in itertools.pairwise(batch)]
        same = sum(a[1] == b[1] for a, b in pairs) / len(pairs)
        self.near(0.93, same, 0.03, "as large as the one before")

    def test_lifetimes_are_those_of_the_trace(self):
        rng = random.Random(2)
        found = [arrivals.lifetime(rng) for _ in range(BATCHES)]
        for hours, share in ((0.25, 0.658), (1, 0.345), (6, 0.18), (24, 0.06)):
            longer = sum(lifetime > hours for lifetime in found) / BATCHES
            self.near(share, longer, 0.02, hours)
        self.assertGreater(min(found), 0)
        self.assertLessEqual(max(found), 480)
        mean = sum(found) / BATCHES
        self.near(arrivals.MEAN_LIFETIME, mean, 2, "mean")

    def test_as_many_at_a_time_as_are_asked_for(self):
        demand = arrivals.Demand(hp=10, general=100, hours=24)
        running = collections.Counter()
        for seed in range(20):
            vms = arrivals.arrivals(
                arrivals.Demand(demand.hp, demand.general, demand.hours, seed)
            )
            self.assertEqual(vms, sorted(vms, key=lambda vm: vm.start))
            for hour in (0, 12, 24):
                for vm in vms:
                    running[hour, vm.kind] += vm.start <= hour < vm.end
        for hour in (0, 12, 24):
            self.near(10, running[hour, "hp"] / 20, 2, f"hp, hour {hour}")
            self.near(100, running[hour, "general"] / 20, 15, f"general, hour {hour}")

    def test_a_seed_makes_the_same_vms(self):
        made = [arrivals.arrivals(arrivals.Demand(seed=seed)) for seed in (3, 3, 4)]
        self.assertEqual(made[0], made[1])
        self.assertNotEqual(made[0], made[2])


class HostsTest(testtools.TestCase):
    def test_the_fewest(self):
        for least in range(1, 6):
            for enough in range(least, 20):
                asked = []

                def fits(hosts, enough=enough, asked=asked):
                    asked.append(hosts)
                    return hosts >= enough

                found = savings.fewest(least, 15, fits)
                expected = enough if enough <= 15 else None
                self.assertEqual(expected, found, (least, enough))
                self.assertEqual(len(set(asked)), len(asked))

    def test_the_bound(self):
        def vms(count, kind, size, start=0.0):
            return [Arrival(start, start + 1, kind, size)] * count

        for name, expected, given in (
            ("two fit", 1, vms(2, "hp", HIGH)),
            ("three do not", 2, vms(3, "hp", HIGH)),
            ("one after the other", 1, vms(2, "hp", HIGH) + vms(2, "hp", HIGH, 1.0)),
            ("either class", 2, vms(1, "hp", HIGH) + vms(1, "general", SMALL)),
            ("CPUs", 1, vms(80, "general", SMALL)),
            ("too many CPUs", 2, vms(81, "general", SMALL)),
            ("memory", 2, vms(5, "general", (16, 112))),
        ):
            self.assertEqual(expected, savings.bound(given), name)


class RunTest(ConfigCase):
    def run_with(self, vms, hosts, hours, **options):
        """Return the outcome, after a look at what each host says is in use."""
        run = savings.Run(vms, hosts, 1, **options)
        outcome = run.until(hours)
        for host in run._cloud.hosts:
            here = [vm for vm, _, where in run.running.values() if where is host]
            pinned = set().union(*(c.pinned_cpus for c in host.numa_topology.cells))
            self.assertEqual(sum(vm.size[0] for vm in here), host.vcpus_used)
            self.assertEqual(
                sum(vm.size[1] for vm in here),
                (savings.slots_left.HOST_MEMORY_MB - host.free_ram_mb) / 1024,
            )
            self.assertEqual(20 * sum(vm.kind == "hp" for vm in here), len(pinned))
        return outcome

    def test_refusals_and_free_nodes(self):
        vms = [
            *(Arrival(0.0, end, "hp", HIGH) for end in (1.5, 1.5, 9.0)),
            # Both hosts have VMs of 20 vCPUs.
            Arrival(1.1, 9.0, "general", SMALL),
            Arrival(1.2, 9.0, "hp", HIGH),
            Arrival(1.3, 9.0, "hp", HIGH),
        ]
        found = self.run_with(vms, 2, 3)
        self.assertEqual({"hp": 1, "general": 1}, found.refused)
        # One node of two hosts; none; the two of the VMs that have left.
        self.assertEqual([1, 2, 2], found.free)
        stopped = savings.Run(vms, 2, 1).until(3, patient=False)
        self.assertEqual({"hp": 0, "general": 1}, stopped.refused)

    def test_a_plan_frees_nodes(self):
        vms = [Arrival(0.0, 99.0, "general", SMALL)] * 2
        vms += [Arrival(0.0, 99.0, "hp", HIGH)]
        for plans, free, migrations in ((False, 1, 0), (True, 3, 1)):
            found = self.run_with(vms, 3, savings.PLAN_HOURS, plans=plans)
            self.assertEqual({"hp": 0, "general": 0}, found.refused)
            # Nova's weighers give each VM a host of its own.
            self.assertEqual([1] * 5, found.free[:-1])
            self.assertEqual(free, found.free[-1])
            self.assertEqual(migrations, found.migrations)


class CommandTest(testtools.TestCase):
    def test_a_row_for_each_arm(self):
        words = "--seeds 1 --hp 2 --general 10 --hours 6 --jobs 1"
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self.assertEqual(0, savings.main(words.split()))
        said = output.getvalue()
        bound = int(said.split("fewer hosts than ")[1].split()[0])
        for name in savings.ARMS:
            (line,) = (found for found in said.splitlines() if found.startswith(name))
            needed = line.removeprefix(name).split()[0]
            self.assertGreaterEqual(int(needed.removeprefix(">")), bound, line)

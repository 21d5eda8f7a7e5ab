# SPDX-License-Identifier: Apache-2.0

import collections
import dataclasses
import itertools
import operator
import random

import testtools
from hypothesis import given
from hypothesis import strategies as st
from nova import exception
from nova.objects import instance_numa, numa
from nova.virt import hardware

from nova_perfvm.facts import PagePool, RequestCell
from nova_perfvm.policy import HostShape, shape_slots
from nova_perfvm.rules import slots
from tests.unit.rules import hosts

REQUIRE = {"smt": "threads", "cpu_thread_policy": "require"}


class HostSlotsTest(testtools.TestCase):
    """How many high-performance VMs an empty host holds."""

    def test_topologies(self):
        free = {"max_per_host": None}
        two = {"numa_nodes": 2, **free}
        for shape, keys, expected in (
            ("2x20", {}, 2),
            ("2x20x2", {}, 2),
            ("4x10", {}, 0),
            ("8x15", {}, 0),
            ("2x22", {}, 2),
            ("2x6", {}, 0),
            ("1x20", {}, 1),
            ("4x20", {}, 2),  # the cap
            ("4x20", free, 4),
            ("2x20x2", {"smt": "threads", **free}, 4),
            ("2x20", two, 2),
            ("1x40", two, 0),
        ):
            (vm_class, _) = hosts.policy(**keys).classes
            found = slots.host_slots(vm_class, hosts.host(shape).cells)
            self.assertEqual(expected, found, (shape, keys))

    def test_whole_cores(self):
        """Nova gives a VM that requires threads no half of another VM's core."""
        keys = {**REQUIRE, "max_per_host": None}
        for shape, vcpus, emulator_threads, expected in (
            ("1x64x2", 5, None, 21),
            ("1x64x2", 4, None, 32),
            ("2x20x2", 5, None, 12),
            ("1x6x4", 5, None, 3),
            # Two VMs share a core for their emulator threads.
            ("1x8x2", 4, "isolate", 3),
            ("1x8x2", 5, "isolate", 2),
        ):
            keys |= {"vcpus": vcpus, "emulator_threads": emulator_threads}
            (vm_class, _) = hosts.policy(flavors=None, **keys).classes
            host = hosts.host(shape)
            self.assertEqual(expected, slots.host_slots(vm_class, host.cells), shape)
            found = shape_slots(vm_class, HostShape.parse(shape))
            self.assertEqual(expected, found, shape)

    def test_memory_limits_slots(self):
        # The smallest flavor has 64 GiB.
        cells = hosts.host("2x40", memory_gb=200).cells
        (vm_class, _) = hosts.policy(max_per_host=None).classes
        for memory_mb, expected in ((None, 2), (1024, 4), (1024**2, 0)):
            self.assertEqual(expected, slots.host_slots(vm_class, cells, memory_mb))
        # What is kept for the host of a node that has none is missing there.
        first, second = hosts.host("2x20").cells
        without = dataclasses.replace(vm_class, flavors=None)
        for memory_mb in (0, -4096):
            cells = (first, second._replace(memory_mb=memory_mb))
            self.assertEqual(1, slots.host_slots(vm_class, cells))
            self.assertEqual(1, slots.host_slots(without, iter(cells)))
        # Memory that nobody tells is no limit for VMs of any memory.
        cells = [cell._replace(memory_mb=0) for cell in (first, second)]
        self.assertEqual(2, slots.host_slots(without, cells))

    def test_pages_limit_slots(self):
        # 256 GiB; 80 GiB of small pages, 64 of 2 MiB, 112 of 1 GiB.
        kinds = PagePool(4, 80 << 18), PagePool(2048, 64 << 9), PagePool(1048576, 112)
        cell = hosts.host("1x40", memory_gb=256).cells[0]._replace(mempages=kinds)
        for asked, memory_mb, expected in (
            (None, 32768, 8),
            ("small", 32768, 2),
            ("2MB", 32768, 2),
            ("1GB", 32768, 3),
            ("large", 32768, 5),
            ("large", 512, 8),
            ("1GB", 512, 0),
            ("1GB", None, 1),
        ):
            policy = hosts.policy(
                mem_page_size=asked, max_per_host=None, exclusive="none"
            )
            vm_class = dataclasses.replace(policy.classes[0], vcpus=5)
            found = slots.host_slots(vm_class, [cell], memory_mb)
            self.assertEqual(expected, found, (asked, memory_mb))
        without = dataclasses.replace(vm_class, flavors=None)
        self.assertEqual(8, slots.host_slots(without, [cell]))


class PageGivenTest(testtools.TestCase):
    def test_as_nova_gives_pages(self):
        rng = random.Random(3)
        sizes = collections.Counter()
        for _ in range(500):
            pools = [
                PagePool(size_kb, total, rng.randint(0, total))
                for size_kb in rng.sample((4, 2048, 1048576), rng.randint(1, 3))
                for total in [rng.randint(0, 8) * (1048576 // size_kb)]
            ]
            memory_mb, asked = (
                rng.choice((512, 1024, 3072)),
                rng.choice((-1, -2, -3, 4, 2048, 1048576)),
            )
            theirs = numa.NUMACell(
                mempages=[
                    numa.NUMAPagesTopology(
                        size_kb=pool.size_kb,
                        total=pool.total,
                        used=pool.used,
                        reserved=0,
                    )
                    for pool in pools
                ]
            )
            guest = instance_numa.InstanceNUMACell(memory=memory_mb, pagesize=asked)
            try:
                expected = hardware._numa_cell_supports_pagesize_request(theirs, guest)
            except exception.MemoryPageSizeNotSupported:
                expected = None
            cell = hosts.host("1x4").cells[0]._replace(mempages=pools)
            found = slots.page_given(cell, memory_mb, asked, now=True)
            self.assertEqual(expected, found, (pools, memory_mb, asked))
            sizes[found] += 1
        self.assertEqual({None, 4, 2048, 1048576}, set(sizes))


class CellTest(testtools.TestCase):
    def cpus(self, cell, **keys):
        return slots.cell_cpus(hosts.policy(**keys).classes[0], cell)

    def test_cpus(self):
        plain, smt = hosts.host().cells[0], hosts.host("2x20x2").cells[0]
        fives = smt._replace(pinned_cpus=frozenset(range(18)) - {5, 11, 17})
        one_thread = hosts.host("2x20x2", mode=range(0, 80, 2)).cells[0]
        for cell, keys, expected in (
            (plain, {}, (20, 20)),
            # Siblings unknown is no SMT.
            (plain._replace(siblings=()), {}, (20, 20)),
            (one_thread, {}, (20, 20)),
            (one_thread, {"smt": "threads"}, (20, 20)),
            (smt, {"smt": "threads"}, (40, 40)),
            # Three VMs of 5 vCPUs leave half of three cores.
            (fives, REQUIRE, (40, 22)),
            (fives, {**REQUIRE, "emulator_threads": "isolate"}, (40, 23)),
            # One VM owns 20 cores however Nova packed it: its prefer puts 20 vCPUs on
            # both threads of ten cores.
            (smt._replace(pinned_cpus=frozenset(range(20))), {}, (20, 0)),
            (smt._replace(pinned_cpus=frozenset(range(0, 40, 2))), {}, (20, 0)),
        ):
            self.assertEqual(expected, self.cpus(cell, **keys), cell)

    def test_strangers(self):
        split = {"numa_nodes": 2, "emulator_threads": "isolate"}
        for pins, keys, expected in (
            (4, {}, True),
            (20, {}, False),
            # 10 + 1 CPUs on the first cell, 10 on the second.
            (10, split, False),
            (11, split, False),
            (13, split, True),
        ):
            (vm_class, _) = hosts.policy(**keys).classes
            self.assertEqual(expected, slots.is_foreign(vm_class, pins), pins)

    def test_memory(self):
        plain = hosts.host().cells[0]
        used = plain._replace(memory_usage_mb=200 * 1024)
        pools = [PagePool(4, 16384 * 256, 0), PagePool(1048576, 100, 40)]
        paged = plain._replace(mempages=pools)
        for cell, memory_gb, page_size_kb, fits, free in (
            (plain, 64, None, True, True),
            (used, 64, None, True, False),
            (paged, 64, None, False, False),  # 16 GiB of small pages
            (paged, 16, -1, True, True),
            (paged, 64, 1048576, True, False),
            (paged, 60, 1048576, True, True),
            (paged, 60, -2, True, True),
            (paged, 60, -3, True, True),
            (paged, 60, 2048, False, False),  # the host has none of that size
            (paged, 1.5, 1048576, False, False),  # no multiple of the page
            (plain, 1, 2048, False, False),
        ):
            found = [
                slots.memory_fits(cell, int(memory_gb * 1024), page_size_kb, now=now)
                for now in (False, True)
            ]
            self.assertEqual([fits, free], found, (memory_gb, page_size_kb))


class NodeFitsTest(testtools.TestCase):
    def test_isolated_threads(self):
        """Nova keeps sibling threads free only without cpu_dedicated_set."""
        smt, plain = hosts.host("1x10x2", "open").cells[0], hosts.host("1x10").cells[0]
        dedicated = hosts.host("1x10x2").cells[0]
        used = smt._replace(pinned_cpus=frozenset(range(0, 4, 2)))
        for name, cell, vcpus, extra, expected in (
            ("a core each", smt, 10, 0, True),
            ("more than cores", smt, 11, 0, False),
            ("a core for the emulator", smt, 9, 1, True),
            ("none for the emulator", smt, 10, 1, False),
            ("cores in use by half", used, 8, 0, True),
            ("one too many beside these", used, 9, 0, False),
            ("cpu_dedicated_set", dedicated, 4, 0, False),
            ("no threads", plain, 10, 0, True),
        ):
            guest = RequestCell(0, vcpus, 1024, None, "isolate")
            self.assertEqual(expected, slots.node_fits(cell, guest, extra), name)


class HostModeTest(testtools.TestCase):
    def test_modes(self):
        for mode in ("dedicated", "shared", "open"):
            self.assertEqual(mode, slots.host_mode(hosts.host(mode=mode)))
        for dedicated in (range(20), range(10)):
            self.assertEqual("mixed", slots.host_mode(hosts.host(mode=dedicated)))
        self.assertEqual("none", slots.host_mode(hosts.host()._replace(cells=())))


class FormerSizesTest(testtools.TestCase):
    """Pins of VMs that have today's size, or one that the class had before."""

    def vm_class(self, vcpus, *former, **keys):
        return hosts.policy(vcpus=vcpus, former_vcpus=former, **keys).classes[0]

    def foreign(self, vm_class, *pins):
        return [slots.is_foreign(vm_class, number) for number in pins]

    def test_a_cpu_for_emulator_threads(self):
        one = self.vm_class(18, 20, emulator_threads="isolate")
        self.assertEqual([False] * 3, self.foreign(one, 19, 21, 40))
        self.assertEqual([True] * 3, self.foreign(one, 18, 20, 41))
        # It is on the first of a VM's cells.
        two = self.vm_class(18, 20, emulator_threads="isolate", numa_nodes=2)
        self.assertEqual([False] * 4, self.foreign(two, 9, 10, 11, 22))
        self.assertEqual([True] * 2, self.foreign(two, 8, 12))
        # One VM of 15 vCPUs, or two of 7: of 14 vCPUs at least.
        several = self.vm_class(7, 15, emulator_threads="isolate")
        host = hosts.host("1x40", pinned=range(16))
        self.assertEqual((1, 2, 14), slots.count_vms(several, host))

    @given(
        st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True),
        st.integers(0, 40),
    )
    def test_against_all_there_are(self, sizes, pins):
        numbers = {
            sum(counts)
            for counts in itertools.product(range(pins + 1), repeat=len(sizes))
            if sum(map(operator.mul, counts, sizes)) == pins
        }
        vm_class = self.vm_class(*sizes)

        self.assertEqual(not numbers, slots.is_foreign(vm_class, pins))
        if numbers:
            host = hosts.host("1x40", pinned=range(pins))
            self.assertEqual(
                (min(numbers), max(numbers), pins), slots.count_vms(vm_class, host)
            )

    def test_broken_ones_count_as_whole(self):
        host = hosts.host("2x20", pinned=range(5))
        self.assertEqual((1, 1, 18), slots.count_vms(self.vm_class(18), host))
        self.assertEqual((1, 1, 20), slots.count_vms(self.vm_class(18, 20), host))
        odd = hosts.host("2x20", pinned=range(25))
        self.assertEqual((2, 3, 40), slots.count_vms(self.vm_class(10, 20), odd))

    def test_capacity_is_that_of_new_vms(self):
        cells = hosts.host("2x20").cells
        self.assertEqual(2, slots.host_slots(self.vm_class(18, 40), cells))

# SPDX-License-Identifier: Apache-2.0

import itertools
import operator
import types

import testtools
from hypothesis import given
from hypothesis import strategies as st

from nova_perfvm.facts import PagePool
from nova_perfvm.rules import slots
from tests.unit.rules import hosts
from tests.unit.rules.hosts import HP


class HostSlotsTest(testtools.TestCase):
    """How many high-performance VMs an empty host holds."""

    def test_topologies(self):
        for shape, expected in (
            ("2x20", 2),
            ("2x20x2", 2),  # the cap of two
            ("4x10", 0),
            ("8x15", 0),
            ("2x22", 2),
            ("2x6", 0),
            ("1x20", 1),
            ("4x20", 2),  # the cap again
        ):
            with self.subTest(shape):
                self.assertEqual(
                    expected, slots.host_slots(HP, hosts.host(shape).cells)
                )

    def test_without_a_cap(self):
        vm_class = hosts.policy(max_per_host=None).get_class("high-performance")
        self.assertEqual(4, slots.host_slots(vm_class, hosts.host("4x20").cells))

    def test_a_thread_may_be_enough(self):
        vm_class = hosts.policy(max_per_host=None, smt="threads").classes[0]
        self.assertEqual(4, slots.host_slots(vm_class, hosts.host("2x20x2").cells))

    def test_memory_limits_slots(self):
        # The smallest flavor has 64 GiB.
        host = hosts.host("2x40", memory_gb=200)
        vm_class = hosts.policy(max_per_host=None).classes[0]
        self.assertEqual(2, slots.host_slots(vm_class, host.cells))
        self.assertEqual(4, slots.host_slots(vm_class, host.cells, memory_mb=1024))
        self.assertEqual(0, slots.host_slots(vm_class, host.cells, memory_mb=1024**2))

    def test_a_node_without_memory(self):
        first, second = hosts.host("2x20").cells
        vm_class = hosts.policy().classes[0]
        # What is kept for the host of a node that has none is missing there.
        for memory_mb in (0, -4096):
            cells = (first, second._replace(memory_mb=memory_mb))
            self.assertEqual(1, slots.host_slots(vm_class, cells))

    def test_vms_of_two_cells(self):
        vm_class = hosts.policy(vcpus=20, numa_nodes=2, max_per_host=None).classes[0]
        self.assertEqual(2, slots.host_slots(vm_class, hosts.host("2x20").cells))
        self.assertEqual(0, slots.host_slots(vm_class, hosts.host("1x40").cells))


class CellRoomTest(testtools.TestCase):
    def room(self, cell, memory_mb=65536, page_size_kb=None, **keys):
        vm_class = hosts.policy(**keys).get_class("high-performance")
        usable, free = slots.cell_cpus(vm_class, cell)
        return types.SimpleNamespace(
            usable=usable,
            free=free,
            capacity=slots.host_slots(vm_class, [cell], memory_mb=0),
            fits_memory=slots.memory_fits(cell, memory_mb, page_size_kb, now=False),
            free_memory=slots.memory_fits(cell, memory_mb, page_size_kb, now=True),
            foreign=slots.is_foreign(vm_class, len(cell.pinned_cpus)),
        )

    def test_empty_cell(self):
        room = self.room(hosts.host().cells[0])
        self.assertEqual((20, 20, 1), (room.usable, room.free, room.capacity))
        self.assertTrue(room.fits_memory and room.free_memory and not room.foreign)

    def test_pins_that_are_no_multiple_are_foreign(self):
        self.assertTrue(self.room(hosts.host(pinned=range(4)).cells[0]).foreign)
        self.assertFalse(self.room(hosts.host(pinned=range(20)).cells[0]).foreign)

    def test_one_vm_owns_twenty_cores_however_nova_packed_it(self):
        # Nova's prefer puts 20 vCPUs on both threads of ten cores.
        for pinned in (range(20), range(0, 40, 2)):
            with self.subTest(pinned):
                room = self.room(hosts.host("2x20x2", pinned=pinned).cells[0])
                self.assertEqual(20, room.usable)
                self.assertLess(room.free, 20)

    def test_one_thread_of_each_core_is_twenty_cores(self):
        cell = hosts.host("2x20x2", mode=range(0, 80, 2)).cells[0]
        self.assertEqual(20, self.room(cell).free)
        self.assertEqual(20, self.room(cell, smt="threads").usable)

    def test_siblings_unknown_is_no_smt(self):
        cell = hosts.host().cells[0]._replace(siblings=())
        self.assertEqual(20, self.room(cell).free)

    def test_memory_in_use(self):
        cell = hosts.host().cells[0]._replace(memory_usage_mb=200 * 1024)
        room = self.room(cell)
        self.assertTrue(room.fits_memory)
        self.assertFalse(room.free_memory)

    def test_page_pools(self):
        cell = (
            hosts.host()
            .cells[0]
            ._replace(
                mempages=[PagePool(4, 16384 * 256, 0), PagePool(1048576, 100, 40)]
            )
        )
        for memory_gb, page_size_kb, fits, free in (
            (64, None, False, False),  # 16 GiB of small pages
            (16, -1, True, True),
            (64, 1048576, True, False),
            (60, 1048576, True, True),
            (60, -2, True, True),
            (60, -3, True, True),
            (60, 2048, False, False),  # the host has none of that size
        ):
            with self.subTest(f"{memory_gb} GiB, {page_size_kb}"):
                room = self.room(cell, memory_gb * 1024, page_size_kb)
                self.assertEqual((fits, free), (room.fits_memory, room.free_memory))

    def test_memory_that_is_no_multiple_of_the_page(self):
        cell = hosts.host().cells[0]._replace(mempages=[PagePool(1048576, 200, 0)])
        self.assertFalse(self.room(cell, 1536, 1048576).fits_memory)

    def test_pages_asked_of_a_host_that_reports_none(self):
        self.assertFalse(self.room(hosts.host().cells[0], 1024, 2048).fits_memory)

    def test_isolated_emulator_threads_of_a_vm_of_two_cells(self):
        # 10 + 1 CPUs on the first cell, 10 on the second: not foreign.
        for pins in (10, 11):
            cell = hosts.host("2x22", pinned=range(pins)).cells[0]
            self.assertFalse(
                self.room(cell, numa_nodes=2, emulator_threads="isolate").foreign
            )
        cell = hosts.host("2x22", pinned=range(13)).cells[0]
        self.assertTrue(
            self.room(cell, numa_nodes=2, emulator_threads="isolate").foreign
        )


class HostModeTest(testtools.TestCase):
    def test_modes(self):
        for mode, expected in (
            ("dedicated", "dedicated"),
            ("shared", "shared"),
            ("open", "open"),
            (range(20), "mixed"),
            (range(10), "mixed"),
        ):
            with self.subTest(str(mode)):
                self.assertEqual(expected, slots.host_mode(hosts.host(mode=mode)))

    def test_no_cells(self):
        self.assertEqual("none", slots.host_mode(hosts.host()._replace(cells=())))


class FormerSizesTest(testtools.TestCase):
    """Pins of VMs that have today's size, or one that the class had before."""

    def vm_class(self, vcpus, *former, **keys):
        return hosts.policy(vcpus=vcpus, former_vcpus=former, **keys).classes[0]

    def foreign(self, vm_class, *pins):
        return [slots.is_foreign(vm_class, number) for number in pins]

    def test_sums_of_sizes_are_no_strangers(self):
        vm_class = self.vm_class(18, 20)
        self.assertEqual([False] * 6, self.foreign(vm_class, 0, 18, 20, 36, 38, 40))
        self.assertEqual([True] * 5, self.foreign(vm_class, 2, 16, 19, 37, 42))
        self.assertEqual([True], self.foreign(self.vm_class(18), 20))

    def test_a_cpu_for_emulator_threads(self):
        one = self.vm_class(18, 20, emulator_threads="isolate")
        self.assertEqual([False] * 3, self.foreign(one, 19, 21, 40))
        self.assertEqual([True] * 3, self.foreign(one, 18, 20, 41))
        # It is on the first of a VM's cells.
        two = self.vm_class(18, 20, emulator_threads="isolate", numa_nodes=2)
        self.assertEqual([False] * 4, self.foreign(two, 9, 10, 11, 22))
        self.assertEqual([True] * 2, self.foreign(two, 8, 12))

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

    def test_capacity_is_that_of_new_vms(self):
        cells = hosts.host("2x20").cells
        self.assertEqual(2, slots.host_slots(self.vm_class(18, 40), cells))

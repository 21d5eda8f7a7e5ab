# SPDX-License-Identifier: Apache-2.0

import testtools
from hypothesis import given
from hypothesis import strategies as st

from nova_perfvm.exceptions import ShapeError
from nova_perfvm.policy import HostShape, VMClass, groups_of, shape_slots
from nova_perfvm.rules.slots import host_slots
from tests.unit.rules import hosts


class RoomTest(testtools.TestCase):
    @given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(1, 3))
    def test_groups_are_as_many_as_a_greedy_search_finds(self, counts, size):
        left, found = sorted(counts, reverse=True), 0
        while len(left) >= size and left[size - 1] > 0:
            left = sorted(
                [left[i] - (i < size) for i in range(len(left))], reverse=True
            )
            found += 1
        self.assertEqual(found, groups_of(counts, size))

    @given(
        st.builds(HostShape, st.integers(1, 4), st.integers(1, 9), st.integers(1, 2)),
        st.integers(1, 6),
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, 1, 3]),
        st.sampled_from([("cores", None), ("threads", None), ("threads", "require")]),
    )
    def test_a_shape_has_the_slots_of_such_a_host(
        self, shape, share, nodes, cap, threads
    ):
        vm_class = VMClass(
            "hp",
            cpu_policy="dedicated",
            vcpus=share * (nodes or 1),
            numa_nodes=nodes,
            max_per_host=cap,
            smt=threads[0],
            cpu_thread_policy=threads[1],
        )
        cells = hosts.host(str(shape)).cells
        self.assertEqual(host_slots(vm_class, cells), shape_slots(vm_class, shape))

    def test_slots_of_a_shape(self):
        for keys, shape, expected in (
            ({"vcpus": 40, "numa_nodes": 2}, HostShape(2, 20), 1),
            ({"vcpus": 40, "numa_nodes": 2}, HostShape(1, 80), 0),
            ({}, HostShape(2, 20), 0),
        ):
            vm_class = VMClass("hp", cpu_policy="dedicated", **keys)
            self.assertEqual(expected, shape_slots(vm_class, shape))

    def test_nova_refuses_sibling_threads_where_no_core_has_two(self):
        vm_class = VMClass(
            "hp",
            cpu_policy="dedicated",
            vcpus=20,
            smt="threads",
            cpu_thread_policy="require",
        )
        for shape, expected in ((HostShape(2, 20), 0), (HostShape(2, 20, 2), 4)):
            self.assertEqual(expected, shape_slots(vm_class, shape))
            cells = hosts.host(str(shape)).cells
            self.assertEqual(expected, host_slots(vm_class, cells))

    def test_shapes(self):
        shape = HostShape.parse("2x20x2")
        self.assertEqual(HostShape(cells=2, cores=20, threads=2), shape)
        self.assertEqual(
            (80, 20, 40),
            (shape.cpus, shape.cell_cpus("cores"), shape.cell_cpus("threads")),
        )
        for text in ("2x20", "2x20x2"):
            self.assertEqual(text, str(HostShape.parse(text)))
        for text in ("", "20", "2x", "0x20", "2x20x2x2", "2 x 20", "axb", "-2x20"):
            error = self.assertRaises(ShapeError, HostShape.parse, text)
            self.assertEqual(text, error.text)

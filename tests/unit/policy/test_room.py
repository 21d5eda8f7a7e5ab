# SPDX-License-Identifier: Apache-2.0

import testtools
from hypothesis import given
from hypothesis import strategies as st

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
        st.sampled_from(["cores", "threads"]),
    )
    def test_a_shape_has_the_slots_of_such_a_host(self, shape, share, nodes, cap, smt):
        vm_class = VMClass(
            "hp",
            cpu_policy="dedicated",
            vcpus=share * (nodes or 1),
            numa_nodes=nodes,
            max_per_host=cap,
            smt=smt,
        )
        cells = hosts.host(str(shape)).cells
        self.assertEqual(host_slots(vm_class, cells), shape_slots(vm_class, shape))

    def test_fewer_numa_nodes_than_a_vm_takes(self):
        vm_class = VMClass("hp", vcpus=40, cpu_policy="dedicated", numa_nodes=2)
        self.assertEqual(1, shape_slots(vm_class, HostShape(2, 20)))
        self.assertEqual(0, shape_slots(vm_class, HostShape(1, 80)))

    def test_no_exact_number_of_vcpus(self):
        vm_class = VMClass("hp", cpu_policy="dedicated")
        self.assertEqual(0, shape_slots(vm_class, HostShape(2, 20)))

# SPDX-License-Identifier: Apache-2.0

import testtools
from hypothesis import given
from hypothesis import strategies as st
from nova import exception, objects
from nova.virt import hardware

from nova_perfvm.policy import PAGE_SIZES_KB, VMClass, name_fault

objects.register_all()


class NameTest(testtools.TestCase):
    def test_length(self):
        self.assertIsNone(name_fault("x" * 255))
        for name in ("x" * 256, ""):
            self.assertIn("up to 255", name_fault(name))


class MemoryTest(testtools.TestCase):
    @given(
        st.integers(1, 8),
        st.integers(1, 300),
        st.sampled_from([None, "small", "large", *PAGE_SIZES_KB]),
    )
    def test_a_fault_is_what_nova_refuses(self, nodes, memory_gb, pages):
        vm_class = VMClass("c", vcpus=840, numa_nodes=nodes, mem_page_size=pages)
        found = vm_class.memory_fault(memory_gb)
        self.assertEqual(self.fits(nodes, memory_gb, pages), found is None, found)

    def fits(self, nodes, memory_gb, pages):
        """Ask Nova whether it splits a flavor, and whether a huge host has room."""
        flavor = objects.Flavor(
            vcpus=840,
            memory_mb=memory_gb * 1024,
            extra_specs={"hw:numa_nodes": str(nodes)},
        )
        image = objects.ImageMeta.from_dict({"properties": {}})
        try:
            topology = hardware.numa_get_constraints(flavor, image)
        except exception.ImageNUMATopologyAsymmetric:
            return False
        if pages not in PAGE_SIZES_KB:
            return True
        size_kb = PAGE_SIZES_KB[pages]
        host = objects.NUMACell(
            mempages=[
                objects.NUMAPagesTopology(
                    size_kb=size_kb, total=2**31, used=0, reserved=0
                )
            ]
        )
        return all(
            host.can_fit_pagesize(size_kb, cell.memory * 1024)
            for cell in topology.cells
        )

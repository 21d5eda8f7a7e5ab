# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.exceptions import ShapeError
from nova_perfvm.policy import HostShape


class HostShapeTest(testtools.TestCase):
    def test_two_nodes_of_twenty_cores(self):
        shape = HostShape.parse("2x20")
        self.assertEqual(HostShape(cells=2, cores=20, threads=1), shape)
        self.assertEqual(40, shape.cpus)
        self.assertEqual("2x20", str(shape))

    def test_threads_count_only_where_a_class_owns_threads(self):
        shape = HostShape.parse("2x20x2")
        self.assertEqual(80, shape.cpus)
        self.assertEqual(20, shape.cell_cpus("cores"))
        self.assertEqual(40, shape.cell_cpus("threads"))
        self.assertEqual("2x20x2", str(shape))

    def test_anything_else_is_refused_with_an_example(self):
        for text in ("", "20", "2x", "0x20", "2x20x2x2", "2 x 20", "axb", "-2x20"):
            with self.subTest(text):
                error = self.assertRaises(ShapeError, HostShape.parse, text)
                self.assertEqual(text, error.text)
                self.assertIn("2x20x2", str(error))

# SPDX-License-Identifier: Apache-2.0

import testtools
from hypothesis import given
from hypothesis import strategies as st
from nova.virt import hardware

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError

CPUS = st.frozensets(st.integers(min_value=0, max_value=511), max_size=80)


class CPUSetTest(testtools.TestCase):
    def test_numbers_ranges_and_exclusions(self):
        for text, expected in (
            (" 0-5 ,^3, 40,,", {0, 1, 2, 4, 5, 40}),
            # It holds wherever it stands.
            ("^2-3,0-3", {0, 1}),
            (" ", set()),
        ):
            self.assertEqual(expected, cpuset.parse(text))
        self.assertEqual("0-2,5,7-8", cpuset.format_cpus({8, 7, 5, 2, 1, 0}))

    def test_errors_name_the_part_and_what_was_expected(self):
        for text, part in (
            ("0-3,x", "x"),
            *((text, text) for text in ("4-2", "-1", "1--2", "0-99999999999", "1.5")),
            ("0," + "9" * 5000, "9" * 5000),
            ("0-" + "9" * 5000, "0-" + "9" * 5000),
        ):
            error = self.assertRaises(CPUSetError, cpuset.parse, text)
            self.assertEqual((text, part), (error.text, error.part))
            self.assertIn("expected", str(error))
            self.assertLess(len(str(error)), 600)

    @given(CPUS)
    def test_format_then_parse(self, cpus):
        self.assertEqual(cpus, cpuset.parse(cpuset.format_cpus(cpus)))

    @given(CPUS, CPUS)
    def test_excluding_is_set_difference(self, cpus, without):
        text = ",".join([*map(str, cpus), *(f"^{cpu}" for cpu in without)])
        self.assertEqual(cpus - without, cpuset.parse(text))


class NovaAgreesTest(testtools.TestCase):
    """Nova's parser reads the same lists the same way."""

    @given(CPUS)
    def test_parse_cpu_spec(self, cpus):
        text = cpuset.format_cpus(cpus)
        self.assertEqual(
            hardware.parse_cpu_spec(text) if text else set(), set(cpuset.parse(text))
        )

# SPDX-License-Identifier: Apache-2.0

import unittest

from tests.unit.tempest_plugin.cases import PluginCase


class ResizeTest(PluginCase):
    def case(self, disks, **options):
        """Return the tests of moves on a cloud with flavors of these disks, in GB."""
        self.configure(
            high_performance_flavor="hp",
            general_flavor="g",
            **{"general_flavor_alt": "alt"} | options,
        )
        return self.make(
            "scenario.test_moves",
            "MovesTest",
            "test_resize_within_general",
            flavor_of={
                name: {"id": f"id of {name}", "disk": disk}
                for name, disk in disks.items()
            },
        )

    def test_to_a_disk_that_is_not_smaller(self):
        case = self.case({"hp": 20, "g": 20, "alt": 30})
        self.assertEqual("id of hp", case.resizable_to("high_performance_flavor"))
        self.assertEqual("id of alt", case.resizable_to("general_flavor_alt"))

    def test_to_a_smaller_disk(self):
        case = self.case({"hp": 0, "g": 20, "alt": 10})
        for test, words in (
            (case.test_resize_to_the_other_class, "high_performance_flavor has.* 0 GB"),
            (case.test_resize_within_general, "general_flavor_alt has a disk of 10 GB"),
        ):
            self.assertRaisesRegex(unittest.SkipTest, words, test)

    def test_no_other_general_flavor_is_needed_for_the_other_class(self):
        case = self.case({"hp": 20, "g": 20}, general_flavor_alt=None)
        self.assertEqual("id of hp", case.resizable_to("high_performance_flavor"))
        self.assertRaisesRegex(
            unittest.SkipTest, "names no other", case.test_resize_within_general
        )

    def test_a_cloud_that_does_not_resize(self):
        case = self.case({"hp": 20, "g": 20}, resize=False)
        self.assertRaisesRegex(
            unittest.SkipTest, "resize is False", case.test_resize_to_the_other_class
        )

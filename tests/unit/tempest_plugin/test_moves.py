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

    def test_a_flavor_that_a_general_vm_can_be_resized_to(self):
        for disks in ({"hp": 20, "g": 20, "alt": 30}, {"hp": 0, "g": 0, "alt": 0}):
            case = self.case(disks)
            self.assertEqual("id of hp", case.resizable_to("high_performance_flavor"))
            self.assertEqual("id of alt", case.resizable_to("general_flavor_alt"))

    def test_why_it_is_not_resized(self):
        smaller = {"hp": 0, "g": 20, "alt": 10}
        other, within = "test_resize_to_the_other_class", "test_resize_within_general"
        for options, test, words in (
            ({}, other, "high_performance_flavor has.* 0 GB"),
            ({}, within, "general_flavor_alt has a disk of 10 GB"),
            ({"general_flavor_alt": None}, within, "names no other"),
            ({"resize": False}, other, "resize is False"),
        ):
            case = self.case(smaller, **options)
            self.assertRaisesRegex(unittest.SkipTest, words, getattr(case, test))

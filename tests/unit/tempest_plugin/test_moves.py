# SPDX-License-Identifier: Apache-2.0

import unittest
from types import SimpleNamespace

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
            ({"general_flavor_alt": None}, within, "is unset or equal"),
            ({"resize": False}, other, "resize is False"),
        ):
            case = self.case(smaller, **options)
            self.assertRaisesRegex(unittest.SkipTest, words, getattr(case, test))


class HostsTest(PluginCase):
    """Hosts of high-performance VMs alone, as in the DevStack of two machines."""

    def case(self, *inventories):
        self.configure(high_performance_flavor="hp", general_flavor="g")
        flavors = {
            name: {"id": f"id of {name}", "extra_specs": {}} for name in ["g", "hp"]
        }
        up = {"host": "a", "status": "enabled", "state": "up"}
        return self.make(
            "scenario.test_moves",
            "MovesTest",
            "test_resize_within_general",
            flavor_of=flavors,
            general="id of g",
            high_performance="id of hp",
            computes=lambda _: {"a": {}, "down": {}},
            services=SimpleNamespace(list_services=lambda **_: {"services": [up]}),
            tree_of=lambda _, host: inventories,
            empty_hosts=lambda _: self.fail("it waits for a host"),
        )

    def test_nobody_waits_for_a_host_that_never_comes(self):
        case = self.case({"PCPU": {"total": 20}}, {"MEMORY_MB": {"total": 1024}})
        exc = self.assertRaises(unittest.SkipTest, case.boot_on_empty_host, "id of g")
        words = "no empty host takes flavor g; no host offers the flavor's resources"
        self.assertEqual(words, str(exc))

    def test_who_is_served(self):
        case = self.case({"VCPU": {"total": 20}})
        self.assertTrue(case.serves("a", "id of g"))
        for room in (0, 2):
            type(case).room = lambda _, host, room=room: room
            self.assertEqual(room > 0, case.serves("a", "id of hp"))


class NetworkTest(PluginCase):
    def test_only_its_tests_ask_for_a_network(self):
        self.configure()
        moves = self.make("scenario.test_moves", "MovesTest", "test_cold_migration")
        self.assertEqual((False, "none"), (moves.with_network, moves.networks()))
        case = self.make(
            "scenario.test_network", "NetworkTest", "test_boot_with_a_port"
        )
        type(case).get_tenant_network = lambda _, credentials: {
            "id": f"of {credentials}"
        }
        self.assertTrue(case.with_network)
        self.assertEqual([{"uuid": "of admin"}], case.networks())

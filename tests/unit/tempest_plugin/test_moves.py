# SPDX-License-Identifier: Apache-2.0

import unittest
from types import SimpleNamespace

import fixtures

from nova_perfvm import constants as const
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

    def test_between_disks_as_large_as_the_image(self):
        case = self.case({"hp": 0, "g": 0})
        self.assertEqual("id of hp", case.resizable_to("high_performance_flavor"))

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


class OneHostTest(PluginCase):
    """A controller with shared CPUs, and a compute host with slots."""

    def case(self, *hosts):
        self.configure(placement="slots", max_per_host=2)
        path = "nova_perfvm.tempest_plugin.tests.base.time.sleep"
        self.useFixture(fixtures.MonkeyPatch(path, self.must_not_wait))
        self.on = {host: [] for host in hosts}
        up = {"status": "enabled", "state": "up"}
        inventories = {
            "shared-id": {"VCPU": {"total": 2, "reserved": 0}},
            "slots-id": {"PCPU": {"total": 2}, const.RC_SLOT: {"total": 2}},
        }
        return self.make(
            "scenario.test_moves",
            "MovesTest",
            "test_cold_migration",
            high_performance="uuid-hp",
            general="uuid-g",
            flavor_of={"hp": {"id": "uuid-hp"}, "g": {"id": "uuid-g"}},
            services=SimpleNamespace(
                list_services=lambda binary: {
                    "services": [{"host": host, **up} for host in hosts]
                }
            ),
            computes=lambda _: {
                host: {"id": f"{host}-id", "vcpus_used": 0} for host in hosts
            },
            servers_of=lambda _, host: self.on[host],
            inventories_of=lambda _, provider: inventories[provider],
            providers=SimpleNamespace(
                list_resource_providers=lambda in_tree: {
                    "resource_providers": [{"uuid": in_tree}]
                }
            ),
            create=lambda _, flavor, host: (flavor, host),
            wait=lambda _, asked, state: self.settle(asked, state),
            delete=lambda _, server: None,
        )

    def must_not_wait(self, seconds):
        self.fail("it waits for a host that never comes")

    def settle(self, asked, state):
        flavor, host = asked
        if (flavor, host) in {("uuid-hp", "slots"), ("uuid-g", "shared")}:
            self.on[host].append(asked)
            return {"id": asked, "status": state}
        fault = {"message": "No valid host was found. "}
        return {"id": asked, "status": "ERROR", "fault": fault}

    def test_a_move_needs_another(self):
        case = self.case("shared", "slots")
        self.assertEqual("slots", case.boot_on_empty_host("uuid-hp")[0])
        self.assertRaisesRegex(
            unittest.SkipTest,
            "flavor hp: servers are on all that do: slots",
            case.boot_on_empty_host,
            "uuid-hp",
        )
        # The other class has its own.
        self.assertEqual("shared", case.boot_on_empty_host("uuid-g")[0])

    def test_none_for_a_class(self):
        case = self.case("slots")
        self.assertRaisesRegex(
            unittest.SkipTest, "flavor g: .*: -", case.boot_on_empty_host, "uuid-g"
        )

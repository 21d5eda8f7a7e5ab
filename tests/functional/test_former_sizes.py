# SPDX-License-Identifier: Apache-2.0
"""A policy that changes the size of a class while VMs of the old size run."""

import pathlib

import yaml

from nova_perfvm.policy import loader
from nova_perfvm.sandbox.embedded import DEFAULT_FILTERS
from tests.embedded import ActionFailedError
from tests.functional import base

OLD, OLD_LARGE = base.HP_64, base.HP_128
NEW, NEW_LARGE = "hp.18c.64g", "hp.18c.128g"


class PolicyChange:
    """A cloud whose high-performance VMs have 20 vCPUs at first, then 18."""

    FLAVORS = (OLD, OLD_LARGE)

    def change_policy(self, former):
        """Let new VMs have 18 vCPUs, and those that run these sizes, too."""
        document = self.policy.as_document()
        document["classes"]["high-performance"] |= {
            "vcpus": 18,
            "former_vcpus": former,
            "flavors": {
                "name": "hp.{vcpus}c.{memory_gb}g",
                "memory_gb": [64, 128],
                "root_gb": 0,
            },
        }
        path = pathlib.Path(self.path)
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        self.policy = loader.load(path)
        self.create_flavors(NEW, NEW_LARGE)
        self.cloud.restart_scheduler(DEFAULT_FILTERS)

    def assert_on(self, host, vcpus, *servers):
        """Look that servers are on a host, each with its CPUs on a node of its own."""
        found = [self.servers.show(server).host for server in servers]
        self.assertEqual([host] * len(servers), found)
        guests = [self.cloud.guest(server) for server in servers]
        self.assertEqual(vcpus, [len(guest.pins) for guest in guests])
        nodes = [node for guest in guests for node in guest.host_nodes]
        self.assertEqual(len(servers), len(set(nodes)), nodes)

    def assert_fails(self, code, act, server, *args):
        """Look that the scheduler refuses to move a server, for this reason."""
        error = self.assertRaises(ActionFailedError, act, server, *args)
        self.assertIn("No valid host", error.detail)
        self.assert_reason(server, code)


class SizeCase(PolicyChange):
    """What holds whatever keeps VMs apart; with hosts hp1 and hp2."""

    def test_new_vms_and_resizes(self):
        old = self.boot(OLD, host="hp1")
        self.change_policy([20])

        self.assert_reason(self.boot_refused(OLD), "flavor.vcpus")

        # More memory makes no VM of the former size that there was not.
        old = self.servers.confirm(self.servers.resize(old, OLD_LARGE))
        self.assert_on("hp2", [20], old)
        new = self.servers.confirm(self.servers.resize(old, NEW))
        self.assert_on("hp1", [18], new)
        self.assert_fails("flavor.vcpus", self.servers.resize, new, OLD)
        self.assertEqual(NEW, self.servers.show(new).flavor)

    def test_without_the_key(self):
        old = self.boot(OLD, host="hp1")
        self.change_policy([])

        self.assert_fails("flavor.vcpus", self.servers.cold_migrate, old)
        self.assert_fails("flavor.vcpus", self.servers.live_migrate, old)
        # Its pins are taken for a stranger's, who strands the other node.
        refused = self.boot_refused(NEW, host="hp1")
        self.assert_reason(refused, "host.foreign_pins")
        shelved = self.servers.shelve(old)
        self.assert_fails("flavor.vcpus", self.servers.unshelve, shelved)


class SlotsCase(PolicyChange, base.FunctionalTest):
    """Hosts whose VMs Placement counts."""

    CLOUD = None
    PLACEMENT = "slots"

    def setUp(self):
        super().setUp()
        self.path = self.write_policy()
        self.start_cloud(policy_file=self.path)
        for name in ("hp1", "hp2"):
            self.cloud.start_configured(name, self.policy, "dedicated")


class TestSlots(SizeCase, SlotsCase):
    pass


class TestExclusivity(PolicyChange, base.FunctionalTest):
    """Hosts that either class may use, as far as Placement knows."""

    CLOUD = None
    FLAVORS = (OLD, base.GENERAL_2)

    def setUp(self):
        super().setUp()
        self.path = self.write_policy()
        self.start_cloud(policy_file=self.path, disable_fallback_pcpu_query=False)

    def test_former_sizes_and_general_vms_keep_off_each_other(self):
        """And a general VM of that size gets no former size."""
        for name in ("open1", "open2"):
            self.cloud.start_host(name)
        # A flavor with a root disk of its own is no target for a volume.
        large = self.cloud.create_flavor("general-volume", 20, 65536, 0)
        old = self.boot(OLD, host="open1")
        general = self.boot(large, host="open2")
        self.change_policy([20])

        refused = self.boot_refused(base.GENERAL_2, host="open1")

        self.assert_reason(refused, "host.class_conflict")
        self.assert_fails("host.class_conflict", self.servers.cold_migrate, old)
        self.assert_fails("flavor.vcpus", self.servers.resize, general, OLD)

# SPDX-License-Identifier: Apache-2.0
"""A policy that changes the size of a class while VMs of the old size run."""

import functools
import pathlib
from unittest import mock

import yaml

from nova_perfvm import findings as codes
from nova_perfvm.cloud import nova_database
from nova_perfvm.policy import loader
from tests.cloud import DEFAULT_FILTERS, servers
from tests.embedded import ActionFailedError
from tests.functional import base, elastic, shell

OLD, OLD_LARGE = base.HP_64, base.HP_128
NEW, NEW_LARGE = "hp.18c.64g", "hp.18c.128g"


class PolicyChange:
    """A cloud whose high-performance VMs have 20 vCPUs at first, then 18."""

    FLAVORS = (OLD, OLD_LARGE)
    made = False

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
        if not self.made:
            self.create_flavors(NEW, NEW_LARGE)
        self.made = True
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
        # The audit knows better.
        self.assert_found(codes.WRONG_SIZE, *[codes.FLAVOR_DIFFERS] * 2)
        self.do_remedies()
        self.assertEqual("ACTIVE", self.servers.show(shelved).status)
        self.assert_found(codes.FORMER_SIZE)


class SchemeCase(SizeCase, shell.ShellMixin):
    """Hosts hp1 and hp2, as the scheme of the policy wants them.

    :cvar MODE: how they are configured
    :cvar ENROLL: options with which they are enrolled; None where they are not
    """

    FLAVORS = PolicyChange.FLAVORS
    MODE = "dedicated"
    ENROLL = None

    def setUp(self):
        super().setUp()
        # Nova's database is that of the cloud in this process.
        self.enterContext(mock.patch.object(nova_database, "configure"))
        for name in ("hp1", "hp2"):
            self.start(name)

    def start(self, name):
        self.cloud.start_configured(name, self.policy, self.MODE)
        if self.ENROLL is not None:
            enroll = ("host", "enroll", name, "--yes", *self.ENROLL)
            self.assert_command(0, "is enrolled", *enroll, *self.policy_file())

    def found(self):
        """Return what the audit finds of servers and flavors, as rows."""
        options = ["--from-nova-db"] if self.PLACEMENT == "cells" else []
        _, rows, _ = self.run_json("audit", *self.policy_file(), *options)
        return [row for row in rows if row["Level"] != "unknown"]

    def assert_found(self, *codes):
        self.assertEqual(sorted(codes), sorted(row["Code"] for row in self.found()))

    def do_remedies(self):
        """Do all that the audit proposes."""
        for row in self.found():
            lines = row["Remedy"]
            if "former_vcpus: [20]" in lines:
                self.change_policy([20])
            self.assert_pasted(lines)
            for shown in self.cloud.api.get_servers():
                self.settled(shown["id"])

    def settled(self, server_id):
        """Return a server when Nova is at nothing with it."""
        look = functools.partial(self.servers._settled, server_id)
        servers.until(look, f"no task of {server_id}")
        return servers.server_of(self.cloud.api.get_server(server_id))

    def test_every_move(self):
        """One of a former size moves as one of today's size does."""
        old = self.boot(OLD, host="hp1")
        self.change_policy([20])
        new = self.boot(NEW)
        self.assertEqual("hp1", new.host)
        for server, vcpus in ((old, 20), (new, 18)):
            for first, second, host in (
                ("cold_migrate", "confirm", "hp2"),
                ("cold_migrate", "revert", "hp2"),
                ("live_migrate", "show", "hp1"),
                ("shelve", "unshelve", "hp1"),
            ):
                self.cloud.run_periodics()
                moved = getattr(self.servers, first)(server)
                getattr(self.servers, second)(moved)
                self.assert_on(host, [vcpus], server)
        self.assert_on("hp1", [20, 18], old, new)
        self.cloud.run_periodics()
        self.cloud.fail_host("hp1")
        for server in (old, new):
            self.servers.evacuate(server)
        self.assert_on("hp2", [20, 18], old, new)

    def test_remedies(self):
        """Whatever state they are in, VMs become ones of today's size."""
        self.start("hp3")
        states = {
            "ACTIVE": self.boot(OLD, host="hp1"),
            "SHUTOFF": self.boot(OLD, host="hp1"),
            "SHELVED_OFFLOADED": self.boot(OLD, host="hp2"),
        }
        self.servers.act(states["SHUTOFF"], {"os-stop": None}, "SHUTOFF")
        self.servers.shelve(states["SHELVED_OFFLOADED"])
        self.change_policy([20])
        of_flavors = [codes.FLAVOR_DIFFERS] * 2
        self.assert_found(*[codes.FORMER_SIZE] * len(states), *of_flavors)

        self.do_remedies()

        found = [self.servers.show(server) for server in states.values()]
        self.assertEqual([NEW] * len(states), [server.flavor for server in found])
        self.assert_found()


class TestCells(SchemeCase, elastic.ElasticTest):
    """tests/long has the other schemes."""

    PLACEMENT = "cells"
    ENROLL = ("--from-nova-db",)

    def test_a_flavor_from_before_the_scheme(self):
        """Its VMs ask for no NUMA node, so that none is brought back."""
        self.cloud.create_flavor("before", 20, 65536, 0, base.CLAIMS_HP)
        self.cloud.start_configured("hp3", self.policy, self.MODE)
        shelved = self.servers.shelve(self.boot_before("before", host="hp3"))
        self.change_policy([20])

        unshelve = functools.partial(self.servers.unshelve, shelved)
        self.assertRaises(ActionFailedError, unshelve)
        found = {row["Code"]: row for row in self.found() if "vm1" in row["Subject"]}
        expected = {codes.FORMER_SIZE, codes.FLAVOR_WITHOUT_UNITS}
        self.assertEqual(expected, found.keys())
        self.assertNotIn("can be moved", found[codes.FORMER_SIZE]["Observed"])
        for row in found.values():
            self.assertNotIn("server unshelve", row["Remedy"])
            self.assertIn(f"server create --flavor {NEW} --image", row["Remedy"])

        # What the remedy says of a root volume.
        shown = self.cloud.api.get_server(shelved.id)
        (volume,) = shown["os-extended-volumes:volumes_attached"]
        self.assertFalse(volume["delete_on_termination"])
        self.servers.delete(shelved)
        root = {"uuid": volume["id"], "source_type": "volume", "boot_index": 0}
        devices = [root | {"destination_type": "volume"}]
        again = self.boot(NEW, properties={"block_device_mapping_v2": devices})
        self.assert_on(again.host, [18], again)


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

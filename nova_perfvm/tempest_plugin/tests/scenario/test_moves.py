# SPDX-License-Identifier: Apache-2.0
"""After every kind of move, the class's rules hold on the VM's new host."""

import contextlib

from tempest import config
from tempest.lib import decorators
from tempest.lib import exceptions as lib_exc

from nova_perfvm.tempest_plugin.tests import base

CONF = config.CONF

# nova-scheduler counts a moved server on its old host until that host's nova-compute
# reports its usage: [DEFAULT]update_resources_interval, a minute by default.
SYNC_S = 150


class MovesTest(base.PerfVMTest):
    """Moves between two empty hosts that take high-performance VMs."""

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if CONF.compute.min_compute_nodes < 2:
            raise cls.skipException(
                "[compute]min_compute_nodes is less than 2: there is no host to move to"
            )

    def boot_movable(self):
        """Boot a high-performance VM, with another empty host to which it can move.

        :returns: the server's ID, its host, and the other host
        """
        target, other = self.boot_on_empty_host(self.high_performance)
        source, server = self.boot_on_empty_host(self.high_performance)
        self.delete(other["id"])
        return server["id"], source, target

    def assert_moved(self, server, source):
        """Assert that a high-performance VM left `source`, and is pinned elsewhere."""
        shown = self.show(server)
        self.assertEqual("ACTIVE", shown["status"], shown.get("fault"))
        host = base.host_of(shown)
        self.assertNotEqual(source, host)
        self.assert_pinned(server)
        self.assert_closed(self.general, host)
        # The source is empty: it takes as many VMs as before.
        again = [
            self.boot_once_known(self.high_performance, source)["id"]
            for _ in range(self.room(source))
        ]
        self.assert_disjoint(again)

    def boot_once_known(self, flavor, host):
        """Boot a server on a host that another server has left, retrying for SYNC_S."""
        for _ in base.repeat(SYNC_S):
            server = self.wait(self.create(flavor, host), "ACTIVE")
            if server["status"] == "ACTIVE":
                break
            self.delete(server["id"])
        self.assertEqual("ACTIVE", server["status"], server.get("fault"))
        return server

    def boot_on_empty_host(self, flavor):
        """Boot a server on an empty host, retrying while hosts still seem occupied."""
        hosts = self.computes().keys() & self.hosts_up()
        if not any(self.serves(host, flavor) for host in hosts):
            raise self.no_host_takes(flavor, "no host offers the flavor's resources")
        for _ in base.repeat(SYNC_S):
            with contextlib.suppress(self.skipException):
                return super().boot_on_empty_host(flavor)
        return super().boot_on_empty_host(flavor)

    def need(self, feature):
        """Skip the test where the hypervisor lacks a feature."""
        if not CONF.compute_feature_enabled[feature]:
            raise self.skipException(f"[compute-feature-enabled]{feature} is False")

    def resize(self, server, flavor):
        self.servers.resize_server(server, flavor)
        self.confirm(server)

    def resizable_to(self, option):
        """Return the ID of an option's flavor, if a general VM can be resized to it."""
        self.need("resize")
        flavor = self._flavor(option)
        now, then = (
            self.flavor_of[CONF.perfvm[name]]["disk"]
            for name in ("general_flavor", option)
        )
        # To a disk of 0 GB nova-api answers 400; the hypervisor refuses smaller disks.
        if then < now:
            raise self.skipException(
                f"[perfvm]{option} has a disk of {then} GB, general_flavor a disk of "
                f"{now}: Nova never shrinks local disks"
            )
        return flavor

    def confirm(self, server):
        shown = self.wait(server, "VERIFY_RESIZE", "ACTIVE")
        self.assertEqual("VERIFY_RESIZE", shown["status"], shown.get("fault"))
        self.servers.confirm_resize_server(server)
        self.wait(server, "ACTIVE")

    @decorators.idempotent_id("cd8a7628-1011-4880-a613-fc88d44eeb62")
    def test_cold_migration(self):
        self.need("cold_migration")
        server, source, _ = self.boot_movable()
        self.servers.migrate_server(server)
        self.confirm(server)
        self.assert_moved(server, source)

    @decorators.idempotent_id("47c232b5-021e-49ea-9de6-40e7e3db1d67")
    def test_live_migration(self):
        self.need("live_migration")
        server, source, target = self.boot_movable()
        self.servers.live_migrate_server(server, host=target, block_migration="auto")
        self.wait(server, "ACTIVE")
        self.assert_moved(server, source)

    @decorators.idempotent_id("e7497bdd-c46b-426c-8368-08ccb893a8e6")
    def test_cold_migration_to_a_host_of_the_other_class(self):
        self.need_exclusive_hosts()
        self.need("cold_migration")
        _, server = self.boot_on_empty_host(self.high_performance)
        taken, _ = self.boot_on_empty_host(self.general)
        # Nova answers 400, or 202 and then leaves the server on its host.
        with contextlib.suppress(lib_exc.BadRequest):
            self.servers.migrate_server(server["id"], host=taken)
        shown = self.wait(server["id"], "ACTIVE")
        self.assertEqual(base.host_of(server), base.host_of(shown))
        self.assert_pinned(server["id"])

    @decorators.idempotent_id("06f61d75-5d7e-4521-911b-bdebf27bc41d")
    def test_resize_within_general(self):
        if CONF.perfvm.general_flavor_alt in {None, CONF.perfvm.general_flavor}:
            raise self.skipException(
                "[perfvm]general_flavor_alt is unset or equal to general_flavor"
            )
        alt = self.resizable_to("general_flavor_alt")
        host, server = self.boot_on_empty_host(self.general)
        self.resize(server["id"], alt)
        shown = self.show(server["id"])
        self.assertEqual(
            CONF.perfvm.general_flavor_alt, shown["flavor"]["original_name"]
        )
        self.assert_closed(self.high_performance, base.host_of(shown))
        if base.host_of(shown) != host:
            self.assertEqual([], self.servers_of(host))

    @decorators.idempotent_id("812c217c-8632-44dd-b06d-41e1c64cf9e9")
    def test_resize_to_the_other_class(self):
        """A general VM, resized to the pinned class, lands on an exclusive host."""
        pinned = self.resizable_to("high_performance_flavor")
        _, other = self.boot_on_empty_host(self.high_performance)
        _, server = self.boot_on_empty_host(self.general)
        self.delete(other["id"])
        self.resize(server["id"], pinned)
        host = base.host_of(self.show(server["id"]))
        if CONF.perfvm.exclusive == "host":
            self.assertEqual([server["id"]], [s["id"] for s in self.servers_of(host)])
        self.assert_pinned(server["id"])
        self.assert_closed(self.general, host)

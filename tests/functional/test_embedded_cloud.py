# SPDX-License-Identifier: Apache-2.0
"""The in-process cloud itself: what its threads wait for, what they open."""

import collections
import datetime as dt

import fixtures
from nova import context, objects
from nova.api.openstack import wsgi
from sqlalchemy import event, pool
from sqlalchemy.sql.compiler import SQLCompiler

from nova_perfvm.sandbox.embedded import (
    FILTERS_WITHOUT_PERFVM,
    EmbeddedCloud,
    messages,
    ports,
)
from tests.functional import base

GENERAL = "general"


class TestEmbeddedCloud(base.FunctionalTest):
    CLOUD = None

    def start(self):
        return EmbeddedCloud(enabled_filters=FILTERS_WITHOUT_PERFVM)

    def run_a_server(self, cloud):
        server = cloud.boot(GENERAL)
        self.assertEqual(("ACTIVE", ""), (server.status, server.fault))
        cloud.servers.delete(server)

    def test_who_waits_is_woken(self):
        """Nothing of a cloud's life rests on looking again after a while."""
        # Longer than the test may take: whoever is not woken makes it fail.
        self.useFixture(fixtures.MockPatchObject(messages, "LOOK_S", 10 * base.LIMIT_S))
        with self.start() as cloud:
            cloud.create_flavor(GENERAL, 2, 4096, 40)
            cloud.start_host("host1")
            self.run_a_server(cloud)
            cloud.restart_host("host1")
            cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
            self.run_a_server(cloud)

    def test_a_move_leaves_no_guest_where_it_came_from(self):
        """Whichever compute was started last."""
        for last in ("host1", "host2"):
            with self.subTest(last), self.start() as cloud:
                cloud.create_flavor(GENERAL, 2, 4096, 40)
                for name in ("host1", "host2"):
                    cloud.start_host(name)
                server = cloud.boot(GENERAL, host="host1")
                cloud.servers.cold_migrate(server, "host2")
                cloud.restart_host(last)
                cloud.servers.confirm(server)
                guests = {name: len(cloud.domains(name)) for name in ("host1", "host2")}
                self.assertEqual({"host1": 0, "host2": 1}, guests)

    def test_a_host_that_is_back_is_up(self):
        """However long it was away: Nova waits for its report."""
        with self.start() as cloud:
            cloud.start_host("host1")
            cloud.fail_host("host1", stop=True)
            in_cell = context.get_admin_context()
            (cell,) = objects.CellMappingList.get_all(in_cell)[1:]
            with context.target_cell(in_cell, cell) as in_cell:
                service = objects.Service.get_by_compute_host(in_cell, "host1")
                service.last_seen_up = dt.datetime(2026, 1, 1)  # noqa: DTZ001
                service.save()
            cloud.recover_host("host1")
            (service,) = cloud.api.get_services(host="host1", binary="nova-compute")
            self.assertEqual("up", service["state"])

    def test_ports_may_change_while_they_are_read(self):
        bindings = ports.Bindings(host1="one")
        seen = bindings.items()
        for host in ("host2", "host3"):
            bindings[host] = "another"
        self.assertEqual([("host1", "one")], list(seen))
        self.assertEqual({"host1", "host2", "host3"}, set(bindings))
        with self.start() as cloud:
            found = cloud._services.neutron._port_bindings
            self.assertEqual(ports.Bindings, found.default_factory)

    def test_connections_are_used_again(self):
        events = []
        for name in ("connect", "checkout"):
            listener = _recording(events, name)
            event.listen(pool.Pool, name, listener)
            self.addCleanup(event.remove, pool.Pool, name, listener)
        with self.start() as cloud:
            cloud.create_flavor(GENERAL, 2, 4096, 40)
            cloud.start_host("host1")
            self.run_a_server(cloud)
        self.assertGreater(
            events.count("checkout"), 10 * events.count("connect"), "connections"
        )

    def test_what_was_compiled_is_used_by_the_next_cloud(self):
        # Not before a cloud has read nova.conf.
        with self.start():
            from nova.api.openstack.compute import routes
        made = collections.Counter()
        for owner, name in (
            (SQLCompiler, "__init__"),
            (wsgi.Resource, "__init__"),
        ):
            counting = _counting(made, owner, getattr(owner, name))
            self.useFixture(fixtures.MockPatchObject(owner, name, counting))
        for _ in range(2):
            made.clear()
            with self.start() as cloud:
                cloud.create_flavor(GENERAL, 2, 4096, 40)
                cloud.start_host("host1")
                self.run_a_server(cloud)
        # Of hundreds.  A few statements are made anew each time.
        self.assertLess(made[SQLCompiler], 100)
        # One for each of Nova's controllers, which have hundreds of routes.
        self.assertLess(made[wsgi.Resource], len(routes.ROUTE_LIST))
        self.assertLess(0, made[wsgi.Resource])


def _counting(made, what, original):
    def counted(*args, **options):
        made[what] += 1
        return original(*args, **options)

    return counted


def _recording(events, name):
    def record(*_args):
        events.append(name)

    return record

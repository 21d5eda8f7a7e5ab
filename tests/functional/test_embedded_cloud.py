# SPDX-License-Identifier: Apache-2.0
"""The in-process cloud itself."""

import datetime as dt

from nova import context, objects
from nova.compute import manager as compute_manager

from tests.embedded import FILTERS_WITHOUT_PERFVM, OperatedCloud
from tests.functional import base

GENERAL = "general"


class TestEmbeddedCloud(base.FunctionalTest):
    CLOUD = None

    def start(self):
        return OperatedCloud(enabled_filters=FILTERS_WITHOUT_PERFVM)

    def test_a_move_leaves_no_guest_where_it_came_from(self):
        """Whichever compute was started last."""
        for last in ("host1", "host2"):
            with self.start() as cloud:
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

    def test_a_service_that_stops_late_ends_no_later_cloud(self):
        """A compute that stops after its test shuts Nova's executors down."""
        if not hasattr(compute_manager, "thread_pool_factory"):
            self.skipTest("this Nova has no factory of executors")
        factory = compute_manager.thread_pool_factory
        factory.FACTORY.shutdown_all()
        with self.start() as cloud:
            cloud.create_flavor(GENERAL, 2, 4096, 40)
            cloud.start_host("host1")
            factory.shutdown_all_executors()
            cloud.boot(GENERAL)
            self.assertEqual(1, len(cloud.domains("host1")))

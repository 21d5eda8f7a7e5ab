# SPDX-License-Identifier: Apache-2.0
"""VMs that a host's own figures leave out, and that no other class may meet.

Under ``placement: none`` the filter alone keeps the classes apart.  Until a compute's
next periodic task nova-scheduler sees no VM that was moved there, and none that was
moved away and may come back.
"""

import contextlib
import threading
from concurrent import futures
from unittest import mock

from nova import context, objects
from nova.compute.manager import ComputeManager

from tests.functional import base, client

GENERAL_4 = "g.4c.8g"


@contextlib.contextmanager
def held(method):
    """Let the computes wait at a method of their manager.

    Yields two events: a compute sets the first when it is there, the test sets the
    second to let it go on.
    """
    original = getattr(ComputeManager, method)
    there, going = threading.Event(), threading.Event()

    def waiting(*arguments, **options):
        there.set()
        going.wait()
        return original(*arguments, **options)

    with mock.patch.object(ComputeManager, method, waiting):
        try:
            yield there, going
        finally:
            going.set()


class TestMovesInSight(client.ClientMixin, base.FunctionalTest):
    CLOUD = {"disable_fallback_pcpu_query": False}  # noqa: RUF012
    FLAVORS = (base.HP_64, base.GENERAL_2, GENERAL_4)

    def setUp(self):
        super().setUp()
        for host in ("open1", "open2"):
            self.cloud.start_host(host)

    def assert_refused(self, reasons, **options):
        self.assert_reason(self.boot_refused(**options), reasons)

    def assert_explained(self, expected):
        options = (
            "[workarounds]\ndisable_fallback_pcpu_query = False\n"
            "[filter_scheduler]\nenabled_filters = PerfVMFilter,NUMATopologyFilter\n"
        )
        (path,) = self.files(options)
        _, rows, _ = self.run_json(
            *("explain", "--flavor", base.HP_64, "--nova-conf", path),
            *("--policy", self.write_policy()),
        )
        found = {row["Reason"]: row["Hosts"] for row in rows}
        self.assertEqual(expected, found)

    def test_a_resize_that_is_reverted(self):
        general = self.boot(base.GENERAL_2, host="open1")
        general = self.servers.resize(general, GENERAL_4)
        self.assertEqual("open2", general.host)
        self.assert_refused("2 host.class_conflict")
        self.assert_explained({"host.class_conflict": ["open1", "open2"]})

        self.cloud.run_periodics()
        self.assert_refused("2 host.class_conflict")

        with (
            futures.ThreadPoolExecutor(1) as pool,
            held("finish_revert_resize") as (finishing, finish),
        ):
            revert = pool.submit(self.servers.revert, general)
            finishing.wait()
            # The move counts as reverted, and the server is still on the other host.
            self.assert_refused("1 host.class_conflict", host="open1")
            self.assert_explained({"host.class_conflict": ["open1", "open2"]})
            finish.set()
            self.assertEqual("open1", revert.result().host)
        self.assert_refused("1 host.class_conflict", host="open1")
        self.assertEqual("open2", self.boot().host)
        self.servers.delete(general)
        self.boot(host="open1")

    def test_a_resize_to_another_class(self):
        """It is pinned on the host that it leaves, and not on the host it goes to."""
        high = self.boot(host="open1")
        with (
            futures.ThreadPoolExecutor(1) as pool,
            held("finish_resize") as (finishing, finish),
            held("resize_instance") as (leaving, leave),
        ):
            resize = pool.submit(self.servers.resize, high, base.GENERAL_2)
            leaving.wait()
            self.assert_refused("1 host.class_conflict", host="open2")
            leave.set()
            finishing.wait()
            # Nova names the new host already, with the topology of the old one.
            self.assert_refused("1 host.class_conflict", host="open2")
            finish.set()
            general = resize.result()
        self.assertEqual("open2", general.host)
        self.assert_refused("1 host.class_conflict", host="open2")
        self.boot(host="open1")

    def test_a_move_that_is_over_before_the_next_report(self):
        general = self.boot(base.GENERAL_2, host="open1")
        general = self.servers.live_migrate(general, "open2")
        self.assertEqual("open2", general.host)

        self.assertEqual("open1", self.boot().host)
        self.assert_refused("1 host.class_conflict", host="open2")
        # A record that nobody ended, as that of a compute that died in the middle.
        cells = objects.CellMappingList.get_all(context.get_admin_context())
        (cell,) = [cell for cell in cells if not cell.is_cell0()]
        with context.target_cell(context.get_admin_context(), cell) as targeted:
            (move,) = objects.MigrationList.get_by_filters(targeted, {})
            move.status = "running"
            move.save()
        self.boot(host="open1")
        self.assert_refused("1 host.class_conflict", host="open2")

    def test_a_pinned_vm_that_is_away_is_none_of_another_class(self):
        pinned = self.boot(host="open1")
        pinned = self.servers.cold_migrate(pinned, "open2")
        self.assertEqual("open2", pinned.host)
        for _ in range(2):
            self.boot()
        self.assert_refused("2 host.no_free_slot")


class TestExclusiveCells(base.FunctionalTest):
    """Without CPU sets unpinned VMs float over all NUMA nodes of a host."""

    CLOUD = None

    def test_a_move_that_is_over_before_the_next_report(self):
        classes = self.policy.as_document()["classes"]
        classes["high-performance"]["exclusive"] = "cell"
        path = self.write_policy(classes=classes)
        self.start_cloud(policy_file=path, disable_fallback_pcpu_query=False)
        for host in ("open1", "open2"):
            self.cloud.start_host(host)
        general = self.boot(base.GENERAL_2, host="open1")
        self.assertEqual("open2", self.servers.live_migrate(general).host)
        refused = self.boot_refused(host="open2")
        self.assert_reason(refused, "1 host.class_conflict")
        self.assert_high_performance(self.boot(host="open1"))

# SPDX-License-Identifier: Apache-2.0
"""Hosts made elastic, repaired and given back, on a real Nova and Placement."""

import concurrent.futures
import threading

import fixtures

from nova_perfvm import constants as const
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.errors import RefusedError
from nova_perfvm.policy import loader
from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.elastic import PLAIN_GENERAL, PLAIN_HP, CreatedAtOnce, ElasticTest


class TestEnroll(ElasticTest):
    def test_high_performance_vms(self):
        self.create_plain_flavors()
        self.cloud.start_host("h1")

        self.assertGreater(self.enroll("h1"), 0)

        self.assert_elastic("h1")
        for flavor in (PLAIN_HP, PLAIN_GENERAL):
            self.boot_refused(flavor)
            self.boot_refused(flavor, az="nova:h1")
        server = self.boot()
        before = self.view("h1")
        for refused in (
            lambda: self.enroll("h1", slots=0),
            lambda: self.unenroll("h1"),
        ):
            exc = self.assertRaises(RefusedError, refused)
            self.assertIn(server.name, str(exc))
        self.assertEqual(before, self.view("h1"))

        # nova-compute leaves the children alone.
        self.cloud.run_periodics()
        self.cloud.restart_host("h1")
        self.cloud.run_periodics()
        self.assertEqual(before.children, self.view("h1").children)
        self.assert_elastic("h1")

        self.assert_apart(server, self.boot())
        self.boot_refused(base.GENERAL_2)
        self.assertEqual({"a": [1000], "b": [1000]}, self.units("h1"))
        self.assertEqual(0, self.enroll("h1"))

    def test_enroll_and_unenroll_at_once(self):
        """As by several operators, all of whom create the aggregate."""
        self.cloud.start_host("h1")
        self.cloud.start_host("h2")

        with CreatedAtOnce(), concurrent.futures.ThreadPoolExecutor(6) as pool:
            runs = [pool.submit(self.enroll, host) for host in ("h1", "h2") * 3]
            for run in runs:
                run.result()

        self.assert_elastic("h1")
        self.assert_elastic("h2")
        (aggregate,) = answers.aggregates(self.api)
        self.assertEqual({"h1", "h2"}, aggregate.hosts)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for run in [
                pool.submit(self.enroll, "h1"),
                pool.submit(self.unenroll, "h1"),
            ]:
                # Neither can win for good; either may give up.
                run.exception()

        view = self.view("h1")
        self.assertTrue(view.closed or not view.enrolled)
        self.enroll("h1")
        self.assert_elastic("h1")

    def test_while_nova_compute_reports(self):
        """It writes the traits that it has read before with a generation read after.

        Its copy of the tree is without the trait of enrolling.  A change of the
        service's status lets it read traits and generation anew meanwhile
        (update_compute_provider_status() of nova/compute/manager.py), and
        set_traits_for_provider() of nova/scheduler/client/report.py takes that
        generation for the traits of the copy.
        """
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova.virt.libvirt import driver

        self.create_plain_flavors()
        self.cloud.start_host("h1")
        self.boot(PLAIN_GENERAL)
        original = driver.LibvirtDriver.update_provider_tree
        enrolling = threading.Thread(
            target=self.enroll, args=("h1",), kwargs={"backfill": True}
        )

        def update(*args, **options):
            original(*args, **options)
            if enrolling.ident is None:
                enrolling.start()
                enrolling.join()

        name = f"{driver.__name__}.LibvirtDriver.update_provider_tree"
        with fixtures.MonkeyPatch(name, update):
            self.cloud.run_periodics()

        self.assertFalse(enrolling.is_alive())
        self.assertIsNotNone(enrolling.ident)
        self.assert_elastic("h1")

    def test_hosts_for_one_class(self):
        self.cloud.start_host("hp1", dedicated="0-39")
        self.cloud.start_host("general1", shared="0-39")
        self.enroll("hp1")
        self.enroll("general1", slots=0)

        high, general = self.boot(), self.boot(base.GENERAL_2)

        self.assertEqual(("hp1", "general1"), (high.host, general.host))
        self.boot_refused(base.GENERAL_2, host="hp1")
        self.boot_refused(host="general1")
        self.assertIn(const.TRAIT_HIGH_PERFORMANCE, self.view("hp1").root.traits)
        # Without the option, what was said before holds.
        self.assertEqual(0, self.enroll("general1"))

    def test_repair(self):
        self.cloud.start_host("h1")
        self.enroll("h1")
        for damage in (
            self.inflate_child,
            self._take_childs_trait,
            self._delete_child,
            self._take_roots_trait,
            self._leave_placements_aggregate,
            self._leave_aggregate,
            self._strange_child,
        ):
            damage(self.view("h1"))

            self.assertGreater(self.enroll("h1"), 0)

            self.assert_elastic("h1")

    def _take_childs_trait(self, view):
        self.put(view.children[0], "traits", traits=[])

    def _delete_child(self, view):
        uuid = view.children[0].uuid
        self.api.placement("DELETE", f"/resource_providers/{uuid}")

    def _take_roots_trait(self, view):
        traits = sorted(view.root.traits - view.root.elastic_traits)
        self.put(view.root, "traits", traits=traits)

    def _leave_placements_aggregate(self, view):
        self.put(view.root, "aggregates", aggregates=[])

    def _leave_aggregate(self, view):
        number = view.isolated_by[0].id
        body = {"remove_host": {"host": "h1"}}
        self.api.nova("POST", f"/os-aggregates/{number}/action", body)

    def _strange_child(self, view):
        body = {"name": "h1_perfvm_c", "parent_provider_uuid": view.root.uuid}
        self.api.placement("POST", "/resource_providers", body)

    def test_after_the_service_was_deleted(self):
        self.cloud.start_host("h1")
        self.enroll("h1")

        self.delete_service("h1")

        self.assertEqual((), self.view("h1").children)
        self.boot_refused()
        self.enroll("h1")
        self.assert_elastic("h1")
        self.boot()


class TestLabelled(ClientMixin, ElasticTest):
    """``managed_hosts: labelled``: enrolled hosts are judged, and no others."""

    def write_policy(self, **changes):
        changes["managed_hosts"] = "labelled"
        path = super().write_policy(**changes)
        self.policy = loader.load(path)
        return path

    def judged(self):
        """Yield whom audit, and then preflight, find without a label."""
        for command in ("audit", "preflight"):
            _, rows, _ = self.run_json(command, *self.policy_file())
            yield [r["Subject"] for r in rows if r["Code"] == "audit.label_missing"]

    def test_enrolling_labels(self):
        self.cloud.start_host("h1")
        self.enroll("h1")
        self.assertEqual([[], []], list(self.judged()))
        self.assert_apart(self.boot(), self.boot())
        (aggregate,) = answers.aggregates(self.api)

        # As a cloud has it that was enrolled under all.
        self.api.nova(
            "POST",
            f"/os-aggregates/{aggregate.id}/action",
            {"set_metadata": {"metadata": {const.CLASS_KEY: None}}},
        )
        self.assertEqual([["h1"], ["h1"]], list(self.judged()))
        self.assertEqual(1, self.enroll("h1"))
        self.assertEqual([[], []], list(self.judged()))

        # Beside it an ordinary pool goes on.
        self.cloud.create_flavor("pinned-4", 4, 8192, 0, base.PINNED)
        self.cloud.start_host("pool1", dedicated="0-39")
        self.boot("pinned-4", host="pool1")

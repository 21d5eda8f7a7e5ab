# SPDX-License-Identifier: Apache-2.0
"""Pinned pools that are not the policy's, with the filter on and off."""

import pathlib

from tests.cloud import DEFAULT_FILTERS
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base, client

PINNED_4 = "pinned-4"
PINNED_20 = "pinned-20"


class TestLabelledHosts(base.FunctionalTest):
    """``managed_hosts: labelled``: hosts without the label are not touched."""

    CLOUD = None

    def setUp(self):
        super().setUp()
        path = self.write_policy(managed_hosts="labelled")
        self.start_cloud(enabled_filters=FILTERS_WITHOUT_PERFVM, policy_file=path)
        self.cloud.create_flavor(PINNED_4, 4, 8192, 0, base.PINNED)
        self.cloud.create_flavor(PINNED_20, 20, 65536, 0, base.PINNED)
        self.cloud.start_host("pool1", dedicated="0-39")
        self.cloud.start_host("hp1", dedicated="0-39")
        self.cloud.label_hosts("high-performance", "hp1")

    def test_pool_works_as_before(self):
        # From before the filter
        self.boot(PINNED_4, host="pool1")

        self.cloud.restart_scheduler(DEFAULT_FILTERS)
        # In this order: Nova spreads pinned VMs over the NUMA nodes, so two
        # small ones would leave no node for the large one.
        self.assertEqual("pool1", self.boot(PINNED_20).host)
        server = self.boot(PINNED_4)
        self.assertEqual("pool1", server.host)
        # It does not get onto labelled hosts.
        self.boot_refused(PINNED_20, host="hp1")
        refused = self.boot_refused(PINNED_4, host="hp1")
        self.assert_reason(refused, "1 host.class_reserved")
        self.servers.rebuild(server, self.cloud.create_image())
        self.cloud.start_host("pool2", dedicated="0-39")
        moved = self.servers.live_migrate(server)
        self.assertEqual("pool2", moved.host)
        self.assertEqual(4, len(self.cloud.guest(moved).pins))

        # And after it
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        self.assertTrue(self.cloud.guest(self.boot(PINNED_4, host="pool1")).pinned)

    def test_high_performance_vms_stay_on_labelled_hosts(self):
        self.cloud.restart_scheduler(DEFAULT_FILTERS)
        self.assert_apart(self.boot(), self.boot())

        server = self.boot_refused()

        # hp1 is full for Placement; pool1 is empty, but not the policy's.
        self.assert_reason(server, "rejected 1 of 1 hosts")
        self.assert_reason(server, "1 host.not_managed")
        self.assertEqual(0, self.cloud.usages("pool1").get("PCPU", 0))


class TestEnabling(client.ClientMixin, base.FunctionalTest):
    """What is told before the filter is on is what it refuses afterwards."""

    CLOUD = None
    FLAVORS = ()
    # A policy is proposed.
    POLICY = None

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.write_policy(managed_hosts="all"))
        self.start_cloud(
            enabled_filters=FILTERS_WITHOUT_PERFVM, policy_file=str(self.path)
        )
        for vcpus in (4, 8, 10):
            self.cloud.create_flavor(f"pinned-{vcpus}", vcpus, 8192, 0, base.PINNED)
        self.cloud.create_flavor("plain", 2, 4096, 0, {})
        self.cloud.start_host("pool1", dedicated="0-39")
        self.cloud.start_host("small", "2x6", dedicated="0-11")
        self.cloud.start_host("g1", shared="0-39")
        self.running = [
            self.boot(flavor, host=host)
            for flavor, host in (
                ("pinned-10", "pool1"),
                (PINNED_4, "pool1"),
                (PINNED_4, "pool1"),
                (PINNED_4, "small"),
                ("plain", "g1"),
            )
        ]

    def survey(self, *options):
        """Return {flavor: running VMs} of what would be refused."""
        _, rows, _ = self.run_json("survey", *options)
        return {
            row["What"]: row["Number"]
            for row in rows
            if row["Part"] == "refused when enforced"
        }

    def preflight(self):
        """Return {flavor: level and words} of what would be refused."""
        _, rows, _ = self.run_json("preflight", "--policy", str(self.path))
        return {
            row["Subject"]: (row["Level"], row["Observed"])
            for row in rows
            if row["Code"] == "preflight.flavors_to_refuse"
        }

    def refused(self):
        """Return flavor and host where no new VM comes beside those that run."""
        found = set()
        for flavor, host in sorted({(s.flavor, s.host) for s in self.running}):
            created = self.cloud.boot(flavor, host=host)
            if created.status == "ERROR":
                self.assert_reason(created, "1 host.classless_pinned")
                found.add((flavor, host))
            self.servers.delete(created)
        return found

    def test_what_is_refused_is_told_before(self):
        expected = {"pinned-10": 1, PINNED_4: 2}
        # Both sizes are of the policy that is proposed, which small hosts serve, too.
        self.assertEqual(expected | {PINNED_4: 3}, self.survey())
        self.assertEqual(expected, self.survey("--policy", str(self.path)))
        said = self.preflight()
        self.assertEqual({f"flavor {name}" for name in expected}, set(said))
        for flavor, vms in (("pinned-10", 1), (PINNED_4, 2)):
            level, words = said[f"flavor {flavor}"]
            self.assertEqual("warning", level)
            self.assertIn(f"running VMs: {vms}; hosts that refuse it: 1;", words)

        self.cloud.restart_scheduler(DEFAULT_FILTERS)
        pool = {("pinned-10", "pool1"), (PINNED_4, "pool1")}
        self.assertEqual(pool, self.refused())
        self.boot_refused("pinned-8")

        # The remedy of the check.
        labelled = self.write_policy(managed_hosts="labelled")
        self.path.write_text(pathlib.Path(labelled).read_text())
        self.assertEqual({}, self.preflight())
        self.assertEqual({}, self.survey("--policy", str(self.path)))
        self.cloud.restart_scheduler(DEFAULT_FILTERS)
        self.servers.delete(self.boot("pinned-8"))

        self.cloud.label_hosts("high-performance", "pool1")
        self.assertEqual(expected, self.survey("--policy", str(self.path)))
        refused = self.boot_refused(PINNED_4, host="pool1")
        self.assert_reason(refused, "1 host.class_reserved")


class TestAllHosts(base.FunctionalTest):
    """``managed_hosts: all``, the default."""

    def test_what_keeps_pinned_and_general_vms_off(self):
        self.cloud.create_flavor(PINNED_4, 4, 8192, 0, base.PINNED)
        self.cloud.start_host("hp1", dedicated="0-39")
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        self.boot(PINNED_4)
        self.cloud.restart_scheduler(DEFAULT_FILTERS)
        self.assert_reason(self.boot_refused(), "1 host.foreign_pins")

        # Hosts without slots stay open to pinned VMs.
        self.cloud.start_host("small", "2x6", dedicated="0-11")
        servers = [self.boot(PINNED_4), self.boot(PINNED_4)]
        self.assertEqual({"small"}, {server.host for server in servers})

        # A label reserves a host.
        self.cloud.start_host("reserved", shared="0-39")
        self.cloud.label_hosts("high-performance", "reserved")
        server = self.boot_refused(base.GENERAL_2, host="reserved")
        self.assert_reason(server, "1 host.class_reserved")
        self.cloud.start_host("general1", shared="0-39")
        self.assertEqual("general1", self.boot(base.GENERAL_2).host)

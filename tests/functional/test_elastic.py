# SPDX-License-Identifier: Apache-2.0
"""Elastic hosts: one pool, both classes, exclusive at any moment.

Placement alone keeps the classes apart, so most of it runs without the filter;
the filter makes refusals without need rarer.
"""

import collections

from nova_perfvm import constants as const
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose import audit
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import loader
from tests.cloud import DEFAULT_FILTERS
from tests.embedded import FILTERS_WITHOUT_PERFVM, ActionFailedError, at_once
from tests.functional import base
from tests.functional.elastic import ElasticTest, SameMoment

HIGH, GENERAL = base.HP_64, base.GENERAL_2
DEVICE = "CUSTOM_PCI_8086_1563"


class ElasticCase(ElasticTest):
    FILTERS = FILTERS_WITHOUT_PERFVM
    CHANGES = {}  # noqa: RUF012
    UNITS = const.UNITS_PER_CHILD

    def setUp(self):
        # No key of the policy: hosts and flavors of this test agree on another one.
        self.patch(const, "UNITS_PER_CHILD", self.UNITS)
        super().setUp()

    def write_policy(self, **changes):
        path = super().write_policy(**changes | self.CHANGES)
        self.policy = loader.load(path)
        return path

    def start_cloud(self, **options):
        super().start_cloud(enabled_filters=self.FILTERS, **options)

    def start(self, *names, shape="2x20", **options):
        """Start hosts without cpu sets and make them elastic."""
        for name in names:
            self.cloud.start_host(name, shape)
            self.enroll(name, **options)

    def taken(self, host):
        """Return the units that each VM has of a child, children joined."""
        return [units for child in self.units(host).values() for units in child]

    def free(self, host):
        return not any(self.units(host).values())

    def active(self, servers):
        return [server for server in servers if server.status == "ACTIVE"]


class TestBothClasses(ElasticCase):
    def test_a_host_serves_one_class_and_then_the_other(self):
        self.start("e1")
        general = [self.boot(GENERAL), self.boot(GENERAL)]
        for where in ({}, {"az": "nova:e1"}):
            self.boot_refused(HIGH, **where)

        for server in general:
            self.servers.delete(server)
        # Nothing was restarted in between.
        high = [self.boot(HIGH), self.boot(HIGH)]

        self.assert_apart(*high)
        self.cloud.restart_host("e1")
        self.cloud.run_periodics()
        self.assert_apart(*high)
        self.boot_refused(GENERAL)
        self.boot_refused(HIGH)
        self.assertEqual({"a": [1000], "b": [1000]}, self.units("e1"))

    def test_many_at_once_never_mix(self):
        self.start("e1")
        servers = self.active(self.cloud.boot_at_once([HIGH, GENERAL] * 3))

        classes = {server.flavor for server in servers}
        self.assertEqual(1, len(classes), servers)
        if classes == {HIGH}:
            self.assertLessEqual(len(servers), 2)

    def test_availability_zone(self):
        """It is an aggregate that the host's provider is in, and no child."""
        self.start("e1", "e2")
        zone = {"name": "zone2", "availability_zone": "zone2"}
        made = self.cloud.api.post_aggregate({"aggregate": zone})
        self.cloud.api.add_host_to_aggregate(made["id"], "e2")

        self.assertEqual("e2", self.boot(GENERAL, az="zone2").host)
        self.boot_refused(HIGH, az="zone2")

    def test_servers_without_units(self):
        """Who gets in is forced; what is left then preflight and audit find."""
        self.start("e1")
        self.boot(HIGH)
        self.cloud.start_host("plain", "2x20")
        flavor = self.cloud.create_flavor("plain", 2, 2048, 10)

        for where in ({"az": "nova:e1"}, {"host": "e1"}):
            self.boot_refused(flavor, **where)
        server, other = self.boot(flavor), self.boot(flavor)
        self.assertEqual("plain", server.host)
        self.assertRaises(ActionFailedError, self.servers.live_migrate, server, "e1")

        moved = self.servers.live_migrate(server, "e1", force=True)

        self.assertEqual("e1", moved.host)
        subject = audit.Subject(self.policy, read_snapshot(self.api))
        results = dict(audit.run(subject, audit.Selection.PREFLIGHT).results)
        lacking = [
            found.observed
            for found in results["VMs on these hosts carry units"]
            if found.code == "audit.units_lacking"
        ]
        self.assertIn(server.name, str(lacking))

        # Older microversions know no force, and take it for granted.
        body = {"os-migrateLive": {"host": "e1", "block_migration": "auto"}}
        self.servers.act(other, body, "ACTIVE", microversion="2.29")
        self.servers._migrated(other, "completed")
        self.assertEqual("e1", self.servers.show(other).host)


class TestFewUnits(ElasticCase):
    # A thousand general VMs would take too long.
    UNITS = 3

    def test_as_many_general_vms_as_units(self):
        self.start("e1")
        for _ in range(3):
            self.boot(GENERAL)
        self.boot_refused(GENERAL)
        self.assertEqual({"a": [1, 1, 1], "b": [1, 1, 1]}, self.units("e1"))


class TestMoves(ElasticCase):
    def setUp(self):
        super().setUp()
        self.start("e1", "e2")

    def test_units_follow_a_high_performance_vm(self):
        server = self.boot(HIGH, host="e1")

        moved = self.servers.cold_migrate(server)
        self.assertFalse(self.free("e1") or self.free("e2"))
        moved = self.servers.revert(moved)
        self.assertTrue(self.free("e2"))

        moved = self.servers.confirm(self.servers.cold_migrate(moved))
        self.assertEqual("e2", moved.host)
        self.assertTrue(self.free("e1"))

        moved = self.servers.live_migrate(moved, "e1")
        self.assertTrue(self.free("e2"))

        shelved = self.servers.shelve(moved)
        self.assertTrue(self.free("e1"))
        moved = self.servers.unshelve(shelved, "e2")
        self.assert_high_performance(moved)
        self.assertEqual([1000], self.taken("e2"))

        resized = self.servers.confirm(self.servers.resize(moved, GENERAL))
        self.assertEqual("e1", resized.host)
        self.assertTrue(self.free("e2"))
        self.assertEqual({"a": [1], "b": [1]}, self.units("e1"))

    def test_to_hosts_of_the_other_class(self):
        """None gets there, forced or not, and each gets beside its own."""
        high, general = self.boot(HIGH, host="e1"), self.boot(GENERAL, host="e2")
        for move in (self.servers.cold_migrate, self.servers.live_migrate):
            self.assertRaises(ActionFailedError, move, high)
        for server, host in ((high, "e2"), (general, "e1")):
            self.assertRaises(
                ActionFailedError, self.servers.live_migrate, server, host, force=True
            )
        self.start("e3")
        beside = self.boot(GENERAL, host="e3")
        self.assertEqual("e2", self.servers.live_migrate(beside, "e2").host)
        self.assertEqual({"a": [1, 1], "b": [1, 1]}, self.units("e2"))
        self.assertTrue(self.free("e3"))

        self.cloud.fail_host("e1")
        self.assertRaises(
            ActionFailedError, self.servers.evacuate, high, "e2", force=True
        )
        self.assertEqual("e3", self.servers.evacuate(high).host)
        self.assertEqual([1000], self.taken("e3"))


class TestStaleUsage(ElasticCase):
    """A host that a VM was moved to, and where it was deleted soon after."""

    FILTERS = DEFAULT_FILTERS

    def setUp(self):
        super().setUp()
        self.start("e1", "e2")

    def test_it_is_empty_only_from_the_next_report_on(self):
        # Nova counts what arrived as a migration, and a deletion ends no migration
        # (ResourceTracker.update_usage) before the next periodic task.
        server = self.boot(HIGH, host="e1")
        moved = self.servers.confirm(self.servers.cold_migrate(server))
        self.servers.delete(moved)
        self.assertTrue(self.free("e2"))

        self.boot_refused(GENERAL, host="e2")
        self.cloud.run_periodics()
        self.assertEqual("e2", self.boot(GENERAL, host="e2").host)


class TestHostsOfManySizes(ElasticCase):
    """Hosts of one, two and four nodes, two slots at most; flavors are the same."""

    CHANGES = {"host_shape": ["1x20", "2x20", "4x20"]}  # noqa: RUF012
    CAP = 2

    def write_policy(self, **changes):
        classes = self.policy.as_document()["classes"]
        classes["high-performance"]["max_per_host"] = self.CAP
        return super().write_policy(**changes, classes=classes)

    def test_all_in_one_cloud(self):
        shapes = {"e1": "1x20", "e2": "2x20", "e4": "4x20"}
        room = {"e1": 1, "e2": 2, "e4": self.CAP}
        for name, shape in shapes.items():
            self.start(name, shape=shape)
        general = [self.boot(GENERAL, host=name) for name in shapes]
        self.boot_refused(HIGH)
        for server in general:
            self.servers.delete(server)

        servers = [self.boot(HIGH) for _ in range(sum(room.values()))]

        self.assertEqual(room, collections.Counter(server.host for server in servers))
        self.boot_refused(HIGH)
        self.boot_refused(GENERAL)


class TestWithFilter(ElasticCase):
    """The filter lets claims begin with different children."""

    FILTERS = DEFAULT_FILTERS

    def test_two_in_one_request_on_an_empty_host(self):
        self.start("e1")
        servers = self.cloud.boot(HIGH, count=2)
        self.assertEqual(["ACTIVE"] * 2, [server.status for server in servers])
        self.assert_apart(*servers)
        at_once(self.servers.delete, servers)

        # No filter turns the children, so both claim the first, or nothing is.
        servers = self.cloud.boot(HIGH, count=2, az="nova:e1")
        self.assertEqual(["ERROR"] * 2, [server.status for server in servers])
        self.assertTrue(self.free("e1"))
        self.assert_apart(*(self.boot(HIGH, az="nova:e1") for _ in range(2)))

    def test_an_anti_affinity_group_closes_every_host(self):
        self.start("e1", "e2")
        group = self.cloud.api.post_server_groups(
            {"name": "apart", "policy": "anti-affinity"}
        )
        for _ in range(2):
            self.boot(GENERAL, hints={"group": group["id"]})
        self.boot_refused(HIGH)
        # Who asks for no such group is packed, and leaves a host its slots.
        self.start("e3")
        self.boot(GENERAL)
        self.assertEqual("e3", self.boot(HIGH).host)

    def test_a_dedicated_host_beside_an_elastic_one(self):
        """It serves its class alone."""
        self.start("e1")
        self.boot(HIGH, host="e1")
        self.cloud.start_configured("d1", self.policy, "dedicated")
        self.enroll("d1")
        self.assertIn(const.TRAIT_HIGH_PERFORMANCE, self.cloud.traits("d1"))
        self.boot(HIGH, host="d1")
        self.boot_refused(GENERAL)


class TestAtTheSameMoment(ElasticCase):
    """Claims that meet on a child: there is another, and so nobody is refused."""

    FILTERS = DEFAULT_FILTERS

    def test_two_creates(self):
        """Also where a PCI device is of a provider below the host's, too."""
        self.start("e1")
        self.add_devices("e1")
        (generated,) = (f for f in generate_flavors(self.policy) if f.name == HIGH)
        specs = {**generated.extra_specs, f"resources_pci:{DEVICE}": "1"}
        device = self.cloud.create_flavor("hp-device", 20, 65536, 0, specs)
        for flavor in (HIGH, device):
            with SameMoment(2):
                servers = self.cloud.boot_at_once([flavor] * 2)
            self.assertEqual(["ACTIVE"] * 2, [server.status for server in servers])
            self.assert_apart(*servers)
            if flavor == HIGH:
                at_once(self.servers.delete, servers)
        for server in servers:
            taken = [name for a in self.allocations(server).values() for name in a]
            self.assertEqual(1, taken.count(DEVICE), taken)

    def add_devices(self, host):
        """Give a host two devices, each of which two VMs can share."""
        self.api.placement("PUT", f"/resource_classes/{DEVICE}")
        for number in range(2):
            body = {
                "name": f"{host}_device{number}",
                "parent_provider_uuid": self.view(host).root.uuid,
            }
            made = self.api.placement("POST", "/resource_providers", body)
            path = f"/resource_providers/{made['uuid']}/inventories"
            body = {
                "resource_provider_generation": made["generation"],
                "inventories": {DEVICE: {"total": 2}},
            }
            self.api.placement("PUT", path, body)

    def test_evacuation_of_a_host(self):
        self.start("e1", "e2")
        first = self.boot(HIGH, host="e1")
        # Requests are numbered, and moves keep the number of the creation: so
        # those of the two that will move are both odd.
        between = self.boot(GENERAL, host="e2")
        servers = [first, self.boot(HIGH, host="e1")]
        self.servers.delete(between)
        self.cloud.fail_host("e1")

        with SameMoment(2):
            moved = at_once(self.servers.evacuate, servers)

        self.assertEqual(["e2"] * 2, [getattr(found, "host", found) for found in moved])
        self.assertEqual({"a": [1000], "b": [1000]}, self.units("e2"))
        self.assert_apart(*servers)


class TestFourOnTwoCells(ElasticCase):
    """As many in one request as an empty host has slots, several to a cell."""

    FILTERS = DEFAULT_FILTERS
    FLAVORS = ("hp.10c.64g",)
    SHAPE, SLOTS, VCPUS = "2x20", 4, 10

    def write_policy(self, **changes):
        classes = self.policy.as_document()["classes"]
        classes["high-performance"] |= {
            "vcpus": self.VCPUS,
            "max_per_host": self.SLOTS,
            "flavors": {"name": "hp.{vcpus}c.{memory_gb}g", "memory_gb": [64]},
        }
        return super().write_policy(**changes, classes=classes, host_shape=self.SHAPE)

    def test_all_at_once(self):
        self.start("e1", shape=self.SHAPE)
        servers = self.cloud.boot(self.FLAVORS[0], count=self.SLOTS)
        self.assertEqual({"ACTIVE"}, {server.status for server in servers}, servers)
        pins = [cpu for server in servers for cpu in self.cloud.guest(server).pins]
        self.assertEqual(len(pins), len(set(pins)))
        self.assertEqual([1000] * self.SLOTS, self.taken("e1"))

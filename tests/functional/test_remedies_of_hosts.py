# SPDX-License-Identifier: Apache-2.0
"""Remedies of servers on the wrong host, and of hosts, cure what was found.

Which test does so for which code is listed in tests/remedies.py.
"""

import pathlib

import fixtures

from nova_perfvm import findings as codes
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import loader
from tests.cloud import DEFAULT_FILTERS
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base
from tests.functional.elastic import PLAIN_GENERAL, PLAIN_HP, ElasticTest
from tests.functional.test_remedies import Remedies

TRAIT = "HW_NIC_SRIOV"
HIGH = "high-performance"
ANY_HOST = "any-host"
LABELLED = "perfvm-high-performance"


class HostsCase(Remedies, base.FunctionalTest):
    """A cloud whose policy differs from the built-in one.

    :cvar CHANGES: keys of the policy with other values
    """

    CLOUD = None
    CHANGES = {}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.path = self.write_policy(**self.changes())
        self.policy = loader.load(self.path)
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY", self.path))
        self.start_cloud(
            policy_file=self.path,
            disable_fallback_pcpu_query=False,
        )

    def changes(self):
        return self.CHANGES


class TestMigrations(HostsCase):
    """Servers of before the filter leave hosts that they should not be on."""

    def changes(self):
        classes = self.policy.as_document()["classes"]
        classes[HIGH]["host_traits"] = [TRAIT]
        return {"classes": classes, "managed_hosts": "labelled"}

    def start(self, host, label, shape="2x20", traits=(TRAIT,), **options):
        self.cloud.start_host(host, shape, **options)
        self.change_traits(host, more=traits)
        if label:
            self.cloud.label_hosts(label, host)

    def create_flavor_without_traits(self):
        """Create a flavor of the class that Placement takes to hosts without trait."""
        (flavor,) = (f for f in generate_flavors(self.policy) if f.name == base.HP_64)
        specs = dict(flavor.extra_specs)
        del specs[f"trait:{TRAIT}"]
        self.cloud.create_flavor(ANY_HOST, flavor.vcpus, flavor.memory_mb, 0, specs)

    def test_servers_that_should_leave(self):
        self.create_flavor_without_traits()
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        self.start("three", HIGH, shape="4x20", memory_gb=1000)
        self.start("mixed", f"{HIGH},general")
        self.start("reserved", HIGH)
        self.start("open", "")
        self.start("poor", HIGH, traits=())
        for host in ("three", "three", "three", "mixed", "open"):
            self.boot(host=host)
        self.boot(base.GENERAL_2, host="mixed")
        self.boot(base.GENERAL_2, host="reserved")
        self.boot(ANY_HOST, host="poor")
        self.start("next", HIGH)
        self.start("others", "general")
        self.cloud.restart_scheduler(DEFAULT_FILTERS)
        self.cure(
            codes.TOO_MANY_ON_HOST,
            codes.CLASSES_MIXED,
            codes.HOST_NOT_MANAGED,
            codes.HOST_RESERVED,
            codes.WRONG_HOST,
        )


class TestPins(HostsCase):
    """As bugs of Nova leave two servers on the same CPUs."""

    def move_in_database(self, server, onto):
        """Let Nova's database have a server on the CPUs of another one."""
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova import context, objects

        mapping = self.cloud._services.host_mappings[server.host]
        admin = context.get_admin_context()
        with context.target_cell(admin, mapping.cell_mapping) as cell:
            found = [
                objects.Instance.get_by_uuid(cell, s.id, ["numa_topology"])
                for s in (server, onto)
            ]
            moved, stays = (instance.numa_topology.cells[0] for instance in found)
            moved.id, moved.cpu_pinning = stays.id, stays.cpu_pinning
            found[0].save()

    def test_servers_on_the_same_cpus(self):
        self.cloud.start_host("hp1", dedicated="0-39")
        one, other = self.boot(), self.boot()
        self.cloud.start_host("hp2", dedicated="0-39")
        self.move_in_database(other, one)
        # Its domain is defined anew, as Nova's database has it.
        self.servers.act(other, {"reboot": {"type": "HARD"}}, "ACTIVE")
        pins = [self.cloud.guest(server).pins for server in (one, other)]
        self.assertEqual(*pins)
        self.cloud.run_periodics()
        self.cure(codes.PINS_OVERLAP, codes.TOO_MANY_ON_CELL)
        self.cloud.run_periodics()
        servers = [self.servers.show(server) for server in (one, other)]
        self.assertEqual({"hp1", "hp2"}, {server.host for server in servers})
        (stayed,) = (server for server in servers if server.host == "hp1")
        self.assert_apart(stayed, self.boot(host="hp1"))


class TestPolicyCheck(HostsCase):
    PLACEMENT = "slots"
    CHANGES = {"managed_hosts": "labelled"}  # noqa: RUF012

    def start(self, *hosts):
        for host in hosts:
            self.cloud.start_configured(host, self.policy, "dedicated")

    def test_labels_and_flavors(self):
        self.start("hp1", "hp2")
        self.cure(codes.LABEL_MISSING)
        for host in ("hp1", "hp2"):
            self.run_client("aggregate", "remove", "host", LABELLED, host)
        self.check = ("policy", "check")
        self.cure(codes.NO_HOST_JUDGED, capitals={"HOST": "hp2"})
        self.assertEqual("hp2", self.boot().host)

        self.check = ("policy", "check", "--prefix", "new-", "--isolated-aggregates")
        isolated = {"AGGREGATE": "isolated"}
        self.cure(codes.FLAVORS_DIFFER, codes.GENERAL_ON_SLOTS, capitals=isolated)
        self.start("hp3")
        self.cure(codes.GENERAL_ON_SLOTS)
        self.check = ("policy", "check", "--class", HIGH, "--memory-gb", "48")
        self.cure(codes.FLAVORS_DIFFER)
        names = {flavor["name"] for flavor in self.cloud.api.get_flavors()}
        self.assertLessEqual({"new-hp.20c.64g", "new-g.2c.4g", "hp.20c.48g"}, names)
        self.assertNotIn("hp.20c.128g", names)


class TestUnits(Remedies, ElasticTest):
    def test_flavors_of_before(self):
        """Of before the host was enrolled, and of another number of children."""
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY", self.path))
        self.start("e1", "e2", "e3")
        self.create_plain_flavors()
        self.cloud.start_host("plain")
        servers = [self.boot_before(name) for name in (PLAIN_HP, PLAIN_GENERAL)]
        for server, host in zip(servers, ("e1", "e2"), strict=True):
            self.servers.live_migrate(server, host, force=True)
        # Without units neither class keeps the other off its host.
        self.cure(codes.UNITS_LACKING)
        self.cure(codes.FLAVOR_WITHOUT_UNITS)

        self.change_policy(elastic={"slots": 4})
        self.start("e4", "e5", shape="4x20", memory_gb=1000)
        self.cure(codes.FLAVOR_LEFT_BEHIND)
        hosts = {self.servers.show(server).host for server in servers}
        self.assertEqual({"e4", "e5"}, hosts)

    def start(self, *hosts, **options):
        for host in hosts:
            self.cloud.start_host(host, **options)
            self.enroll(host)

    def change_policy(self, **changes):
        """Change the policy that nova-scheduler and commands have."""
        pathlib.Path(self.path).write_text(
            pathlib.Path(self.write_policy(**changes)).read_text()
        )
        self.policy = loader.load(self.path)
        self.cloud.restart_scheduler(DEFAULT_FILTERS)

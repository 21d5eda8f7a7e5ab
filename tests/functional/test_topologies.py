# SPDX-License-Identifier: Apache-2.0
"""How many high-performance VMs hosts of different shapes take."""

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.cloud import nova_database
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose import audit, capacity
from nova_perfvm.generate.hosts import (
    HostRequest,
    Node,
    from_shape,
    generate,
    make_topology,
    rendering,
)
from nova_perfvm.policy import HostShape
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base, client

# Cores and GiB of each node
UNEVEN = ((24, 250), (16, 250))
NO_MEMORY = ((20, 500), (20, 0))


class TestTopologies(base.FunctionalTest):
    FLAVORS = (base.HP_64, base.HP_200)

    def test_as_many_as_slots(self):
        """And what refuses the next one: a code of the filter's, or Placement."""
        even = ",".join(str(cpu) for cpu in range(0, 80, 2))
        for name, shape, cpus, slots, reason, *settings in (
            ("as-usual", "2x20", "0-39", 2, None),
            # A vCPU owns a core, so a node of 20 cores is full with one VM.
            ("threads", "2x20x2", "0-79", 2, "host.no_free_slot"),
            ("one-thread-of-each", "2x20x2", even, 2, None),
            ("small-nodes", "4x10", "0-39", 0, "host.numa_cell_too_small"),
            ("many-small-nodes", "8x15", "0-119", 0, "host.numa_cell_too_small"),
            ("some-cpus-more", "2x22", "0-43", 2, None),
            ("few-cpus", "2x6", "0-11", 0, None),
            ("capped", "4x20", "0-79", 2, "host.max_per_host"),
            ("uneven", "2x20", "0-39", 1, "host.no_free_slot", UNEVEN),
            ("no-memory", "2x20", "0-39", 1, "host.no_free_memory", NO_MEMORY),
            # CPUs kept for the host cost a slot, or both.
            ("kept", "2x20", "2-39", 1, None),
            ("kept-on-each", "2x20", "1-19,21-39", 0, "host.numa_cell_too_small"),
        ):
            options = {"uneven": settings[0]} if settings else {}
            self.cloud.start_host(name, shape, dedicated=cpus, **options)
            self.assert_apart(*(self.boot(host=name) for _ in range(slots)))

            server = self.boot_refused(host=name)

            if reason is None:
                self.assert_not_filtered(server)
            else:
                self.assert_reason(server, f"1 {reason}")

        # There would be room: 80 CPUs, and nothing else in the way.
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        self.boot(host="threads")

    def test_host_with_the_memory_is_found(self):
        self.cloud.start_host("small", dedicated="0-39", memory_gb=300)
        server = self.boot_refused(base.HP_200)
        self.assert_reason(server, "1 host.numa_cell_memory_too_small")
        self.assert_apart(self.boot(), self.boot())
        self.cloud.start_host("large", dedicated="0-39", memory_gb=500)

        servers = [self.boot(base.HP_200), self.boot(base.HP_200)]

        self.assert_apart(*servers)
        self.assertEqual({"large"}, {server.host for server in servers})


class TestThreads(base.FunctionalTest):
    """A policy whose VMs own threads, not cores."""

    CLOUD = None

    def test_2x20_with_threads_is_capped(self):
        classes = self.policy.as_document()["classes"]
        classes["high-performance"]["smt"] = "threads"
        self.start_cloud(policy_file=self.write_policy(classes=classes))
        self.cloud.start_host("host1", "2x20x2", dedicated="0-79")
        self.boot()
        self.boot()

        server = self.boot_refused()

        self.assert_reason(server, "1 host.max_per_host")


class TestUneven(client.SDKMixin, base.FunctionalTest):
    """Nodes of 24 and 16 cores: as many CPUs as 2 x 20, and room for one VM."""

    PLACEMENT = "slots"

    def start(self, topology):
        """Start the host, configured as one of a topology would be."""
        config = generate(HostRequest(self.policy, topology, mode="dedicated"))
        self.cloud.start_host(
            "host1",
            dedicated="0-39",
            provider_yaml=rendering.as_files(config)[rendering.PROVIDER_YAML],
            uneven=UNEVEN,
        )
        self.assertEqual(config.slots, self.cloud.capacity("host1")[const.RC_SLOT])
        return config.slots

    def seen(self, *, database):
        """Return total and free slots, and what the audit says of the offer."""
        found = read_snapshot(API(self.connection("admin", "admin,member,reader")))
        if database:
            found = nova_database.with_cells(found, nova_database.compute_nodes([]))
        (slots,) = capacity.host_capacity(self.policy, found)
        report = audit.run(audit.Subject(self.policy, found))
        words = [
            f.observed for f in report.findings if f.code == codes.INVENTORY_DIFFERS
        ]
        return slots.total, slots.free, words

    def test_taken_for_even(self):
        """Whoever looks at the database, or boots a VM, sees one slot."""
        self.assertEqual(
            2, self.start(from_shape(HostShape.parse("2x20")).with_memory(500))
        )
        total, free, words = self.seen(database=True)
        self.assertEqual((1, 1), (total, free))
        self.assertIn("offers 2 CUSTOM_PERFVM_SLOT and has room for 1", words[0])
        self.boot()
        self.assert_reason(self.boot_refused(), "1 host.no_free_slot")

    def test_as_it_is(self):
        """A description of the nodes gives one slot, and Placement no second."""
        nodes = (
            Node(0, tuple((cpu,) for cpu in range(24)), 250 * 1024),
            Node(1, tuple((cpu,) for cpu in range(24, 40)), 250 * 1024),
        )
        self.assertEqual(1, self.start(make_topology(nodes, "host1")))
        for database in (False, True):
            self.assertEqual((1, 1, []), self.seen(database=database))
        self.boot()
        self.assertEqual((1, 0, []), self.seen(database=True))
        self.assert_not_filtered(self.boot_refused())

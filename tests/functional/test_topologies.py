# SPDX-License-Identifier: Apache-2.0
"""How many high-performance VMs hosts of different shapes take."""

from nova_perfvm.sandbox.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base


class TestTopologies(base.FunctionalTest):
    FLAVORS = (base.HP_64, base.HP_200)

    def assert_slots(self, count, shape, cpus, reason, **settings):
        """Fill a host of a shape and look at the VM after the last that fits.

        :param reason: the filter's code for it, None where Placement refuses
        """
        self.cloud.start_host("host1", shape, dedicated=cpus, **settings)
        self.assert_apart(*(self.boot() for _ in range(count)))

        server = self.boot_refused()

        if reason is None:
            self.assert_not_filtered(server)
        else:
            self.assert_reason(server, f"1 {reason}")

    def test_2x20(self):
        self.assert_slots(2, "2x20", "0-39", None)

    def test_2x20_with_threads_is_a_slot_for_each_node(self):
        # A vCPU owns a core, so a node of 20 cores is full with one VM.
        self.assert_slots(2, "2x20x2", "0-79", "host.no_free_slot")

        # There would be room: 80 CPUs, and nothing else in the way.
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        self.boot()

    def test_2x20_with_one_thread_of_each_core(self):
        even = ",".join(str(cpu) for cpu in range(0, 80, 2))
        self.assert_slots(2, "2x20x2", even, None)

    def test_4x10(self):
        self.assert_slots(0, "4x10", "0-39", "host.numa_cell_too_small")

    def test_8x15(self):
        self.assert_slots(0, "8x15", "0-119", "host.numa_cell_too_small")

    def test_2x22(self):
        self.assert_slots(2, "2x22", "0-43", None)

    def test_2x6(self):
        self.assert_slots(0, "2x6", "0-11", None)

    def test_4x20_is_capped(self):
        self.assert_slots(2, "4x20", "0-79", "host.max_per_host")

    def test_cpus_kept_for_the_host_cost_a_slot(self):
        self.assert_slots(1, "2x20", "2-39", None)

    def test_cpus_kept_on_each_node_cost_both(self):
        self.assert_slots(0, "2x20", "1-19,21-39", "host.numa_cell_too_small")

    def test_cell_with_too_little_memory(self):
        self.cloud.start_host("host1", dedicated="0-39", memory_gb=300)

        server = self.boot_refused(base.HP_200)

        self.assert_reason(server, "1 host.numa_cell_memory_too_small")
        self.assert_apart(self.boot(), self.boot())

    def test_host_with_the_memory_is_found(self):
        self.cloud.start_host("small", dedicated="0-39", memory_gb=300)
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

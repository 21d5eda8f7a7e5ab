# SPDX-License-Identifier: Apache-2.0
"""No VM beside a high-performance one, whatever Nova alone would admit.

On hosts without CPU sets Nova lets both classes in; only the filter keeps them
apart.  Each refusal is seen to be the filter's: without it the same request is
admitted.
"""

from nova_perfvm.sandbox.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base


class OpenHostTest(base.FunctionalTest):
    """One host without CPU sets, which pinned VMs enter as VCPU."""

    CLOUD = {"disable_fallback_pcpu_query": False}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.cloud.start_host("open1")

    def boot_without_filter(self, flavor, **options):
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        return self.boot(flavor, **options)


class TestBothClasses(OpenHostTest):
    def test_general_vm_is_refused_beside_high_performance(self):
        self.assert_high_performance(self.boot())

        server = self.boot_refused(base.GENERAL_2)

        self.assert_reason(server, "1 host.class_conflict")
        self.assert_general(self.boot_without_filter(base.GENERAL_2))

    def test_high_performance_vm_is_refused_beside_general(self):
        self.assert_general(self.boot(base.GENERAL_2))

        server = self.boot_refused()

        self.assert_reason(server, "1 host.class_conflict")
        self.assert_high_performance(self.boot_without_filter(base.HP_64))

    def test_each_class_keeps_the_host_it_has(self):
        self.cloud.start_host("open2")
        self.boot(host="open1")
        self.boot(base.GENERAL_2, host="open2")

        self.assertEqual("open1", self.boot().host)
        self.assertEqual("open2", self.boot(base.GENERAL_2).host)
        self.boot_refused()

    def test_host_is_open_again_when_its_last_vm_is_gone(self):
        server = self.boot(base.GENERAL_2)
        self.boot_refused()

        self.servers.delete(server)

        self.assert_high_performance(self.boot())

    def test_plain_flavor_is_of_the_default_class(self):
        self.cloud.create_flavor("plain", 2, 4096, 20)
        self.boot()

        server = self.boot_refused("plain")

        self.assert_reason(server, "(class general, flavor plain)")
        self.assert_reason(server, "1 host.class_conflict")


class TestMisfits(base.FunctionalTest):
    """Flavors that are of no class, or not of the class they claim."""

    def setUp(self):
        super().setUp()
        self.cloud.start_host("hp1", dedicated="0-39")

    def assert_admitted_without_filter(self, flavor, **options):
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        self.assertTrue(self.cloud.guest(self.boot(flavor, **options)).pinned)

    def test_pinned_vm_of_no_class_is_refused(self):
        self.cloud.create_flavor("pinned-4", 4, 8192, 0, base.PINNED)

        server = self.boot_refused("pinned-4")

        self.assert_reason(server, "1 host.classless_pinned")
        self.assert_admitted_without_filter("pinned-4")

    def test_pinned_vm_of_no_class_strands_a_slot(self):
        self.cloud.create_flavor("pinned-4", 4, 8192, 0, base.PINNED)
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        self.boot("pinned-4")
        self.boot()

        self.boot_refused()

    def test_wrong_size_of_the_class_is_refused(self):
        self.cloud.create_flavor("hp-16", 16, 65536, 0, base.CLAIMS_HP)

        server = self.boot_refused("hp-16")

        self.assert_reason(server, "flavor.vcpus: the flavor has 16 vCPUs")
        self.assert_admitted_without_filter("hp-16")

    def test_all_that_is_wrong_is_said_at_once(self):
        specs = {
            "perfvm:class": "high-performance",
            "hw:cpu_policy": "mixed",
            "hw:cpu_dedicated_mask": "0-3",
        }
        self.cloud.create_flavor("hp-wrong", 16, 65536, 20, specs)
        self.cloud.start_host("mixed1", dedicated="0-19", shared="20-39")

        server = self.boot_refused("hp-wrong")

        for code in (
            "flavor.vcpus",
            "flavor.cpu_policy",
            "request.no_multiqueue",
            "request.not_volume_backed",
        ):
            self.assert_reason(server, code)

    def test_two_nodes_are_not_of_the_class(self):
        specs = base.CLAIMS_HP | {"hw:numa_nodes": "2"}
        self.cloud.create_flavor("hp-2-nodes", 20, 65536, 0, specs)

        server = self.boot_refused("hp-2-nodes")

        self.assert_reason(server, "flavor.numa_nodes")
        self.assert_admitted_without_filter("hp-2-nodes")

    def test_image_does_not_smuggle_pinning_into_a_plain_flavor(self):
        self.cloud.create_flavor("plain", 4, 8192, 0)
        image = self.cloud.create_image(hw_cpu_policy="dedicated")

        server = self.boot_refused("plain", image=image)

        self.assert_reason(server, "(class none, flavor plain)")
        self.assert_reason(server, "1 host.classless_pinned")
        self.assert_admitted_without_filter("plain", image=image)


class TestHostModes(base.FunctionalTest):
    """Hosts whose CPU sets a class cannot use."""

    CLOUD = {"disable_fallback_pcpu_query": False}  # noqa: RUF012

    def test_shared_host_takes_no_high_performance_vm(self):
        self.cloud.start_host("general1", shared="0-39")

        server = self.boot_refused()

        self.assert_reason(server, "1 host.no_dedicated_cpus")

    def test_dedicated_host_takes_no_general_vm(self):
        self.cloud.start_host("hp1", dedicated="0-39")

        server = self.boot_refused(base.GENERAL_2)

        # It offers no VCPU: Placement alone sees to it.
        self.assert_not_filtered(server)

    def test_mixed_host_takes_no_vm_that_wants_a_host(self):
        self.cloud.start_host("mixed1", dedicated="0-19", shared="20-39")

        server = self.boot_refused()

        self.assert_reason(server, "1 host.mode_mixed")
        self.assert_general(self.boot(base.GENERAL_2))

    def test_reasons_are_counted_over_all_hosts(self):
        self.cloud.start_host("general1", shared="0-39")
        self.cloud.start_host("mixed1", dedicated="0-19", shared="20-39")
        self.cloud.start_host("open1")
        self.boot(base.GENERAL_2, host="open1")

        server = self.boot_refused()

        self.assert_reason(server, "rejected 3 of 3 hosts")
        for reason in (
            "1 host.no_dedicated_cpus",
            "1 host.mode_mixed",
            "1 host.class_conflict",
        ):
            self.assert_reason(server, reason)

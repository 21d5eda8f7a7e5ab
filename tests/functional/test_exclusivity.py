# SPDX-License-Identifier: Apache-2.0
"""No VM beside a high-performance one, whatever Nova alone would admit.

On hosts without CPU sets Nova lets both classes in; only the filter keeps them
apart.  Each refusal is seen to be the filter's: without it the same request is
admitted.
"""

from tests.cloud import DEFAULT_FILTERS
from tests.embedded import FILTERS_WITHOUT_PERFVM
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
    def test_one_is_refused_beside_the_other(self):
        """A flavor that names no class is of the default class."""
        self.cloud.create_flavor("plain", 2, 4096, 20)
        high = self.boot()
        self.assert_high_performance(high)
        server = self.boot_refused("plain")
        self.assert_reason(server, "(class general, flavor plain)")
        self.assert_reason(server, "1 host.class_conflict")
        server = self.boot_refused(base.GENERAL_2)
        self.assert_reason(server, "1 host.class_conflict")
        general = self.boot_without_filter(base.GENERAL_2)
        self.assert_general(general)

        # The host is open again when its last VM is gone.
        self.servers.delete(high)
        self.cloud.restart_scheduler(DEFAULT_FILTERS)
        self.assert_reason(self.boot_refused(), "1 host.class_conflict")
        self.servers.delete(general)
        self.assert_high_performance(self.boot())

    def test_each_class_keeps_the_host_it_has(self):
        self.cloud.start_host("open2")
        self.boot(host="open1")
        self.boot(base.GENERAL_2, host="open2")

        self.assertEqual("open1", self.boot().host)
        self.assertEqual("open2", self.boot(base.GENERAL_2).host)
        self.boot_refused()


class TestMisfits(base.FunctionalTest):
    """Flavors that are of no class, or not of the class they claim."""

    def setUp(self):
        super().setUp()
        self.cloud.start_host("hp1", dedicated="0-39")

    def test_what_is_refused(self):
        """The filter alone refuses it: all is admitted without."""
        two_nodes = base.CLAIMS_HP | {"hw:numa_nodes": "2"}
        image = self.cloud.create_image(hw_cpu_policy="dedicated")
        misfits = (
            ("pinned-4", (4, 8192, 0, base.PINNED), {}, "1 host.classless_pinned"),
            ("hp-16", (16, 65536, 0, base.CLAIMS_HP), {}, "the flavor has 16 vCPUs"),
            ("hp-2-nodes", (20, 65536, 0, two_nodes), {}, "flavor.numa_nodes"),
            # An image does not smuggle pinning into a plain flavor.
            ("plain", (4, 8192, 0), {"image": image}, "(class none, flavor plain)"),
        )
        for name, flavor, options, reason in misfits:
            self.cloud.create_flavor(name, *flavor)
            self.assert_reason(self.boot_refused(name, **options), reason)

        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        for name, _, options, _ in misfits:
            server = self.boot(name, **options)
            self.assertTrue(self.cloud.guest(server).pinned)
            self.servers.delete(server)
        # A pinned VM of no class strands a slot.
        self.boot("pinned-4")
        self.boot()
        self.boot_refused()

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


class TestHostModes(base.FunctionalTest):
    """Hosts whose CPU sets a class cannot use."""

    CLOUD = {"disable_fallback_pcpu_query": False}  # noqa: RUF012

    def test_reasons_are_counted_over_all_hosts(self):
        self.cloud.start_host("hp1", dedicated="0-39")
        # It offers no VCPU: Placement alone sees to it.
        self.assert_not_filtered(self.boot_refused(base.GENERAL_2))
        self.boot()
        self.boot()
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

# SPDX-License-Identifier: Apache-2.0
"""What Nova makes of a high-performance VM."""

from nova.tests.functional.api.client import OpenStackApiException

from tests.functional import base


class TestPinning(base.FunctionalTest):
    def setUp(self):
        super().setUp()
        self.cloud.start_host("hp1", dedicated="0-39")

    def test_two_vms_own_a_node_each(self):
        first, second = self.boot(), self.boot()

        self.assert_apart(first, second)
        self.assertEqual({"hp1"}, {first.host, second.host})
        attached = self.cloud.api.get_server_volumes(first.id)
        self.assertEqual(["/dev/vda"], [volume["device"] for volume in attached])
        self.assertEqual(0, self.cloud.usages("hp1").get("DISK_GB", 0))
        self.assertEqual(40, self.cloud.usages("hp1")["PCPU"])
        # 40 PCPU are in use: Placement alone sees to it.
        self.assert_not_filtered(self.boot_refused())

        node = self.cloud.guest(first).host_nodes
        self.servers.delete(first)
        third = self.boot()

        self.assert_apart(second, third)
        self.assertEqual(node, self.cloud.guest(third).host_nodes)

    def test_thread_policies_of_images(self):
        require = self.cloud.create_image(hw_cpu_thread_policy="require")
        isolate = self.cloud.create_image(hw_cpu_thread_policy="isolate")

        # The flavor's prefer counts, but for this: NUMATopologyFilter wants SMT
        # if either says require.
        server = self.boot_refused(image=require)
        self.assertEqual([()], [v.codes for v in self.cloud.verdicts(server)])
        self.assert_high_performance(self.boot(image=isolate))

        self.cloud.start_host("smt1", "2x20x2", dedicated="0-79")
        for image in (require, isolate):
            server = self.boot(image=image, host="smt1")
            pins = self.assert_high_performance(server).pins
            # No sibling is kept free or demanded: 20 threads are 10 cores.
            self.assertEqual(10, len({cpu // 2 for cpu in pins}))
        self.assertEqual(40, self.cloud.usages("smt1")["PCPU"])

    def test_queues_and_disks(self):
        server = self.boot_refused(from_volume=False)
        self.assert_reason(server, "request.not_volume_backed")
        # What contradicts the flavor nova-api refuses.
        image = self.cloud.create_image(hw_vif_multiqueue_enabled="false")
        error = self.assertRaises(
            OpenStackApiException, self.cloud.boot, base.HP_64, image=image
        )
        self.assertEqual(400, error.response.status_code)

        specs = base.PINNED | {"perfvm:class": "high-performance"}
        self.cloud.create_flavor("no-queues", 20, 65536, 0, specs)
        server = self.boot_refused("no-queues")
        self.assert_reason(server, "request.no_multiqueue")
        image = self.cloud.create_image(hw_vif_multiqueue_enabled="true")
        self.assert_high_performance(self.boot("no-queues", image=image))

        self.cloud.start_host("general1", shared="0-39")
        server = self.boot(base.GENERAL_2)
        self.assert_general(server)
        self.assertEqual("general1", server.host)

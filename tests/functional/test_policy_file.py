# SPDX-License-Identifier: Apache-2.0
"""The policy file that nova-scheduler reads at its start."""

import logging

from tests.cloud import ServiceExitError
from tests.embedded import ActionFailedError, OperatedCloud
from tests.functional import base


class TestBadFile(base.FunctionalTest):
    CLOUD = None

    def start_failing(self, path):
        """Start a cloud whose scheduler does not start; return what it said."""
        cloud = OperatedCloud(policy_file=path)
        error = self.assertRaises(ServiceExitError, cloud.setUp)
        critical = cloud.log.lines(level=logging.CRITICAL)
        self.assertEqual(str(error).splitlines(), critical)
        return str(error)

    def test_every_mistake_is_listed(self):
        classes = self.policy.as_document()["classes"]
        classes["high-performance"] |= {"vcpus": "20", "numa_nodes": 3}
        classes["general"]["colour"] = "blue"
        path = self.write_policy(classes=classes, managed_hosts="some")

        text = self.start_failing(path)

        self.assertIn(path, text)
        for where in (
            "classes.high-performance.vcpus",
            "classes.general",
            "colour",
            "managed_hosts",
        ):
            self.assertIn(where, text)

    def test_missing_file(self):
        text = self.start_failing("/nonexistent/perfvm.yaml")

        self.assertIn("No such file", text)


class TestOwnPolicy(base.FunctionalTest):
    CLOUD = None
    FLAVORS = ()

    def test_class_for_other_hosts(self):
        classes = self.policy.as_document()["classes"]
        classes["high-performance"] |= {
            "vcpus": 10,
            "max_per_host": 4,
            "flavors": {"name": "hp10.{memory_gb}g", "memory_gb": [64], "root_gb": 0},
        }
        path = self.write_policy(host_shape="4x10", classes=classes)
        self.start_cloud(policy_file=path)
        self.cloud.start_host("host1", "4x10", dedicated="0-39")
        self.cloud.create_flavor("hp10", 10, 65536, 0, base.CLAIMS_HP)
        self.cloud.create_flavor("hp20", 20, 65536, 0, base.CLAIMS_HP)

        self.assert_reason(self.boot_refused("hp20"), "flavor.vcpus")
        nodes = set()
        for _ in range(4):
            guest = self.cloud.guest(self.boot("hp10"))
            self.assertEqual((10, 1), (len(guest.pins), len(guest.host_nodes)))
            nodes |= guest.host_nodes
        self.assertEqual({0, 1, 2, 3}, nodes)

    def test_multiqueue_of_the_default_class(self):
        classes = self.policy.as_document()["classes"]
        classes["general"]["vif_multiqueue"] = True
        self.start_cloud(policy_file=self.write_policy(classes=classes))
        self.cloud.start_host("general1", shared="0-39")
        self.cloud.create_flavor("plain", 2, 4096, 20)
        self.cloud.create_flavor("named", 2, 4096, 20, {"perfvm:class": "general"})
        queues = self.cloud.create_image(hw_vif_multiqueue_enabled="true")
        without = self.cloud.create_image()

        # A flavor that names no class is not judged, at boot and ever after.
        self.servers.rebuild(self.boot("plain"), without)

        # One that names it is.
        self.assert_reason(self.boot_refused("named"), "request.no_multiqueue")
        server = self.boot("named", image=queues)
        other = self.cloud.create_image(hw_vif_multiqueue_enabled="true")
        self.servers.rebuild(server, other)
        self.assertRaises(ActionFailedError, self.servers.rebuild, server, without)
        self.assert_reason(server, "request.no_multiqueue")

    def test_start_names_the_policy(self):
        path = self.write_policy()

        self.start_cloud(policy_file=path)

        (line,) = self.cloud.log.lines("PerfVMFilter judges by")
        self.assertIn(path, line)
        self.assertIn(f"sha256 {self.policy.digest}", line)

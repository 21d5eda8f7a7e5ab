# SPDX-License-Identifier: Apache-2.0
"""VMs with a network, whose interface has a queue pair for each vCPU."""

from tempest import config
from tempest.lib import decorators

from nova_perfvm.tempest_plugin.tests import base

CONF = config.CONF


class NetworkTest(base.PerfVMTest):
    with_network = True

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.auth.create_isolated_networks:
            raise cls.skipException(
                "[auth]create_isolated_networks is False: the test needs a network"
            )

    def networks(self):
        network = self.get_tenant_network("admin")
        return [{"uuid": network["id"]}]

    @decorators.idempotent_id("3d5b9c1e-7a42-4f0c-8e66-b1f2a0d97c58")
    def test_boot_with_a_port(self):
        """The port becomes ACTIVE: os-vif's or libvirt's tap has the VM's queues."""
        _, server = self.boot_on_empty_host(self.high_performance)
        ports = self.os_admin.interfaces_client.list_interfaces(server["id"])
        (port,) = ports["interfaceAttachments"]
        self.assertEqual("ACTIVE", port["port_state"])
        self.assert_pinned(server["id"])

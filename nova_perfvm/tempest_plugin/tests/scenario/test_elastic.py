# SPDX-License-Identifier: Apache-2.0
"""An elastic host serves one class, and when it is empty the other."""

from tempest import config
from tempest.lib import decorators

from nova_perfvm.placement.host_schemes import HOST_SCHEMES
from nova_perfvm.tempest_plugin.tests import base

CONF = config.CONF


class ElasticTest(base.PerfVMTest):
    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if "elastic" not in HOST_SCHEMES[CONF.perfvm.placement].modes:
            raise cls.skipException(
                f"[perfvm]placement is {CONF.perfvm.placement}: no elastic hosts"
            )

    def elastic_host(self) -> str:
        """Return an empty host that has slots, but no dedicated CPUs."""
        for host in self.empty_hosts():
            own = self.inventories_of(self.computes()[host]["id"])
            if "VCPU" in own and self.room(host):
                return host
        raise self.skipException("no elastic host is empty")

    @decorators.idempotent_id("50215f08-c3e8-4437-bbb1-decd7c2931ce")
    def test_one_class_and_then_the_other(self):
        host = self.elastic_host()
        server = self.boot(self.high_performance, host)
        self.assert_pinned(server["id"])
        self.boot_refused(self.general, host)
        self.delete(server["id"])

        servers = [self.boot(self.general, host) for _ in range(2)]
        for server in servers:
            # The host refuses high-performance VMs until the last general VM is gone.
            self.boot_refused(self.high_performance, host)
            self.delete(server["id"])

        again = [
            self.boot(self.high_performance, host)["id"] for _ in range(self.room(host))
        ]
        self.assert_disjoint(again)

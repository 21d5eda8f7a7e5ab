# SPDX-License-Identifier: Apache-2.0
"""VMs that Placement has lost: the filter counts pins and instances beside claims.

Nova drops the allocation of a server whose rebuild fails, and makes no other when it
runs again.  What Placement then has left, it would give away.
"""

from nova_perfvm import constants as const
from tests.embedded import ActionFailedError
from tests.functional import base
from tests.functional.elastic import ElasticTest


class LostMixin:
    def lose(self, server):
        """Rebuild a server with an image that no host can boot, as its owner may."""
        image = self.cloud.create_image(
            hw_machine_type="no-such", hw_vif_multiqueue_enabled="true"
        )
        self.assertRaises(ActionFailedError, self.servers.rebuild, server, image)
        self.assertEqual("ERROR", self.servers.show(server).status)
        self.assertNotIn(server.id, self.cloud.consumers(server.host))


class TestSlots(LostMixin, base.FunctionalTest):
    """Room for four VMs, capped at two."""

    PLACEMENT = "slots"

    def test_the_cap_holds_one_after_the_other(self):
        self.cloud.start_configured(
            "hp1", self.policy, "dedicated", shape="4x20", memory_gb=1000
        )
        self.lose(self.boot())
        self.boot()
        for look in (lambda: None, self.cloud.run_periodics):
            look()
            # Placement has a slot left.
            self.assertEqual(1, self.cloud.usages("hp1")[const.RC_SLOT])
            third = self.boot_refused()
            self.assert_reason(third, "1 host.max_per_host")


class TestUnits(LostMixin, ElasticTest):
    def setUp(self):
        super().setUp()
        for host in ("e1", "e2"):
            self.cloud.start_host(host)
            self.enroll(host)

    def test_the_classes_meet_on_no_host(self):
        self.lose(self.boot(host="e1"))
        self.lose(self.boot(base.GENERAL_2, host="e2"))
        for look in (lambda: None, self.cloud.run_periodics):
            look()
            for flavor, host in ((base.GENERAL_2, "e1"), (base.HP_64, "e2")):
                # To Placement it is empty.
                self.assertEqual(set(), self.cloud.consumers(host))
                refused = self.boot_refused(flavor, host=host)
                self.assert_reason(refused, "1 host.class_conflict")

# SPDX-License-Identifier: Apache-2.0
"""What the audit prints for a server works whatever state the server is in.

It is pasted as it is printed: where Nova answers before it is done, the lines wait.
"""

import functools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from tests.cloud import servers
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base, glance, test_remedies

ODD = "odd"
# What brings a server into each status.  Not RESCUE: the libvirt of Nova's tests has
# no disks, and a rescue reads them.
STATUSES = {
    "ACTIVE": (),
    "SHUTOFF": ({"os-stop": None},),
    "PAUSED": ({"pause": None},),
    "SUSPENDED": ({"suspend": None},),
    "SHELVED": ({"shelve": None},),
    "SHELVED_OFFLOADED": ({"shelve": None}, {"shelveOffload": None}),
    "ERROR": ({"os-resetState": {"state": "error"}},),
    "VERIFY_RESIZE": ({"migrate": None},),
}


class TestEachStatus(test_remedies.Remedies, base.FunctionalTest):
    """Servers in each status, of a scheduler that knows no policy."""

    PLACEMENT = "slots"
    CLOUD = {  # noqa: RUF012
        "enabled_filters": FILTERS_WITHOUT_PERFVM,
        "disable_fallback_pcpu_query": False,
        "options": {(None, "shelved_offload_time"): -1},
    }

    def start(self, **changes):
        """Start hosts g1 and g2 for general VMs, and another one."""
        self.path = self.write_policy(**changes)
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        for host in ("g1", "g2"):
            self.cloud.start_configured(host, self.policy, "shared")

    def boot_each(self, flavor, statuses=tuple(STATUSES), **options):
        """Return servers on g1, by status."""
        found = {}
        for status in statuses:
            found[status] = server = self.boot(flavor, host="g1", **options)
            for action in STATUSES[status]:
                self.cloud.api.post_server_action(server.id, action)
                self.wait_for(server.id)
            look = functools.partial(self.has_status, server, status)
            servers.until(look, f"{server.name} {status}")
        return found

    def has_status(self, server, status):
        return self.servers.show(server).status == status

    def statuses(self, found):
        return {self.servers.show(server).status for server in found.values()}

    def test_resize(self):
        self.start()
        self.cloud.create_flavor(ODD, 2, 4096, 40, {"prefvm:class": "general"})
        found = self.boot_each(ODD)
        self.cure(codes.NEAR_MISS)
        now = {self.servers.show(server).flavor for server in found.values()}
        self.assertEqual({base.GENERAL_2}, now)
        self.assertEqual({"ACTIVE", "SHUTOFF"}, self.statuses(found))

    def test_migrate(self):
        self.start(managed_hosts="labelled")
        found = self.boot_each(base.GENERAL_2)
        self.cloud.label_hosts("high-performance", "g1")
        self.cure(codes.HOST_RESERVED)
        hosts = {self.servers.show(server).host for server in found.values()}
        self.assertEqual({"g2", None}, hosts)

    def test_rebuild(self):
        """Of root disks that the image made."""
        self.start()
        self.cloud.create_flavor(ODD, 2, 4096, 40, {})
        trait = const.TRAIT_HIGH_PERFORMANCE
        for host in ("g1", "g2"):
            self.change_traits(host, more=[trait])
        required = {f"trait:{trait}": "required"}
        image = self.cloud.create_image(**required)
        self.glance = self.useFixture(glance.GlanceFixture())
        self.glance.add(id=image, **required)
        self.glance.add(id=self.cloud.image)
        # What is on no host has no root disk there: it is made anew, by hand.
        statuses = [status for status in STATUSES if status != "SHELVED_OFFLOADED"]
        found = self.boot_each(ODD, statuses, image=image)
        self.cure(codes.IMAGE_TRAIT, capitals={"IMAGE": self.cloud.image})
        self.assertEqual({"ACTIVE", "SHUTOFF"}, self.statuses(found))

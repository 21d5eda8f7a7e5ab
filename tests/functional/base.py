# SPDX-License-Identifier: Apache-2.0
"""What the functional tests share: a cloud, and how guests are judged."""

import dataclasses
import faulthandler
import gc
import json
import os
import re
import sys

import fixtures
import testtools
from testtools.content import text_content

from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import loader
from tests.embedded import OperatedCloud

HP_64 = "hp.20c.64g"
HP_128 = "hp.20c.128g"
HP_200 = "hp.20c.200g"
GENERAL_2 = "g.2c.4g"

PINNED = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}
CLAIMS_HP = PINNED | {
    "hw:vif_multiqueue_enabled": "true",
    "perfvm:class": "high-performance",
}


# Nova's modules stay: to look through all of their objects for garbage, each time
# that so many more are made, takes a tenth of a test's time.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 50)
# Each cloud's API compiles 1,400 routes, the same ones; Python keeps 512 patterns.
re._MAXCACHE = 5_000

# A test that takes longer fails; one that does not even end then takes its
# worker along, having shown where each thread is.
LIMIT_S = int(os.environ.get("OS_TEST_TIMEOUT", "600"))
LAST_CALL_S = 120


class FunctionalTest(testtools.TestCase):
    """A test with a cloud of its own.

    :cvar CLOUD: options of OperatedCloud; None: the test starts the cloud itself
    :cvar FLAVORS: names of the policy's flavors that the test boots
    :cvar PLACEMENT: the policy's scheme; "none" for tests of the filter, which
        then judges alone
    :cvar PATIENCE: how many times longer it may take than other tests
    """

    CLOUD = {}  # noqa: RUF012
    FLAVORS = (HP_64, GENERAL_2)
    PLACEMENT = "none"
    PATIENCE = 1

    def setUp(self):
        super().setUp()
        limit_s = LIMIT_S * self.PATIENCE
        faulthandler.dump_traceback_later(
            limit_s + LAST_CALL_S, exit=True, file=sys.__stderr__
        )
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        self.useFixture(fixtures.Timeout(limit_s, gentle=True))
        self.policy = dataclasses.replace(loader.load(), placement=self.PLACEMENT)
        if self.CLOUD is not None:
            self.start_cloud(**self.CLOUD)

    def start_cloud(self, **options):
        """Start a cloud; a test with CLOUD = None does it when it is ready."""
        if self.policy != loader.load():
            # The filter judges by the policy that the flavors are made of.
            options.setdefault("policy_file", self.write_policy())
        self.cloud = OperatedCloud(**options)
        self.addOnException(self._show_log)
        self.useFixture(self.cloud)
        self.servers = self.cloud.servers
        self.create_flavors(*self.FLAVORS)

    def create_flavors(self, *names):
        """Create flavors of the policy as the generator gives them."""
        flavors = {flavor.name: flavor for flavor in generate_flavors(self.policy)}
        for name in names:
            flavor = flavors[name]
            self.cloud.create_flavor(
                name,
                flavor.vcpus,
                flavor.memory_mb,
                flavor.root_gb,
                dict(flavor.extra_specs),
            )

    def write_policy(self, **changes):
        """Write the built-in policy with some keys changed; return its path."""
        document = self.policy.as_document() | changes
        path = self.useFixture(fixtures.TempDir()).join("perfvm.yaml")
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
            # As JSON, which has no aliases.
            json.dump(document, file, indent=2)
        return path

    def boot(self, flavor=HP_64, **options):
        """Boot a server that has to become ACTIVE; return it."""
        server = self.cloud.boot(flavor, **options)
        seen = server.status, server.fault
        self.assertEqual(("ACTIVE", ""), seen, server.traceback)
        return server

    def boot_refused(self, flavor=HP_64, **options):
        """Boot a server that has to be refused; return it."""
        server = self.cloud.boot(flavor, **options)
        self.assertEqual(
            "ERROR",
            server.status,
            f"{flavor} was not refused but runs on {server.host}",
        )
        self.assertIn("No valid host was found", server.fault)
        return server

    def assert_reason(self, server, code):
        """Look for a reason code in the scheduler's INFO line on a server."""
        lines = self.cloud.log.lines(server.id)
        said = [line for line in lines if line.startswith("PerfVMFilter rejected")]
        self.assertTrue(said, f"the scheduler said nothing on {server.id}: {lines}")
        self.assertIn(code, said[-1])

    def assert_not_filtered(self, server):
        """Look that Placement refused: no host came as far as the filter."""
        self.assertEqual([], self.cloud.verdicts(server))

    def assert_high_performance(self, server):
        """Judge the libvirt XML of a high-performance VM; return its Guest."""
        guest = self.cloud.guest(server)
        self.assertEqual(set(range(20)), set(guest.vcpupin))
        self.assertTrue(guest.pinned, guest.vcpupin)
        self.assertEqual(20, len(guest.pins))
        self.assertEqual(1, len(guest.host_nodes), guest.vcpupin)
        self.assertEqual("strict", guest.numatune_mode)
        self.assertEqual(guest.host_nodes, guest.numatune_nodes)
        self.assertEqual({0: ("strict", guest.host_nodes)}, self.cloud.memnodes(server))
        self.assertEqual((20,), guest.queues)
        return guest

    def assert_general(self, server):
        """Judge the libvirt XML of a general VM; return its Guest."""
        guest = self.cloud.guest(server)
        self.assertEqual({}, guest.vcpupin)
        self.assertIsNone(guest.numatune_mode)
        return guest

    def assert_apart(self, *servers):
        """Look that high-performance VMs of one host are on different nodes."""
        guests = [self.assert_high_performance(server) for server in servers]
        nodes = [node for guest in guests for node in guest.host_nodes]
        self.assertEqual(len(nodes), len(set(nodes)), nodes)
        pins = [cpu for guest in guests for cpu in guest.pins]
        self.assertEqual(len(pins), len(set(pins)))

    def _show_log(self, _exc_info):
        lines = self.cloud.nova_log().splitlines()[-400:]
        self.addDetail("nova", text_content("\n".join(lines)))

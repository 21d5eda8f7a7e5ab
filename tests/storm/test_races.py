# SPDX-License-Identifier: Apache-2.0
"""Storms of concurrent requests; the invariants are checked after each.

In one process on SQLite, Placement grants no more than it has, whatever its
retries are set to; that takes a real database server.  tests/long/test_races.py
shows what they break where Placement does not count.
"""

import os
import random

from nova_perfvm.diagnose import audit
from nova_perfvm.policy import HostShape
from tests.embedded import FILTERS_WITHOUT_PERFVM, at_once
from tests.functional import base
from tests.unit.rules import hosts

HIGH, GENERAL = base.HP_64, base.GENERAL_2
# More want to be alone on a host than want company.
MIXED = (HIGH, HIGH, GENERAL)
REQUESTS = int(os.environ.get("PERFVM_STORM_REQUESTS", "20"))
ROUNDS = int(os.environ.get("PERFVM_STORM_ROUNDS", "1"))
OPEN_HOSTS = {"e1": "2x20", "e2": "2x20", "e3": "2x20"}


class Storm:
    """Fires requests, and looks at what became of them; mixed into a test."""

    PATIENCE = 3

    def storm(self, seed, flavors=MIXED, requests=None):
        """Boot servers of random flavors, many at once; return those that run."""
        rng = random.Random(seed)
        wanted = [rng.choice(flavors) for _ in range(requests or REQUESTS)]
        servers = self.cloud.boot_at_once(wanted)
        self.assertEqual(
            set(), {server.status for server in servers} - {"ACTIVE", "ERROR"}
        )
        return servers

    def facts(self, server):
        """Return what Nova's own XML says of a server that runs."""
        pinned = server.flavor == HIGH
        return audit.ServerFacts(
            server.id,
            server.name,
            "high-performance" if pinned else "general",
            server.host,
            frozenset(self.cloud.guest(server).pins) if pinned else frozenset(),
        )

    def findings(self, servers, shapes):
        """List what servers violate, by Nova's data; Placement's books are right.

        :param shapes: {host: shape} of all hosts
        """
        running = [server for server in servers if server.status == "ACTIVE"]
        cells = {
            host: hosts.host(HostShape.parse(shape), "open").cells
            for host, shape in shapes.items()
        }
        consumers = {c for host in shapes for c in self.cloud.consumers(host)}
        self.assertEqual(set(), consumers - {server.id for server in running})
        for host in shapes:
            usages = self.cloud.usages(host)
            for name, capacity in self.cloud.capacity(host).items():
                self.assertLessEqual(usages.get(name, 0), capacity, (host, name))
        return audit.check_servers(
            self.policy, cells, [self.facts(server) for server in running]
        )

    def clear(self, servers):
        """Delete all, so that the next round begins with empty hosts."""
        at_once(self.servers.delete, servers)
        self.cloud.run_periodics()

    def check_rounds(self, shapes):
        most = 0
        for seed in range(ROUNDS):
            servers = self.storm(seed)
            self.assertEqual([], self.findings(servers, shapes))
            most = max(
                most,
                sum(
                    server.flavor == HIGH
                    for server in servers
                    if server.status == "ACTIVE"
                ),
            )
            self.clear(servers)
        self.assertGreater(most, 0, "no high-performance VM in any round")


class TestSlots(Storm, base.FunctionalTest):
    """Static hosts, without the filter."""

    CLOUD = {"enabled_filters": FILTERS_WITHOUT_PERFVM}  # noqa: RUF012
    PLACEMENT = "slots"
    SHAPES = {"hp1": "4x20", "hp2": "4x20", "general1": "2x20"}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        for host, mode in (
            ("hp1", "dedicated"),
            ("hp2", "dedicated"),
            ("general1", "shared"),
        ):
            self.cloud.start_configured(
                host, self.policy, mode, shape=self.SHAPES[host], memory_gb=1000
            )

    def test_invariants_hold(self):
        self.check_rounds(self.SHAPES)

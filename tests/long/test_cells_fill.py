# SPDX-License-Identifier: Apache-2.0
"""Hosts filled to the last NUMA node, however few candidates Placement lists.

Nova by itself needs all of them: most are of hosts that do not fit.
"""

import collections
import os
import random

from nova import conf

from nova_perfvm.policy import HostShape
from nova_perfvm.rules.enabled_filters import NOVAS_NUMA_FILTER, NUMA_FILTER
from tests.embedded import at_once
from tests.operations import cells, clouds, filling, verdict

FILLS = int(os.environ.get("PERFVM_FILLS", "50"))
COUNT = 20
LIMITS = (10, 1000)


class Filled:
    """Fills with each of the limits; mixed into a test."""

    PATIENCE = 12

    def fill(self, counted):
        """Return {limit: what came of all fills}."""
        hosts = filling.Hosts(self, COUNT, counted=counted)
        found = {limit: collections.Counter() for limit in LIMITS}
        for seed in range(FILLS):
            for limit in LIMITS:
                conf.CONF.set_override("max_placement_results", limit, "scheduler")
                hosts.clear()
                placed, needless = filling.fill(
                    hosts, random.Random(seed), cells.FREQUENCIES
                )
                free = sum(cpus for cpus, _ in hosts.free.values())
                found[limit] += placed | collections.Counter(
                    VMs=placed.total(),
                    CPUs=len(hosts.free) * filling.CORES - free,
                    needless=needless,
                )
            self.tell(f"{seed + 1} of {FILLS} fills of {COUNT} hosts: {found}")
        conf.CONF.clear_override("max_placement_results", "scheduler")
        return found


class TestCells(Filled, cells.CellsCloud):
    HOSTS = ()

    def enabled_filters(self):
        return [NUMA_FILTER]

    def test_few_candidates_are_as_good_as_many(self):
        found = self.fill(counted=True)
        few, many = (found[limit] for limit in LIMITS)
        self.assertEqual((0, 0), (few["needless"], many["needless"]))
        self.assertGreaterEqual(few["CPUs"], many["CPUs"] * 0.99)
        self.assertEqual([], self.offers.refused)


class TestStock(Filled, cells.StockCloud):
    HOSTS = ()

    def enabled_filters(self):
        return [NOVAS_NUMA_FILTER]

    def test_nova_by_itself(self):
        found = self.fill(counted=False)
        self.assertGreater(found[LIMITS[1]]["VMs"], 0)


class TestWholeNova(cells.CellsCloud):
    """The same with nova-compute: two fills of some hosts."""

    PATIENCE = 12
    HOSTS = tuple(
        clouds.Host(f"dedicated{n}", "dedicated", HostShape.parse("2x20"))
        for n in range(1, 7)
    )

    def test_few_candidates_are_as_good_as_many(self):
        self.judge = self.new_judge()
        for seed in range(2):
            for limit in LIMITS:
                conf.CONF.set_override("max_placement_results", limit, "scheduler")
                placed, needless = filling.fill(
                    self, random.Random(seed), cells.FREQUENCIES
                )
                verdict.await_none(lambda: self.judge.book_complaints(set()))
                free = sum(cpus for cpus, _ in self.judge.free().values())
                self.tell(
                    f"seed {seed}, {limit} candidates: {placed}, {free} CPUs left"
                )
                self.assertEqual(0, needless)
                at_once(self.servers.delete, list(self.judge.found.values()))
        conf.CONF.clear_override("max_placement_results", "scheduler")

    def place(self, flavor):
        server = self.cloud.boot(flavor)
        if server.status != "ACTIVE":
            self.servers.delete(server)
        return server.status == "ACTIVE"

    def has_room(self, flavor):
        self.judge.look()
        return self.judge.has_room(flavor)

# SPDX-License-Identifier: Apache-2.0
"""Storms of VMs of mixed sizes at two schedulers, and on Nova by itself.

nova-compute has to find room for each VM that it is given: on the NUMA node that was
claimed in Placement, which gives it to nobody else.
"""

import os
import random
import time

from tests.embedded import at_once
from tests.functional.elastic import SameMoment
from tests.operations import cells, verdict

THREADS, BATCHES = 8, 2
ROUNDS = int(os.environ.get("PERFVM_STORM_ROUNDS", "1"))


class CellsStorm:
    """Fills the hosts, judges them, empties most of them; mixed into a test.

    :ivar running: how many servers got a host
    :ivar cpus: how many CPUs these have
    :ivar refused: how many got none
    :ivar needless: of these, how many have room on a NUMA node after all
    """

    PATIENCE = 3

    def setUp(self):
        super().setUp()
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova.tests.fixtures import ServiceFixture

        self.cloud.useFixture(ServiceFixture("scheduler", "another"))
        self.judge = self.new_judge()
        self.running, self.cpus, self.refused, self.needless = 0, 0, 0, 0

    def storm(self, rounds):
        began = time.monotonic()
        for seed in range(rounds):
            rng = random.Random(seed)
            sizes = cells.FREQUENCIES
            for _ in range(BATCHES):
                self.create(rng.choices([*sizes], [*sizes.values()], k=THREADS))
            self.assert_right()
            found = list(self.judge.found.values())
            at_once(self.servers.delete, [s for s in found if rng.random() < 2 / 3])
            self.cloud.run_periodics()
        at_once(self.servers.delete, list(verdict.servers(self.cloud.api).values()))
        self.assert_right()
        self.assertEqual([], self.judge.guests)
        took_s = time.monotonic() - began
        self.say(f"{rounds} rounds of {BATCHES} x {THREADS}, {took_s:.0f} s")

    def say(self, when):
        self.tell(
            f"{when}: {self.running} servers run, "
            f"{self.cpus} CPUs, {self.refused} refused, {self.needless} of these "
            f"needlessly; {self.offers.offered} hosts offered, "
            f"{len(self.offers.refused)} in vain; "
            f"{self.offers.claims} claims on hosts, {len(self.offers.failed)} failed"
        )

    def same_moment(self):
        """Let all schedule by the same candidates: by CPUs alone each finds room."""
        wanted = ["hp.16c.64g", "hp.16c.64g", "hp.8c.32g"] * len(self.hosts)
        with SameMoment(len(wanted)):
            self.create(wanted)
        self.assert_right()
        self.say("at the same moment")

    def create(self, wanted):
        """Create servers at once, and look what became of each."""
        servers = self.cloud.boot_at_once(wanted)
        self.judge.look()
        for server in servers:
            if server.status == "ACTIVE":
                self.running += 1
                self.cpus += int(server.flavor.split(".")[1][:-1])
            if server.status == "ERROR":
                self.refused += 1
                self.needless += self.judge.has_room(server.flavor)
        at_once(self.servers.delete, [s for s in servers if s.status == "ERROR"])

    def assert_good(self):
        """Look that hosts took what came to them, and all that had room came."""
        self.assertGreater(self.running, 0)
        self.assertEqual(([], 0), (self.offers.failed, self.needless))

    def assert_right(self):
        self.judge.look()
        found = self.judge.guest_complaints(self.most, self.sizes, set())
        self.assertEqual([], found)
        verdict.await_none(lambda: self.judge.book_complaints(set()))


class TestCells(CellsStorm, cells.CellsCloud):
    def test_no_claim_fails(self):
        self.storm(ROUNDS)
        self.assert_good()

    def test_at_the_same_moment(self):
        self.same_moment()
        self.assert_good()


class TestStock(CellsStorm, cells.StockCloud):
    def test_claims_fail_at_the_same_moment(self):
        self.same_moment()
        self.assertNotEqual([], self.offers.failed)

# SPDX-License-Identifier: Apache-2.0
"""Plans under ``placement: cells``: VMs land where they say, and whole nodes stay free.

Nova spreads VMs over the nodes of a host, and a plan counts on the fullest one.
"""

import fixtures

from nova_perfvm import constants as const
from nova_perfvm.scheduler import nova_fixes
from tests.functional import cells
from tests.functional.cells import flavor_of
from tests.functional.minutes import MinutesPass

LARGE, FILLER, SMALL = flavor_of(20), flavor_of(16), flavor_of(4)
FREE = ("plan", "free", "--flavor", LARGE, "--boot-from-volume")


class PlansCase(cells.CellsCase):
    """Three small VMs: on node 0 of h1, on node 0 and on node 1 of h2."""

    HOSTS = ("h1", "h2")

    def setUp(self):
        super().setUp()
        self.useFixture(MinutesPass(self.cloud))
        self.small = [self.boot(SMALL, host="h1"), self.boot(SMALL, host="h2")]
        filler = self.boot(FILLER, host="h2")
        self.small.append(self.boot(SMALL, host="h2"))
        self.servers.delete(filler)
        self.assertEqual([[0], [0], [1]], [self.nodes(s) for s in self.small])

    def execute(self, *arguments):
        """Carry a plan out; return the exit status, the rows, and what was said."""
        more = (*self.policy_file(), "--execute", "--yes")
        return self.run_json(*FREE, *arguments, *more)


class TestPlans(PlansCase):
    def assert_room(self, count):
        """Look how many large VMs there is room for, and that nothing has drifted."""
        for server in self.small:
            self.assertEqual(self.claimed(server), self.nodes(server))
        for _ in range(count):
            self.boot(LARGE)
        self.boot_refused(LARGE)

    def test_room_that_whole_nodes_make(self):
        # Where live migrations lose the limits of their claims, they spread.
        gained = 2 if nova_fixes.has_fix(const.LP_LOST_LIMITS) else 1
        status, rows, said = self.execute("--count", "3")
        self.assertEqual({"done"}, {row["State"] for row in rows}, said)
        self.assertEqual(0 if gained == 2 else 1, status, said)
        self.assertIn(f"seen afterwards: {gained} of {gained} gained: room for", said)
        self.assert_room(1 + gained)

    def test_less_room_than_planned(self):
        """VMs land where a plan does not expect them: it looks, and says so."""
        for name in (
            "nova_perfvm.scheduler.nova_fixes.has_fix",
            "nova_perfvm.changes.migrations.planning.Planning.loses_limits",
        ):
            self.useFixture(fixtures.MonkeyPatch(name, lambda *_: False))
        status, rows, said = self.execute("--count", "3")
        self.assertEqual((1, {"done"}), (status, {row["State"] for row in rows}), said)
        self.assertIn("seen afterwards: 1 of 2 gained: room for 2 more VMs", said)
        self.assertIn("make a new plan", said)
        self.assert_room(2)

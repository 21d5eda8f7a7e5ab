# SPDX-License-Identifier: Apache-2.0
"""Plans carried out by commands on a real Nova and Placement, and resumed."""

import pathlib

import fixtures

from nova_perfvm.changes.migrations import record
from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.minutes import MinutesPass


class PlansCase(ClientMixin, base.FunctionalTest):
    """Commands that carry out what they have planned."""

    PLACEMENT = "slots"
    FLAVORS = (base.HP_64, base.HP_200)

    def setUp(self):
        super().setUp()
        # A NUMA node of the small one has memory for the smallest VM only.
        for name, memory_gb in (("small", 220), ("large", 450)):
            self.cloud.start_configured(
                name, self.policy, "dedicated", memory_gb=memory_gb
            )
        self.useFixture(MinutesPass(self.cloud))
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = directory / "plan.json"

    def plan(self, *arguments):
        """Return the exit status, the rows, and what was said."""
        return self.run_json("plan", *arguments)


class TestPlans(PlansCase):
    def test_room_for_a_server_that_was_refused(self):
        servers = self.boot(host="large"), self.boot(host="large")
        self.boot_refused(base.HP_200)
        free = ["free", "--flavor", base.HP_200, "--boot-from-volume"]
        status, rows, said = self.plan(*free)
        self.assertEqual((0, 1), (status, len(rows)), said)

        record_at = ["--record", str(self.path)]
        status, rows, said = self.plan(*free, "--execute", "--yes", *record_at)

        self.assertEqual((0, ["done"]), (status, [r["State"] for r in rows]), said)
        self.assertEqual((), record.read(str(self.path)).remaining)
        hosts = sorted(self.servers.show(server).host for server in servers)
        self.assertEqual(["large", "small"], hosts)
        self.assertEqual("large", self.boot(base.HP_200).host)

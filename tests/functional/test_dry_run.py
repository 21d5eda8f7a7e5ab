# SPDX-License-Identifier: Apache-2.0
"""Nova's scheduler run dry, beside the scheduler itself."""

from nova import objects

from nova_perfvm.facts.dry_run import Question
from nova_perfvm.cloud.dry_run.scheduling import DryRun
from tests.functional import base, client, scheduling


class TestSlots(client.ClientMixin, scheduling.SchedulingMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def test_new_and_moving(self):
        for host in ("hp1", "hp2"):
            self.cloud.start_configured(host, self.policy, "dedicated")
        self.cloud.start_configured("g1", self.policy, "shared")
        server = self.boot()
        flavor = objects.Flavor.get_by_name(self.admin(), base.HP_64)
        dry = DryRun()
        found = dry.answer(Question(flavor=flavor.flavorid, count=4, every=True))
        print(found)
        found = dry.answer(Question(server=server.id, every=True))
        print(found)
        self.boot()
        self.boot()
        self.boot()
        failed = self.boot_refused()
        print(dry.answer(Question(server=failed.id, every=True)))

# SPDX-License-Identifier: Apache-2.0
"""What each step does to a real cloud is what it does to a snapshot of one."""

from dataclasses import replace

import fixtures

from nova_perfvm import constants as const
from nova_perfvm.changes import steps as do
from nova_perfvm.changes.steps import with_changes
from nova_perfvm.changes.unenroll import plan_forget
from nova_perfvm.cloud import live_hosts
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.policy import Elastic
from tests.functional.elastic import APPLIER, PLAIN_GENERAL, ElasticTest


class TestEffects(ElasticTest):
    def test_every_kind_of_step(self):
        self.create_plain_flavors()
        self.cloud.start_host("h1")
        here, lost = self.boot_before(PLAIN_GENERAL), self.boot_before(PLAIN_GENERAL)
        self.api.placement("DELETE", f"/allocations/{lost.id}")
        self.watch_steps()

        self.enroll("h1", backfill=True)
        self.put(self.view("h1").root, "aggregates", aggregates=[])
        self.look()
        self.enroll("h1")
        # What it lacks then it is given in the next run.
        view = self.view("h1")
        held = {here.id: {view.children[0].uuid: {const.RC_UNIT: 1}}}
        step = do.Realign("h1", {here.id: here.name}, held)
        Applier(self.api, view).apply(step)
        two, one = self.policy, replace(self.policy, elastic=Elastic(1))
        for self.policy in (one, two):
            self.enroll("h1", backfill=True)
        for server in (here, lost):
            self.servers.delete(server)
        self.look()
        self.unenroll("h1")
        self.useFixture(fixtures.MonkeyPatch("nova_perfvm.cloud.apply.FORGOTTEN_S", 0))
        self.unenroll("h1", delete_children=True)
        for step in plan_forget(self.seen.names, ()).changes:
            Applier(self.api).apply(step)

        self.assertEqual(_kinds(do.Change), self.made)

    def look(self):
        self.seen = read_snapshot(self.api, hosts=self.hypervisors)

    def watch_steps(self):
        """Compare the cloud after each step with what the step makes of a snapshot."""
        self.made = set()
        self.hypervisors = live_hosts.hypervisors(self.api)
        self.look()
        original = Applier.apply

        def apply(applier, change):
            original(applier, change)
            expected = _comparable(with_changes(self.seen, [change]))
            self.look()
            found = _comparable(self.seen)
            for name in expected:
                self.assertEqual(expected[name], found[name], f"{change}: {name}")
            self.made.add(type(change))

        self.useFixture(fixtures.MonkeyPatch(f"{APPLIER}.apply", apply))


def _kinds(kind):
    """Return the kinds of steps that concern hosts."""
    below = {k for k in kind.__subclasses__() if k.__module__ == do.__name__}
    found = below.union(*map(_kinds, below))
    return {k for k in found if not k.__subclasses__()}


def _comparable(seen):
    """Return what a snapshot has, without what nobody can foretell."""
    names = {aggregate.uuid: aggregate.name for aggregate in seen.aggregates}
    aggregates = {a.name: replace(a, id=0, uuid="") for a in seen.aggregates}
    providers = {
        provider.name: replace(
            provider,
            generation=0,
            aggregates=frozenset(names[a] for a in provider.aggregates),
        )
        for provider in seen.providers
    }
    found = vars(replace(seen, taken_at=""))
    return found | {"aggregates": aggregates, "providers": providers}

# SPDX-License-Identifier: Apache-2.0
"""Boots that are refused, and a plan of migrations after which they are not.

A cloud is filled and emptied by chance, where ``explain`` knows room, until there is
a flavor for which ``plan free`` knows a few migrations that make some, and which has
none without them.  Its boot has to
find no valid host.  Then they are made, and it has to boot.  After each migration,
and after the boot, the product's audit has to find nothing, nor the judge that shares
nothing with it.
"""

import collections
import dataclasses
import random

from nova_perfvm.changes.migrations.execution import begin
from nova_perfvm.changes.migrations.goals import free
from nova_perfvm.changes.migrations.planning import Planning
from nova_perfvm.cloud import migrate
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.explain import request_of
from nova_perfvm.diagnose.verdicts import judge, settings_for
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.findings import Level
from tests.functional.minutes import MinutesPass
from tests.operations import verdict

MOST_MOVES = 3
NO_HOST = "No valid host was found"
TELL_EVERY = 10


class Refusals:
    """A run on a cloud.

    :param test: a clouds.Cloud
    :param count: how many refusals have to have a plan
    :param seed: what chance begins with
    :param most: servers beyond which some are deleted
    :ivar cured: how many have had one
    :ivar seen: what else happened, and how often
    :ivar moved: IDs of servers that were migrated
    """

    def __init__(self, test, count, seed, most=10):
        self.test = test
        self.count = count
        self.most = most
        self.seed = seed
        self.rng = random.Random(seed)
        random.seed(seed)
        self.settings = settings_for(test.policy)
        self.minutes = test.useFixture(MinutesPass(test.cloud))
        self.judge = verdict.Judge(test.cloud, test.hosts, test.CHILDREN)
        self.cured, self.seen = 0, collections.Counter()
        self.moved = set()

    def __call__(self):
        """Go on until so many refusals had a plan; each has to be cured by it."""
        self.test.tell(f"{self.count} refusals with a plan, seed {self.seed}")
        while self.cured < self.count:
            seen = read_snapshot(self.test.api)
            flavor = self._curable(seen)
            if flavor is not None:
                self._refuse(flavor)
                seen = read_snapshot(self.test.api)
            self._change(seen)
        self.test.tell(str(self))

    def _change(self, seen):
        """Delete a server or boot one, by chance; rather what leads to a refusal."""
        servers = self._servers()
        for server in self.rng.sample(servers, len(servers)):
            if self._curable(without(seen, server.id)) is not None:
                self._delete(server)
                return
        places = [*self._places(seen)]
        full = not places or len(servers) > self.most
        if full or (servers and self.rng.random() < 0.3):
            self._delete(self.rng.choice(servers))
        else:
            self._boot(*self.rng.choice(places))

    def _curable(self, seen):
        """Return a flavor that is refused, and would not be after a few moves."""
        for flavor in self.rng.sample(self.test.flavors, len(self.test.flavors)):
            plan = self._plan(flavor, seen)
            if plan.wanted and plan.complete and len(plan.moves) <= MOST_MOVES:
                return flavor
        return None

    def _places(self, seen):
        """Yield all pairs of a flavor and a host that takes it."""
        views = views_of(seen)
        for flavor in self.test.flavors:
            request, _ = request_of(seen, flavor=flavor, volume_backed=True)
            for view in views:
                found = judge(self.test.policy, request, view, self.settings)
                if found.accepted:
                    yield flavor, view.name

    def _plan(self, flavor, seen):
        request, _ = request_of(seen, flavor=flavor, volume_backed=True)
        planning = Planning(self.test.policy, seen, self.settings)
        return free(planning, request, 1)

    def _refuse(self, flavor):
        """Boot what has no room, and make it."""
        server = self.test.cloud.boot(flavor, from_volume=True)
        self.test.assertEqual("ERROR", server.status, f"{flavor} on {server.host}")
        self.test.assertIn(NO_HOST, server.fault)
        self.test.cloud.servers.delete(server)
        self._cure(flavor)

    def __str__(self):
        seen = ", ".join(f"{n} {what}" for what, n in sorted(self.seen.items()))
        return f"{self.cured} refusals cured by a plan; {seen}"

    def _servers(self):
        found = verdict.servers(self.test.cloud.api).values()
        return sorted(found, key=lambda server: int(server.name.removeprefix("vm")))

    def _delete(self, server):
        self.test.cloud.servers.delete(server)
        if server.id in self.moved:
            # Where it came to counts it until the next minute.
            self.test.cloud.run_periodics()
        self.seen["deletions"] += 1

    def _boot(self, flavor, host):
        # Left to the weigher, there would be little to put together.
        server = self.test.cloud.boot(flavor, from_volume=True, host=host)
        self.test.assertEqual(
            ("ACTIVE", ""), (server.status, server.fault), f"{flavor} on {host}"
        )
        self.seen["boots"] += 1
        if self.rng.random() < 0.2:
            # Such a server is migrated cold.
            stop = {"os-stop": None}
            self.test.cloud.servers.act(server, stop, "SHUTOFF")

    def _cure(self, flavor):
        seen = read_snapshot(self.test.api)
        plan = self._plan(flavor, seen)
        self.test.assertTrue(plan.complete, plan)
        self._execute(flavor, plan, seen)
        server = self.test.cloud.boot(flavor, from_volume=True)
        self.test.assertEqual(
            ("ACTIVE", ""), (server.status, server.fault), f"{flavor} after {plan}"
        )
        self._check()
        self.cured += 1
        if self.cured % TELL_EVERY == 0:
            self.test.tell(str(self))

    def _execute(self, flavor, plan, seen):
        done = []

        def keep(execution):
            if len(execution.done) > len(done):
                done.append(execution)
                self._check()

        outcome = migrate.MigrationRun(
            self.test.api,
            self.test.policy,
            seen,
            begin(self.test.policy.digest, f"room for {flavor}", plan.moves),
            watcher=migrate.Watcher(keep=keep),
        ).carry_out()
        self.test.assertEqual(("", len(plan.moves)), (outcome.why, len(done)), plan)
        self.moved |= {move.server for move in plan.moves}
        self.seen["live migrations"] += plan.live
        self.seen["cold migrations"] += plan.cold

    def _check(self):
        """Ask both judges."""
        verdict.await_none(lambda: [*self._judged(), *self._audited()])
        self.seen["clean audits"] += 1

    def _judged(self):
        self.judge.look()
        yield from self.judge.guest_complaints(self.test.most, self.test.sizes, set())
        yield from self.judge.book_complaints(set())

    def _audited(self):
        seen = read_snapshot(self.test.api)
        report = audit.run(audit.Subject(self.test.policy, seen))
        for finding in report.findings:
            if finding.level > Level.UNKNOWN:
                yield str(finding)


def without(seen, server_id):
    """Return a cloud, as far as Placement knows it, that a server has left."""
    gone = frozenset({server_id})
    return dataclasses.replace(
        seen,
        servers=tuple(s for s in seen.servers if s.id != server_id),
        providers=tuple(p.without(gone) for p in seen.providers),
    )

# SPDX-License-Identifier: Apache-2.0
"""A run of random operations: choose, do, judge, and say what happened."""

import collections
import random
import traceback

from nova import context, objects

from tests.cloud.servers import BootedServer
from tests.operations import hostile, steps, verdict
from tests.operations.steps import RefusedError

# As many servers make it likely that an operation finds one, and some room.
FEW, MANY = 8, 16
# A run says something if each kind of operation had its effect so often; from the
# middle on, those that had not are tried more often.
OFTEN, MORE_OFTEN = 3, 5
# What is shown of a failing run.
LAST = 30
TELL_EVERY = 25


class Run:
    """A run on a cloud.

    :param test: a clouds.Cloud
    :param count: how many operations
    :param more: how many more at most, while some kind seldom had its effect
    :param seed: what chance begins with.  The same seed gives the same requests as
        long as Nova decides the same; what Nova leaves to chance is seeded, too.
    """

    def __init__(self, test, count, seed, more=0):
        self.test = test
        self.count = count
        self.more = more
        self.seed = seed
        self.rng = random.Random(self.seed)
        random.seed(self.seed)
        self.done, self.refused = collections.Counter(), collections.Counter()
        # How many judgements have seen guests of both classes.
        self.both = 0
        self._last = collections.deque(maxlen=LAST)
        self._judge = test.new_judge()
        self._prepare()

    def _prepare(self):
        """Say what is done and how often, and what of it has to be refused."""
        test = self.test
        self.steps = hostile.HostileSteps(test, self.rng, self._judge)
        self.weights = dict(steps.WEIGHTS)
        if test.FILTER:
            self.weights |= hostile.WITH_FILTER
        if test.CHILDREN:
            self.weights |= hostile.WITH_UNITS
        self.to_be_refused = set(hostile.WITH_FILTER | hostile.WITH_UNITS)
        if test.CHILDREN:
            # Nova forces no move of what has an allocation of child providers.
            self.to_be_refused |= {
                steps.Steps.live_migrate_forced,
                steps.Steps.evacuate_forced,
            }

    def __call__(self):
        """Do all, judge each, and empty the cloud."""
        self.test.tell(f"{self.count} operations, seed {self.seed}")
        changes = self.test.changes()
        self.rng.shuffle(changes)
        every = max(1, self.count // (len(changes) + 1))
        step = 0
        try:
            for step in range(1, self.count + self.more + 1):
                if step > self.count and not self.rare():
                    break
                if changes and step % every == 0:
                    self._change_policy(changes.pop())
                self._step(step)
                self._sweep()
                if step % TELL_EVERY == 0:
                    self.test.tell(f"{step} of {self.count}")
            self._end()
        except BaseException:
            self.test.tell(f"step {step} of seed {self.seed}; the last:")
            for line in self._last:
                self.test.tell(f"  {line}")
            self.test.tell(traceback.format_exc())
            raise
        finally:
            self._summary()

    def _step(self, number):
        """Do one operation, and judge what is there then."""
        while True:
            weights = self._weights()
            (operation,) = self.rng.choices(list(weights), weights.values())
            name = operation.__name__
            self.steps.told = ""
            self._last.append(f"{number} {name}")
            try:
                done = operation(self.steps)
                outcome = "done"
            except RefusedError as error:
                done, outcome = True, f"refused: {str(error)[:200]}"
            finally:
                self._last[-1] = f"{number} {name}: {self.steps.told}"
            if not done:
                self._last.pop()
                continue
            self._last[-1] += f": {outcome}"
            (self.done if outcome == "done" else self.refused)[name] += 1
            break
        self._check()

    def rare(self):
        """Return {operation: how often it had its effect} of those that seldom had.

        To be refused is the effect of some.  How often something is to be repaired,
        Nova says.
        """
        counts = {
            operation: (self.refused if operation in self.to_be_refused else self.done)[
                operation.__name__
            ]
            for operation in self.weights
            if operation != steps.Steps.reset_state
        }
        return {kind: count for kind, count in counts.items() if count < OFTEN}

    def _weights(self):
        """Let there be neither too few servers nor too many, and something of all."""
        servers = len(self.steps.listed(*steps.ANY))
        weights = dict(self.weights)
        if servers < FEW:
            weights[steps.Steps.delete] = 1
            for kind in weights.keys() & {
                steps.Steps.boot_high,
                steps.Steps.boot_general,
            }:
                weights[kind] *= 3
        elif servers > MANY:
            weights[steps.Steps.delete] *= 4
        if sum((self.done + self.refused).values()) > self.count // 2:
            for operation in self.rare():
                weights[operation] *= MORE_OFTEN
        return weights

    def _check(self):
        """Look that nothing is wrong; Nova's books may take their time."""
        down = self.steps.down
        self._judge.look()
        found = self._judge.guest_complaints(self.test.most, self.test.sizes, down)
        self.test.assertEqual([], found)
        verdict.await_none(lambda: self._judge.book_complaints(down))
        kinds = {guest.high for guest in self._judge.guests}
        self.both += len(kinds) == 2

    def _change_policy(self, change):
        while self.steps.recover_host():
            pass
        self._last.append(f"policy: {change.__name__}")
        change()
        self.test.tell(f"policy: {change.__name__}")
        self._check()

    def _sweep(self):
        """Delete servers that never had a host."""
        for server in self.steps.listed("ERROR"):
            if server.host is None:
                self._delete(server)
                del self._judge.found[server.id]

    def _delete(self, server):
        self.test.cloud.servers.delete(
            BootedServer(server.id, server.name, server.status, None, server.flavor)
        )

    def _end(self):
        """Delete every server; nothing may be left of any."""
        while self.steps.recover_host():
            pass
        for server in self.steps.listed(*steps.ANY):
            self._delete(server)
        self._check()
        self.test.assertEqual([], self._judge.guests)
        self.test.assertEqual({}, self._judge.held())
        self.test.cloud.run_periodics()
        for name in self.test.hosts:
            node = objects.ComputeNode.get_first_node_by_host_for_old_compat(
                context.get_admin_context(), name
            )
            cells = objects.NUMATopology.obj_from_db_obj(node.numa_topology).cells
            pins = {cell.id: cell.pinned_cpus for cell in cells if cell.pinned_cpus}
            self.test.assertEqual((name, {}, 0), (name, pins, node.vcpus_used))

    def _summary(self):
        for name in sorted(self.done | self.refused):
            self.test.tell(
                f"{name:28} {self.done[name]:4} done {self.refused[name]:4} refused"
            )
        self.test.tell(f"judged {self.both} times with guests of both classes")

# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.changes.migrations import record
from nova_perfvm.changes.migrations.execution import MoveProgress, begin, next_action
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.facts.snapshot import Migration, Server

MOVE = Move("s1", "vm1", "h1", "h2", True, 65536, True)
COLD = dataclasses.replace(MOVE, live=False)
SHELVE = dataclasses.replace(COLD, target="")
UNSHELVE = dataclasses.replace(COLD, source="")


def execution():
    """Return an execution of which Nova was asked for the first move."""
    found = begin("digest", "room for 1 x hp", [MOVE, COLD])
    asked = dataclasses.replace(
        found.moves[0], state="asked", status="ACTIVE", after="m1", note="why"
    )
    return found.updated(0, asked)


def server(host="h1", status="ACTIVE", task=None):
    return Server("s1", "vm1", host, status, 20, {}, task=task)


def migration(status, number=2, source="h1", destination="h2"):
    return Migration(f"m{number}", "s1", "live-migration", status, source, destination)


class PendingTest(testtools.TestCase):
    """Nobody has asked for the move yet."""

    def test_it_starts_where_all_is_as_planned_and_else_stops(self):
        start, stop, other = "start", "stop", "somebody else"
        waiting = server("h2", "VERIFY_RESIZE")
        for kind, words, move, found, *migrations in (
            (start, "", MOVE, server()),
            (start, "", MOVE, server(), migration("completed")),
            (start, "", MOVE, server(status="PAUSED")),
            (start, "", COLD, server(status="SHUTOFF")),
            ("done", "", MOVE, server("h2")),
            (stop, "deleted", MOVE, None),
            (stop, "ACTIVE on h3", MOVE, server("h3")),
            (stop, "on no host", MOVE, server(None, "SHELVED_OFFLOADED")),
            (stop, "SHUTOFF", MOVE, server(status="SHUTOFF")),
            (stop, "PAUSED", COLD, server(status="PAUSED")),
            (stop, "(migrating)", MOVE, server(task="migrating")),
            (stop, other, MOVE, server(), migration("running")),
            (stop, other, MOVE, waiting, migration("finished")),
        ):
            action = next_action(MoveProgress(move), found, migrations)
            self.assertEqual(kind, action.kind, (found, migrations))
            self.assertIn(words, action.why)


class AskedTest(testtools.TestCase):
    """Nova was asked for the move, by this run or an earlier one."""

    def action(self, found, *migrations, asked_now=False):
        progress = MoveProgress(MOVE, "asked", "ACTIVE", "m1")
        old = migration("completed", 1)
        return next_action(progress, found, (*migrations, old), asked_now=asked_now)

    def test_it_waits_confirms_ends_or_stops(self):
        wait, stop = "wait", "stop"
        migrating, there = server(task="migrating"), server("h2")
        waiting = server("h2", "VERIFY_RESIZE")
        foreign = migration("running", destination="h3")
        for kind, words, found, *migrations in (
            (wait, "", migrating),
            (wait, "", migrating, migration("accepted", destination=None)),
            (wait, "", server(), migration("running")),
            (wait, "", there, migration("post-migrating")),
            (wait, "", waiting, migration("confirming")),
            # nova-compute writes it before the server's status.
            (wait, "", waiting, migration("confirmed")),
            (wait, "", waiting),
            ("confirm", "", waiting, migration("finished")),
            ("done", "", there, migration("confirmed")),
            ("done", "", there, migration("completed")),
            # Nova never heard of it.
            ("start", "", server()),
            (stop, "deleted", None),
            (stop, "migration is error", server(), migration("error")),
            (stop, "migration is failed", there, migration("failed")),
            (stop, "is ERROR now", server("h2", "ERROR"), migration("completed")),
            (
                *(stop, "migration is running"),
                *(server(status="ERROR"), migration("running")),
            ),
            (stop, "on h3", server("h3"), migration("completed")),
            (
                *(stop, "from h1 to h3 is running"),
                *(server(), foreign, migration("error", 3)),
            ),
        ):
            action = self.action(found, *migrations)
            self.assertEqual(kind, action.kind, (found, migrations))
            self.assertIn(words, action.why)
        refused = self.action(server(), asked_now=True)
        self.assertEqual((stop, "Nova did not move the server"), refused)


class OlderPlanTest(testtools.TestCase):
    def test_servers_that_it_shelves(self):
        for move in (SHELVE, UNSHELVE):
            action = next_action(MoveProgress(move), server(), [])
            self.assertEqual("stop", action.kind, move)
            self.assertIn("openstack server unshelve", action.why)


class ExecutionTest(testtools.TestCase):
    def test_what_is_done_and_what_remains(self):
        found = execution()
        self.assertEqual(((), found.moves), (found.done, found.remaining))
        first, second = found.moves
        done = dataclasses.replace(first, state="done")
        found = found.updated(0, done)
        self.assertEqual(((done,), (second,)), (found.done, found.remaining))

    def test_what_is_written_is_read(self):
        self.assertEqual(execution(), record.loads(record.dumps(execution())))

# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.changes.migrations import record
from nova_perfvm.changes.migrations.execution import (
    MoveProgress,
    begin,
    next_action,
)
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.facts.snapshot import Migration, Server

MOVE = Move("s1", "vm1", "h1", "h2", True, 65536, True)
COLD = dataclasses.replace(MOVE, live=False)


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

    def kind(self, found, *migrations, move=MOVE):
        return next_action(MoveProgress(move), found, migrations).kind

    def test_it_starts_where_all_is_as_planned(self):
        self.assertEqual("start", self.kind(server()))
        self.assertEqual("start", self.kind(server(), migration("completed")))
        self.assertEqual("start", self.kind(server(status="PAUSED")))
        self.assertEqual("start", self.kind(server(status="SHUTOFF"), move=COLD))

    def test_it_is_done_where_the_server_is_there_already(self):
        self.assertEqual("done", self.kind(server("h2")))

    def test_it_stops_where_anything_is_otherwise(self):
        for found, migrations, words in (
            (None, (), "deleted"),
            (server("h3"), (), "ACTIVE on h3"),
            (server(None, "SHELVED_OFFLOADED"), (), "on no host"),
            (server(status="SHUTOFF"), (), "SHUTOFF"),
            (server(task="migrating"), (), "(migrating)"),
            (server(), (migration("running"),), "somebody else"),
            (server("h2", "VERIFY_RESIZE"), (migration("finished"),), "somebody else"),
        ):
            with self.subTest(words=words):
                action = next_action(MoveProgress(MOVE), found, migrations)
                self.assertEqual("stop", action.kind)
                self.assertIn(words, action.why)
        self.assertEqual("stop", self.kind(server(status="PAUSED"), move=COLD))


class AskedTest(testtools.TestCase):
    """Nova was asked for the move, by this run or an earlier one."""

    def action(self, found, *migrations, asked_now=False, move=MOVE):
        progress = MoveProgress(move, "asked", "ACTIVE", "m1")
        old = migration("completed", 1)
        return next_action(progress, found, (*migrations, old), asked_now=asked_now)

    def test_it_waits_while_nova_is_at_it(self):
        for found, *migrations in (
            (server(task="migrating"),),
            (server(task="migrating"), migration("accepted", destination=None)),
            (server(), migration("running")),
            (server("h2"), migration("post-migrating")),
            (server("h2", "VERIFY_RESIZE"), migration("confirming")),
            # nova-compute writes it before the server's status.
            (server("h2", "VERIFY_RESIZE"), migration("confirmed")),
            (server("h2", "VERIFY_RESIZE"),),
        ):
            self.assertEqual("wait", self.action(found, *migrations).kind)

    def test_a_cold_migration_is_confirmed_then_done(self):
        waiting = server("h2", "VERIFY_RESIZE")
        self.assertEqual("confirm", self.action(waiting, migration("finished")).kind)
        self.assertEqual("done", self.action(server("h2"), migration("confirmed")).kind)

    def test_it_is_done_when_the_server_is_there_as_it_was(self):
        self.assertEqual("done", self.action(server("h2"), migration("completed")).kind)

    def test_it_starts_if_nova_never_heard_of_it(self):
        self.assertEqual("start", self.action(server()).kind)
        refused = self.action(server(), asked_now=True)
        self.assertEqual(("stop", "Nova did not move the server"), refused)

    def test_it_stops_where_it_ended_otherwise(self):
        foreign = migration("running", destination="h3")
        for words, found, *migrations in (
            ("deleted", None),
            ("migration is error", server(), migration("error")),
            ("migration is failed", server("h2"), migration("failed")),
            ("is ERROR now", server("h2", "ERROR"), migration("completed")),
            ("migration is running", server(status="ERROR"), migration("running")),
            ("on h3", server("h3"), migration("completed")),
            ("from h1 to h3 is running", server(), foreign, migration("error", 3)),
        ):
            with self.subTest(words=words):
                action = self.action(found, *migrations)
                self.assertEqual("stop", action.kind)
                self.assertIn(words, action.why)


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

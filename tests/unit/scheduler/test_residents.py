# SPDX-License-Identifier: Apache-2.0
"""Residents beside Nova's own tables; on a real cloud: test_moves_in_sight.py."""

import contextlib
import datetime as dt
from unittest import mock

import fixtures
from nova import context, objects
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_db import exception as db_exception
from oslo_serialization import jsonutils
from oslo_utils import timeutils
from oslo_utils.fixture import uuidsentinel

from nova_perfvm.scheduler import residents
from tests.unit.scheduler import states
from tests.unit.scheduler.case import ConfigCase

UNPINNED = None
PINNED = objects.InstanceNUMATopology(
    cells=[objects.InstanceNUMACell(id=0, cpuset=set(), pcpuset={0, 1}, memory=512)]
)
SHARED = objects.InstanceNUMATopology(
    cells=[objects.InstanceNUMACell(id=0, cpuset={0, 1}, pcpuset=set(), memory=512)]
)


class NovaCells(fixtures.Fixture):
    """Databases of Nova's cells, with Nova's tables, each in a file of SQLite.

    :param names: of the cells; each is the UUID of a cell by ``uuidsentinel``
    """

    def __init__(self, *names):
        super().__init__()
        self._names = names

    def _setUp(self):  # noqa: N802
        directory = self.useFixture(fixtures.TempDir())
        self.useFixture(fixtures.MockPatchObject(context, "CELL_CACHE", {}))
        self._cells = {
            getattr(uuidsentinel, name): objects.CellMapping(
                uuid=getattr(uuidsentinel, name),
                database_connection=f"sqlite:///{directory.join(name)}",
                transport_url="none:///",
            )
            for name in self._names
        }
        self.useFixture(
            fixtures.MockPatchObject(
                objects.CellMapping,
                "get_by_uuid",
                lambda _context, uuid: self._cells[uuid],
            )
        )
        for name in self._names:
            with self.targeted(name) as cell:
                engine = cell.db_connection.writer.get_engine()
                models.BASE.metadata.create_all(engine)
                self.addCleanup(engine.dispose)

    @contextlib.contextmanager
    def targeted(self, name="cell"):
        """Give a context whose queries go to the database of a cell."""
        admin = context.RequestContext("user", "project", is_admin=True)
        with context.target_cell(admin, self._cells[getattr(uuidsentinel, name)]) as to:
            yield to

    def clear(self, name="cell"):
        """Delete all servers and moves of a cell."""
        with self.targeted(name) as cell:
            engine = cell.db_connection.writer.get_engine()
        with engine.begin() as connection:
            for table in reversed(models.BASE.metadata.sorted_tables):
                connection.execute(table.delete())

    def add_server(self, name, host, topology, *, moved=None, cell="cell", **fields):
        """Write a server's row.

        :param topology: its InstanceNUMATopology, or None
        :param moved: (old, new) topology of its migration context
        """
        uuid = getattr(uuidsentinel, name)
        extra = {"numa_topology": topology and topology._to_json()}
        if moved is not None:
            old, new = moved
            extra["migration_context"] = jsonutils.dumps(
                objects.MigrationContext(
                    instance_uuid=uuid,
                    migration_id=1,
                    old_numa_topology=old,
                    new_numa_topology=new,
                ).obj_to_primitive()
            )
        row = {"uuid": uuid, "host": host, "node": host, "vm_state": "active"}
        row |= {"project_id": "project", "user_id": "user", "extra": extra}
        with self.targeted(cell) as to:
            main_db.instance_create(to, row | fields)

    def add_move(self, name, status, source, target, *, ago_h=0):
        """Write the record of a server's move, last changed so many hours ago."""
        row = {"status": status, "instance_uuid": getattr(uuidsentinel, name)}
        row |= {"source_compute": source, "dest_compute": target}
        row |= {"source_node": source, "dest_node": target}
        row["migration_type"] = "migration"
        changed = timeutils.utcnow() - dt.timedelta(hours=ago_h)
        with self.targeted() as to:
            created = main_db.migration_create(to, row)
            main_db.migration_update(to, created.id, {"updated_at": changed})


class ResidentsCase(ConfigCase):
    """A test beside databases of Nova's cells.

    :cvar CELLS: names of the cells
    """

    CELLS = ("cell",)

    def setUp(self):
        super().setUp()
        # Nova looks here which regular expressions its database knows.
        self.config.config(group="database", connection="sqlite://")
        self.cells = self.useFixture(NovaCells(*self.CELLS))

    def residents(self, *hosts):
        return residents.Residents([states.host_state(name) for name in hosts])


class MovesTest(ResidentsCase):
    """A server of two hosts, h1 and h2."""

    def check(self, expected, server, moves=()):
        """Look on which hosts a server counts as unpinned.

        :param server: arguments of ``NovaCells.add_server``
        :param moves: arguments of ``NovaCells.add_move``
        """
        self.cells.clear()
        self.cells.add_server("server", **server)
        for move in moves:
            self.cells.add_move("server", *move)
        found = self.residents("h1", "h2")
        counts = {host: found.unpinned(host, 0) for host in ("h1", "h2")}
        self.assertEqual(expected, [host for host in counts if counts[host]])
        self.assertLessEqual(max(counts.values()), 1)

    def test_settled(self):
        for expected, server, moves in (
            (["h1"], {"host": "h1", "topology": UNPINNED}, ()),
            (["h1"], {"host": "h1", "topology": SHARED}, ()),
            ([], {"host": "h1", "topology": PINNED}, ()),
            ([], {"host": None, "topology": UNPINNED}, ()),
            ([], {"host": "h3", "topology": UNPINNED}, ()),
            ([], {"host": "h1", "topology": UNPINNED, "deleted": 1}, ()),
        ):
            self.check(expected, server, moves)

    def test_moving(self):
        both = ["h1", "h2"]
        for expected, host, task, status in (
            (both, "h1", "migrating", "queued"),
            (both, "h1", "migrating", "running"),
            (both, "h1", "resize_prep", "pre-migrating"),
            (both, "h2", "resize_migrated", "post-migrating"),
            (both, "h2", "resize_reverting", "reverting"),
            # The record has ended, and the server is still to come back.
            (both, "h2", "resize_reverting", "reverted"),
            (["h1"], "h1", "migrating", "failed"),
            (["h2"], "h2", "resize_confirming", "confirmed"),
            (["h2"], "h2", "migrating", "completed"),
        ):
            server = {"host": host, "topology": UNPINNED, "task_state": task}
            self.check(expected, server, [(status, "h1", "h2")])

    def test_to_be_confirmed(self):
        server = {"host": "h2", "topology": UNPINNED, "vm_state": "resized"}
        self.check(["h1", "h2"], server, [("finished", "h1", "h2")])

    def test_to_or_from_a_pinned_class(self):
        for old, new, expected in (
            (PINNED, UNPINNED, ["h2"]),
            (UNPINNED, PINNED, ["h1"]),
            (PINNED, PINNED, []),
        ):
            for host, own, state, status in (
                ("h1", old, {"task_state": "resize_prep"}, "pre-migrating"),
                ("h1", old, {"task_state": "resize_migrating"}, "migrating"),
                # Nova first names the new host, then gives the new topology.
                ("h2", old, {"task_state": "resize_migrated"}, "post-migrating"),
                ("h2", new, {"task_state": "resize_finish"}, "post-migrating"),
                ("h2", new, {"vm_state": "resized"}, "finished"),
            ):
                server = {"host": host, "topology": own, "moved": (old, new)} | state
                self.check(expected, server, [(status, "h1", "h2")])

    def test_a_resize_on_one_host(self):
        for old, new in ((PINNED, UNPINNED), (UNPINNED, PINNED), (UNPINNED, UNPINNED)):
            server = {"host": "h1", "topology": old, "task_state": "resize_prep"}
            server["moved"] = old, new
            self.check(["h1"], server, [("migrating", "h1", "h1")])

    def test_records_that_nobody_ended(self):
        """A compute died in the middle, and the server was set to rights."""
        for expected, server, move in (
            (["h2"], {"host": "h2", "topology": UNPINNED}, ("running", "h1", "h2")),
            (["h1"], {"host": "h1", "topology": UNPINNED}, ("running", "h1", "h2")),
            (
                [],
                {"host": "h1", "topology": PINNED, "moved": (PINNED, UNPINNED)},
                ("migrating", "h1", "h2"),
            ),
            (
                ["h2"],
                {"host": "h2", "topology": UNPINNED, "moved": (PINNED, PINNED)},
                ("migrating", "h1", "h2"),
            ),
        ):
            self.check(expected, server, [move])

    def test_reverted_long_ago(self):
        server = {"host": "h2", "topology": UNPINNED, "task_state": "rebooting"}
        self.cells.add_server("server", **server)
        self.cells.add_move("server", "reverted", "h1", "h2", ago_h=2)
        self.assertEqual(0, self.residents("h1").unpinned("h1", 0))


class QueriesTest(ResidentsCase):
    def test_servers_are_read_where_pins_do_not_explain_all(self):
        for name, topology in (("a", PINNED), ("b", PINNED), ("c", UNPINNED)):
            self.cells.add_server(name, "h1", topology)
        self.cells.add_server("d", "h2", UNPINNED)
        found = self.residents("h1", "h2")
        read = objects.InstanceList.get_by_filters
        with mock.patch.object(
            objects.InstanceList, "get_by_filters", side_effect=read
        ) as asked:
            self.assertEqual(0, found.unpinned("h1", 3))
            asked.assert_not_called()
            self.assertEqual(1, found.unpinned("h1", 2))
            self.assertEqual(1, found.unpinned("h2", 0))
            self.assertEqual(2, asked.call_count)

    def test_moves_are_looked_up_once(self):
        found = self.residents("h1", "h2")
        look = objects.MigrationList.get_by_filters
        with mock.patch.object(
            objects.MigrationList, "get_by_filters", side_effect=look
        ) as asked:
            for name in ("h1", "h2", "h1"):
                self.assertEqual(0, found.unpinned(name, 0))
        # The unfinished, and those that were reverted lately.
        self.assertEqual(2, asked.call_count)

    def test_a_database_that_does_not_answer_is_asked_once(self):
        found = self.residents("h1", "h2")
        gone = db_exception.DBConnectionError("gone away")
        with mock.patch.object(
            objects.MigrationList, "get_by_filters", side_effect=gone
        ) as asked:
            for name in ("h1", "h2"):
                self.assertRaises(
                    db_exception.DBConnectionError, found.unpinned, name, 0
                )
        asked.assert_called_once()


class CellsTest(ResidentsCase):
    CELLS = ("one", "two")

    def test_each_has_its_own_database(self):
        self.cells.add_server("a", "h1", UNPINNED, cell="one")
        self.cells.add_server("b", "h2", UNPINNED, cell="two")
        hosts = [states.host_state(name) for name in ("h1", "h2")]
        for host, cell in zip(hosts, self.CELLS, strict=True):
            host.cell_uuid = getattr(uuidsentinel, cell)
        found = residents.Residents(hosts)
        self.assertEqual([1, 1], [found.unpinned(name, 0) for name in ("h1", "h2")])

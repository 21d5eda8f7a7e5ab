# SPDX-License-Identifier: Apache-2.0
"""Rows of all databases before and after dry runs, rows of old releases among them."""

import contextlib
import json

import sqlalchemy
from nova import context, objects
from nova.db.api import api as api_db
from oslo_db import exception as db_exception
from placement import db_api as placement_db
from sqlalchemy import event

from nova_perfvm.cloud.dry_run.scheduling import DryRun
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.dry_run import Question
from tests.functional import base, scheduling

# What services say of themselves each few seconds.
HEARTBEATS = frozenset({"last_seen_up", "report_count", "updated_at"})


class TestNothingIsWritten(scheduling.SchedulingMixin, base.FunctionalTest):
    CLOUD = {"cells": 2}  # noqa: RUF012
    PLACEMENT = "slots"

    def setUp(self):
        super().setUp()
        for cell in ("cell1", "cell2"):
            self.cloud.start_configured(
                f"hp-{cell}", self.policy, "dedicated", cell=cell
            )
        self.pinned = self.boot(host="hp-cell1")
        self.other = self.boot(host="hp-cell2")
        self.failed = self.boot_refused(base.GENERAL_2)
        for server in (self.pinned, self.other):
            self.make_old(server.id)
        self.dry = DryRun()
        self.flavor = objects.Flavor.get_by_name(self.admin(), base.HP_64).flavorid

    def engines(self):
        """Return {name: engine} of all databases."""
        cells = self.cloud._services.cells._ctxt_mgrs
        managers = {f"cell {n}": manager for n, manager in enumerate(cells.values())}
        managers["API"] = api_db.context_manager
        managers["Placement"] = placement_db.placement_context_manager
        return {name: manager.writer.get_engine() for name, manager in managers.items()}

    def rows(self):
        """Return {(database, table): its rows}."""
        found = {}
        for name, engine in self.engines().items():
            for table in sqlalchemy.inspect(engine).get_table_names():
                with engine.connect() as connection:
                    result = connection.exec_driver_sql(f'SELECT * FROM "{table}"')
                    lines = [dict(row._mapping) for row in result]
                if table == "services":
                    lines = [
                        {k: v for k, v in line.items() if k not in HEARTBEATS}
                        for line in lines
                    ]
                found[name, table] = sorted(map(repr, lines))
        return found

    def make_old(self, server):
        """Store what Nova has of a server as releases before Victoria did.

        They had pinned CPUs in ``cpuset`` (InstanceNUMACell 1.4), and no ``is_bfv``.
        """
        changed = 0
        for engine in self.engines().values():
            names = sqlalchemy.inspect(engine).get_table_names()
            for table, column in (
                ("request_specs", "spec"),
                ("instance_extra", "numa_topology"),
            ):
                if table not in names:
                    continue
                query = f"SELECT {column} FROM {table} WHERE instance_uuid = ?"
                with engine.begin() as connection:
                    for (text,) in connection.exec_driver_sql(query, (server,)).all():
                        old = json.dumps(_aged(json.loads(text)))
                        statement = (
                            f"UPDATE {table} SET {column} = ? WHERE instance_uuid = ?"
                        )
                        connection.exec_driver_sql(statement, (old, server))
                        changed += 1
        self.assertEqual(2, changed)

    def questions(self):
        for server in (self.pinned, self.other, self.failed):
            yield Question(server=server.id, every=True)
        yield Question(flavor=self.flavor, count=2, every=True)
        yield Question(flavor=self.flavor, volume_backed=True)

    def test_rows_stay_as_they_are(self):
        before = self.rows()
        answers = [self.dry.answer(question) for question in self.questions()]
        self.assert_same(before)
        self.assertEqual([()] * len(answers), [answer.unseen for answer in answers])
        # What Placement offers; a general server is for no such host.
        offered = [len(answer.offered) for answer in answers]
        self.assertEqual([2, 2, 0, 2, 2], offered)
        self._old_rows_are_known(before)

    def test_rows_stay_with_a_cell_down(self):
        before = self.rows()
        with self.down("cell2"):
            for question in self.questions():
                if question.server == self.other.id:
                    # Nobody can read what it is.
                    refusals = (db_exception.DBError, PerfVMError)
                    self.assertRaises(refusals, self.dry.answer, question)
                    continue
                answer = self.dry.answer(question)
                if not question.server:
                    self.assertEqual(("cell2",), answer.unseen, question)
        self.assert_same(before)

    @contextlib.contextmanager
    def down(self, name):
        """Let the database of a cell answer nobody."""
        services = self.cloud._services
        path = services.cell_mappings[name].database_connection
        engine = services.cells._ctxt_mgrs[path].writer.get_engine()

        def refuse(*_args):
            raise db_exception.DBConnectionError

        event.listen(engine, "before_cursor_execute", refuse)
        try:
            yield
        finally:
            event.remove(engine, "before_cursor_execute", refuse)

    def assert_same(self, before):
        after = self.rows()
        self.assertEqual(before.keys(), after.keys())
        changed = {
            name: (sorted({*rows} ^ {*after[name]}))
            for name, rows in before.items()
            if rows != after[name]
        }
        self.assertEqual({}, changed)

    def _old_rows_are_known(self, before):
        """Look that Nova itself would have stored the old rows anew."""
        server = self.pinned.id
        objects.RequestSpec.get_by_instance_uuid(self.admin(), server)
        mapping = objects.InstanceMapping.get_by_instance_uuid(self.admin(), server)
        with context.target_cell(self.admin(), mapping.cell_mapping) as targeted:
            objects.InstanceNUMATopology.get_by_instance_uuid(targeted, server)
        after = self.rows()
        changed = {name[1] for name, rows in before.items() if rows != after[name]}
        self.assertEqual({"request_specs", "instance_extra"}, changed)


def _aged(document):
    """Return a stored object of Nova as it was before Victoria."""
    if isinstance(document, list):
        return [_aged(each) for each in document]
    if not isinstance(document, dict):
        return document
    aged = {key: _aged(value) for key, value in document.items()}
    data = aged.get("nova_object.data", {})
    if aged.get("nova_object.name") == "InstanceNUMACell":
        aged["nova_object.version"] = "1.4"
        data["cpuset"] = data["cpuset"] or data.pop("pcpuset")
        data.pop("pcpuset", None)
    if aged.get("nova_object.name") == "RequestSpec":
        data.pop("is_bfv", None)
    return aged

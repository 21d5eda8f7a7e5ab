# SPDX-License-Identifier: Apache-2.0
"""A cache of what SQLAlchemy would make anew each time."""

from __future__ import annotations

from typing import Any

import fixtures
from oslo_db.sqlalchemy import engines
from sqlalchemy import util
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

# More than a cloud's databases are ever asked.
STATEMENTS = 5000
_statements: util.LRUCache[Any, Any] = util.LRUCache(STATEMENTS)


class Statements(fixtures.Fixture):
    """Keep compiled SQL when a database is closed.

    SQLAlchemy compiles each statement once for a database, and each cloud has
    databases of its own.
    """

    def _setUp(self) -> None:  # noqa: N802
        # A statement is kept together with the dialect of its database.
        for name, value in (("__eq__", _is_the_same), ("__hash__", _hash)):
            self.useFixture(
                fixtures.MockPatchObject(SQLiteDialect_pysqlite, name, value)
            )
        original = engines.create_engine

        def create_engine(*args: Any, **options: Any) -> Any:
            engine = original(*args, **options)
            engine.update_execution_options(compiled_cache=_statements)
            return engine

        self.useFixture(
            fixtures.MockPatchObject(engines, "create_engine", create_engine)
        )


def _is_the_same(one: Any, other: Any) -> bool:
    return type(one) is type(other)


def _hash(one: Any) -> int:
    return hash(type(one))

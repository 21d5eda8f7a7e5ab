# SPDX-License-Identifier: Apache-2.0
"""Caches of what Nova's libraries would make anew each time."""

from __future__ import annotations

import functools
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


class Controllers(fixtures.Fixture):
    """Make each controller of Nova's API once, not once for each of its routes.

    They keep nothing between requests; but many have a client of every service.
    To be used when nova.conf is complete.
    """

    def _setUp(self) -> None:  # noqa: N802
        # It loads the validators of extra specs, which read nova.conf.
        from nova.api.openstack.compute import routes  # noqa: PLC0415

        make = functools.cache(lambda controller: controller())
        found = tuple(
            (
                path,
                methods
                if isinstance(methods, str)
                else {
                    method: [functools.partial(make, controller), action]
                    for method, (controller, action) in methods.items()
                },
            )
            for path, methods in routes.ROUTE_LIST
        )
        self.useFixture(fixtures.MockPatchObject(routes, "ROUTE_LIST", found))

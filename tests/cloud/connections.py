# SPDX-License-Identifier: Apache-2.0
"""Connections to the databases of the cloud, opened once and used again."""

from __future__ import annotations

from typing import Any

import fixtures
from oslo_db.sqlalchemy import engines
from sqlalchemy import event, pool


class _Pool(pool.QueuePool):
    """As many connections as there are threads that want one at a time."""

    def __init__(self, creator: Any, **options: Any) -> None:
        unlimited = {"pool_size": 64, "max_overflow": -1}
        super().__init__(creator, **(unlimited | options))


class _Pools:
    """SQLAlchemy's pools, as oslo.db sees them."""

    NullPool = _Pool

    def __getattr__(self, name: str) -> Any:
        return getattr(pool, name)


class Connections(fixtures.Fixture):
    """Keep connections to SQLite open between transactions.

    oslo.db opens one for each transaction on a file.  SQLite then reads the
    whole schema, and the last one to be closed writes its log back: together a
    third of the time that booting a server takes.  And nobody needs these
    databases after a crash, so nothing waits for the disk.
    """

    def _setUp(self) -> None:  # noqa: N802
        self.useFixture(fixtures.MockPatchObject(engines, "pool", _Pools()))
        event.listen(_Pool, "connect", _without_waiting)
        self.addCleanup(event.remove, _Pool, "connect", _without_waiting)


def _without_waiting(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF")

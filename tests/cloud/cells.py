# SPDX-License-Identifier: Apache-2.0
"""The databases of the cloud's cells, without a lock around all of them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from nova.tests import fixtures as nova_fixtures

if TYPE_CHECKING:
    from collections.abc import Iterator

# Deleted rows stay, marked.
_STATE = "SELECT vm_state, task_state FROM instances WHERE uuid = ? AND deleted = 0"


class Cells(nova_fixtures.CellDatabases):
    """Nova's fixture for databases of cells, fit for threads.

    There, code that targets no cell gets the database of the cell targeted
    last, guarded by a lock for readers and a writer.  Threads can come to wait
    in a circle for it and for a database's write lock, and then nothing ever
    ends.  Here such code gets the cell of all computes, as a service gets its
    own ``[database]connection``, and there is nothing to guard.
    """

    @contextlib.contextmanager
    def _wrap_target_cell(self, context: Any, cell_mapping: Any) -> Iterator[Any]:
        with self._real_target_cell(context, cell_mapping) as targeted:
            yield targeted

    def _wrap_get_context_manager(self, context: Any) -> Any:
        return getattr(context, "db_connection", None) or self._default_ctxt_mgr

    def states(self, server_id: str) -> list[tuple[str, str | None]]:
        """Return (vm_state, task_state) of a server in each cell that has it."""
        found: list[tuple[str, str | None]] = []
        for manager in self._ctxt_mgrs.values():
            with manager.writer.get_engine().connect() as connection:
                rows = connection.exec_driver_sql(_STATE, (server_id,))
                found += [(vm_state, task_state) for vm_state, task_state in rows]
        return found

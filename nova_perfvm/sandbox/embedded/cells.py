# SPDX-License-Identifier: Apache-2.0
"""The databases of the cloud's cells, without a lock around all of them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from nova.tests import fixtures as nova_fixtures

if TYPE_CHECKING:
    from collections.abc import Iterator


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

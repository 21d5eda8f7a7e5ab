# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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

# SPDX-License-Identifier: Apache-2.0
"""Keep Python's garbage collector from searching objects that are never freed.

A request for hundreds of hosts creates so many objects that CPython's collector runs
through all objects of the process.  Most of these belong to modules, which stay until
the process ends.
"""

import functools
import gc
import threading

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# functools.cache does not lock, and the first requests come in several threads.
_LOCK = threading.Lock()


def freeze() -> int:
    """Exempt all present objects from garbage collection, and return their number.

    Only the first call in a process has an effect; concurrent calls wait.  Reference
    counting still frees exempt objects, except those in reference cycles.
    """
    with _LOCK:
        return _freeze()


@functools.cache
def _freeze() -> int:
    # First collect garbage, which freezing would keep for ever.
    gc.collect()
    gc.freeze()
    count = gc.get_freeze_count()
    LOG.info("%d objects are not searched for garbage from now on", count)
    return count

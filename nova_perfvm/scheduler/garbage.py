# SPDX-License-Identifier: Apache-2.0
"""Keep Python's garbage collector from searching what nova-scheduler never frees.

A request for hundreds of hosts makes so many objects that CPython's collector then
searches all that the process holds.  Most of that is modules and what belongs to
them, which stay until the process ends.
"""

import functools
import gc
import threading

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# functools.cache takes none: the first requests come in several threads.
_LOCK = threading.Lock()


def freeze() -> int:
    """Let the collector pass by what there is now, and return how many objects.

    Only the first call in a process does anything; others wait for it.  What is
    frozen is still freed when nothing refers to it; only cycles of it would stay.
    """
    with _LOCK:
        return _freeze()


@functools.cache
def _freeze() -> int:
    # Garbage that is there would be kept for ever.
    gc.collect()
    gc.freeze()
    count = gc.get_freeze_count()
    LOG.info("%d objects are not searched for garbage from now on", count)
    return count

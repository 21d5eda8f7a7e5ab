# SPDX-License-Identifier: Apache-2.0
"""Move pages of another process to a NUMA node; run in a guest.

Arguments: the process, the address of the first page, how many, and the node.
"""

import ctypes
import os
import sys
import time

SYS_MOVE_PAGES = 279
PAGE_BYTES = 4096
MPOL_MF_MOVE_ALL = 4
# The kernel leaves out pages that it is busy with.
TRIES, PAUSE_S = 20, 0.2


def main(pid, address, count, node):
    left = [address + PAGE_BYTES * number for number in range(count)]
    for _ in range(TRIES):
        found = moved(pid, left, node)
        left = [page for page, where in zip(left, found, strict=True) if where != node]
        if not left:
            return
        time.sleep(PAUSE_S)
    sys.exit(f"{len(left)} of {count} pages were not moved: {set(found)}")


def moved(pid, addresses, node):
    """Return on which node each page is then, or a negative errno."""
    count = len(addresses)
    status = (ctypes.c_int * count)()
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(
        SYS_MOVE_PAGES,
        pid,
        ctypes.c_ulong(count),
        (ctypes.c_void_p * count)(*addresses),
        (ctypes.c_int * count)(*[node] * count),
        status,
        MPOL_MF_MOVE_ALL,
    )
    if result < 0:
        sys.exit(f"move_pages: {os.strerror(ctypes.get_errno())}")
    return list(status)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

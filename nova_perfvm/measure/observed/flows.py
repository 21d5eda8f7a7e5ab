# SPDX-License-Identifier: Apache-2.0
"""TCP connections, whose number limits the spread of packets over queues.

Each connection stays on one queue in each direction.  Connections are compared by
full addresses, so a truncated line hides no other connection.
"""

from __future__ import annotations

from typing import Final

from nova_perfvm.measure.collect.collected import Collected

PATHS: Final = ("/proc/net/tcp", "/proc/net/tcp6")

_ESTABLISHED: Final = "01"
# In little-endian notation: ::1, the prefix of IPv4-mapped addresses in IPv6, and
# 127.x.x.x.
_LOOPBACK_6: Final = f"{0:024X}01000000"
_MAPPED: Final = f"{0:016X}FFFF0000"
_LOOPBACK_4: Final = "7F"


def read(collected: Collected) -> int:
    """Return how many connections were established at either look, without loopback.

    :raises NotReadError: when neither /proc/net/tcp nor tcp6 was read
    """
    read_paths = [path for path in PATHS if path in collected.files]
    if not read_paths:
        collected.text(PATHS[0])
    texts = [
        looks[path]
        for path in read_paths
        for looks in (collected.files, collected.later)
        if path in looks
    ]
    return len({flow for text in texts for flow in _established(text)})


def _established(text: str) -> set[tuple[str, str]]:
    rows = [line.split() for line in text.splitlines()[1:]]
    return {
        (row[1], row[2])
        for row in rows
        if len(row) > 3 and row[3] == _ESTABLISHED and not _is_loopback(row[2])
    }


def _is_loopback(address: str) -> bool:
    host = address.partition(":")[0].removeprefix(_MAPPED)
    return host == _LOOPBACK_6 or (len(host) == 8 and host.endswith(_LOOPBACK_4))

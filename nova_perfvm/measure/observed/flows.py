# SPDX-License-Identifier: Apache-2.0
"""TCP connections, over which a device's packets can be spread at all.

Each connection stays on one queue in each direction.  Only whole addresses are
compared, so that a line that was cut off hides no other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected

PATHS: Final = ("/proc/net/tcp", "/proc/net/tcp6")

_ESTABLISHED: Final = "01"
# As little-endian machines write them: ::1, what an IPv4 address begins with in
# IPv6, and 127.x.x.x.
_LOOPBACK_6: Final = f"{0:024X}01000000"
_MAPPED: Final = f"{0:016X}FFFF0000"
_LOOPBACK_4: Final = "7F"


class Flows(NamedTuple):
    """How many connections were seen, and where."""

    number: int
    source: str


def read(collected: Collected) -> Flows:
    """Return the connections that were established at either look, to others only.

    :raises NotReadError: when no list of them was read
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
    flows = {flow for text in texts for flow in _established(text)}
    return Flows(len(flows), " ".join(read_paths))


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

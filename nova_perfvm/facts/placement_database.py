# SPDX-License-Identifier: Apache-2.0
"""The settings of Placement's database that decide whether its retries are safe."""

from dataclasses import dataclass

READ_UNCOMMITTED = "READ UNCOMMITTED"
REPEATABLE_READ = "REPEATABLE READ"


@dataclass(frozen=True)
class PlacementDatabase:
    """The database, as a session of Placement finds it.

    :ivar server: product and version, as it calls itself; empty if nothing was read
    :ivar isolation_level: in capitals, ``REPEATABLE READ``
    :ivar snapshot_isolation: MariaDB's innodb_snapshot_isolation; None where the
        server has no such variable
    :ivar unread: why nothing could be read; empty otherwise
    """

    server: str = ""
    isolation_level: str = ""
    snapshot_isolation: bool | None = None
    unread: str = ""

    def __str__(self) -> str:
        """Return the server and its snapshot isolation, in a line."""
        if self.snapshot_isolation is None:
            return self.server
        state = "ON" if self.snapshot_isolation else "OFF"
        return f"{self.server}, innodb_snapshot_isolation is {state}"

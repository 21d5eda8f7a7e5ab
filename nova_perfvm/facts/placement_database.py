# SPDX-License-Identifier: Apache-2.0
"""The settings of Placement's database that decide whether its retries are safe."""

from dataclasses import dataclass

READ_UNCOMMITTED = "READ UNCOMMITTED"
READ_COMMITTED = "READ COMMITTED"
REPEATABLE_READ = "REPEATABLE READ"
SERIALIZABLE = "SERIALIZABLE"


@dataclass(frozen=True)
class PlacementDatabase:
    """The database, as a session of Placement finds it.

    :ivar server: ``MariaDB``, ``MySQL`` or ``PostgreSQL``; empty if nothing could
        be read
    :ivar version: what the server calls its version
    :ivar isolation_level: in capitals, ``REPEATABLE READ``
    :ivar server_default: the isolation level of sessions that ask for none; empty
        if only the session's is known
    :ivar snapshot_isolation: MariaDB's innodb_snapshot_isolation; None where the
        server has no such variable
    :ivar unread: why nothing could be read; empty otherwise
    """

    server: str = ""
    version: str = ""
    isolation_level: str = ""
    server_default: str = ""
    snapshot_isolation: bool | None = None
    unread: str = ""

    def __str__(self) -> str:
        """Return all that was read, in a line."""
        parts = [f"{self.server} {self.version}"]
        if self.server_default not in {"", self.isolation_level}:
            parts.append(
                f"Placement's sessions have {self.isolation_level}, others "
                f"{self.server_default}"
            )
        if self.snapshot_isolation is not None:
            state = "ON" if self.snapshot_isolation else "OFF"
            parts.append(f"innodb_snapshot_isolation is {state}")
        return ", ".join(parts)

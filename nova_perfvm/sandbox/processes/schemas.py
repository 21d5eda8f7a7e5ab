# SPDX-License-Identifier: Apache-2.0
"""Fresh tables of each database, kept from the first time they were made.

Making them takes half of a sandbox's first start, and comes out the same each
time that the same OpenStack does it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nova_perfvm.sandbox.processes import running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nova_perfvm.sandbox.processes.programs import Programs


class Schemas:
    """The tables in a directory, which several sandboxes may share."""

    def __init__(self, directory: Path, programs: Programs, socket: Path) -> None:
        """Know the directory and the server; nothing is made yet.

        :param socket: that of a MariaDB that runs, whose root has no password
        """
        self._directory = directory
        self._programs = programs
        self._access = ("--no-defaults", "-uroot", f"--socket={socket}")

    def fill(self, database: str, make: Callable[[], object]) -> None:
        """Fill an empty database, by what was kept or by making it.

        :param make: makes the tables, and nothing that differs from one sandbox to
            the next
        :raises SandboxError: when a command fails
        """
        kept = self._directory / f"{database}.sql"
        if kept.exists():
            running.run(
                [
                    self._programs.mariadb,
                    *self._access,
                    database,
                    "-e",
                    f"source {kept}",
                ]
            )
            return
        make()
        self._directory.mkdir(parents=True, exist_ok=True)
        # Another sandbox may be about to read it.
        written = kept.with_suffix(f".{os.getpid()}")
        running.run(
            [
                self._programs.mariadb_dump,
                *self._access,
                f"--result-file={written}",
                database,
            ]
        )
        written.replace(kept)

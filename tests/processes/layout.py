# SPDX-License-Identifier: Apache-2.0
"""The paths of the sandbox's files."""

from __future__ import annotations

import os
from pathlib import Path

from tests.processes.errors import SandboxError


def default_directory() -> Path:
    """Return ``~/.cache/nova_perfvm/sandbox``, or the same below XDG_CACHE_HOME.

    :raises SandboxError: for a user without a home directory
    """
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        raise SandboxError(
            "this user has no home directory: set XDG_CACHE_HOME, or name one with "
            "--directory"
        ) from None
    return Path(cache) / "nova_perfvm" / "sandbox"


class Layout:
    """The state directory of one sandbox, and what is where in it."""

    def __init__(self, directory: Path) -> None:
        """Know the paths; nothing is made."""
        self.directory = directory
        # What a command that works on the sandbox locks; it marks the directory.
        self.lock = directory / "lock"
        # What the sandbox was made with.
        self.settings = directory / "sandbox.json"
        # OpenStack's virtual environment, unless another is named.
        self.environment = directory / "venv"
        self.clouds = directory / "clouds.yaml"
        # Every log and all output of the processes.
        self.logs = directory / "logs"
        # Every configuration file, among them the policy file of nova-scheduler and
        # nova-api.
        self.etc = directory / "etc"
        self.policy = self.etc / "nova" / "perfvm.yaml"
        # What the services keep, and a file for each thing that has to be made only
        # once.
        self.data = directory / "data"
        self.made = self.data / "made"
        # A record of each process that was started.
        self.processes = directory / "processes"
        # Where MariaDB lets its own root in: the kernel limits the path's length.
        self.database_socket = self.data / "mariadb" / "socket"

    def domains(self, host: str) -> Path:
        """Return the domain XML of the guests on a host."""
        return self.data / "hosts" / host / "domains"

    def host_etc(self, name: str) -> Path:
        """Return the configuration of one compute host."""
        return self.etc / "hosts" / name

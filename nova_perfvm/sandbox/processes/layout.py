# SPDX-License-Identifier: Apache-2.0
"""The paths of the sandbox's files."""

from __future__ import annotations

import os
from pathlib import Path


def default_directory() -> Path:
    """Return ``nova_perfvm/sandbox`` in XDG_CACHE_HOME, or else in ``~/.cache``."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "nova_perfvm" / "sandbox"


class Layout:
    """The paths in the state directory of one sandbox."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        # Locked by each command that works on the sandbox; its content marks the
        # directory as a sandbox's.
        self.lock = directory / "lock"
        # SandboxSettings.
        self.settings = directory / "sandbox.json"
        # OpenStack's virtual environment, unless --environment names another.
        self.environment = directory / "venv"
        self.clouds = directory / "clouds.yaml"
        # Logs and output of the processes.
        self.logs = directory / "logs"
        # Configuration files, among them the policy of nova-scheduler and nova-api.
        self.etc = directory / "etc"
        self.policy = self.etc / "nova" / "perfvm.yaml"
        # The services' data, and a marker file for each step that is done only once.
        self.data = directory / "data"
        self.made = self.data / "made"
        # A record of each started process.
        self.processes = directory / "processes"
        # MariaDB's socket for its root; the kernel limits the path's length.
        self.database_socket = self.data / "mariadb" / "socket"

    def domains(self, host: str) -> Path:
        return self.data / "hosts" / host / "domains"

    def host_etc(self, name: str) -> Path:
        return self.etc / "hosts" / name

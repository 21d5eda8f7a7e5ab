# SPDX-License-Identifier: Apache-2.0
"""Where the sandbox keeps what."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from nova_perfvm.sandbox.processes.errors import SandboxError


def default_directory() -> Path:
    """Return ``~/.cache/nova_perfvm/sandbox``, or what XDG_CACHE_HOME says.

    :raises SandboxError: when nothing tells where ~ is
    """
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        raise SandboxError(
            f"user {os.getuid()} has no home directory: name the sandbox's with "
            "--directory, or set HOME or XDG_CACHE_HOME"
        ) from None
    return Path(cache) / "nova_perfvm" / "sandbox"


@dataclass(frozen=True, slots=True)
class Layout:
    """The state directory of one sandbox, and what is where in it."""

    directory: Path

    @property
    def lock(self) -> Path:
        """What a command that works on the sandbox locks; it marks the directory."""
        return self.directory / "lock"

    @property
    def settings(self) -> Path:
        """What the sandbox was made with."""
        return self.directory / "sandbox.json"

    @property
    def environment(self) -> Path:
        """OpenStack's virtual environment, unless another is named."""
        return self.directory / "venv"

    @property
    def clouds(self) -> Path:
        """clouds.yaml."""
        return self.directory / "clouds.yaml"

    @property
    def logs(self) -> Path:
        """Every log and all output of the processes."""
        return self.directory / "logs"

    @property
    def etc(self) -> Path:
        """Every configuration file."""
        return self.directory / "etc"

    @property
    def policy(self) -> Path:
        """The policy file of nova-scheduler and nova-api."""
        return self.etc / "nova" / "perfvm.yaml"

    @property
    def data(self) -> Path:
        """What the services keep."""
        return self.directory / "data"

    @property
    def made(self) -> Path:
        """A file for each thing that has to be made only once."""
        return self.data / "made"

    @property
    def processes(self) -> Path:
        """A record of each process that was started."""
        return self.directory / "processes"

    @property
    def fork_server(self) -> Path:
        """The socket at which new nova-compute processes are asked for."""
        return self.directory / "computes.sock"

    @property
    def database_socket(self) -> Path:
        """The socket at which MariaDB lets its own root in."""
        return self.data / "mariadb" / "socket"

    @property
    def sockets(self) -> tuple[Path, ...]:
        """All of them: the kernel limits the length of their paths."""
        return self.fork_server, self.database_socket

    @property
    def wiped(self) -> Path:
        """What a wipe has yet to remove; nothing in it counts any more."""
        return self.directory / "wiped"

    def host(self, name: str) -> Path:
        """Return what one compute host keeps."""
        return self.data / "hosts" / name

    def domains(self, host: str) -> Path:
        """Return the domain XML of the guests on a host."""
        return self.host(host) / "domains"

    def host_etc(self, name: str) -> Path:
        """Return the configuration of one compute host."""
        return self.etc / "hosts" / name

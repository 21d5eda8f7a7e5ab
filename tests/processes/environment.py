# SPDX-License-Identifier: Apache-2.0
"""The virtual environment of all services and the client."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from nova_perfvm.documents import textfile
from tests.processes import running

_CHECKOUT: Final = Path(__file__).parents[2]
CONSTRAINTS: Final = Path(__file__).with_name("constraints.txt")

# Packages to install; the constraints fix their versions and dependencies.
OPENSTACK: Final = (
    "nova",
    "keystone",
    "openstack-placement",
    "glance",
    "neutron",
    "python-openstackclient",
    "osc-placement",
    "PyMySQL",
    "python-memcached",
    "uwsgi",
    # Build requirements of nova-perfvm: its build then downloads nothing.
    "pip",
    "setuptools",
    "wheel",
    "pbr",
)
CINDER: Final = "cinder"


class Environment:
    """The virtual environment in a directory, created by :meth:`prepare`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        # Configuration files from the wheels.
        self.etc = directory / "etc"
        # Dumps of the fresh databases of this OpenStack.
        self.schemas = directory / "schemas"
        # Hash of the installed packages.
        self._stamp = directory / ".nova-perfvm-installed"
        self._lock = directory / ".nova-perfvm-lock"

    def program(self, name: str) -> str:
        return str(self.directory / "bin" / name)

    @property
    def is_ours(self) -> bool:
        """Return whether :meth:`prepare` has installed, or begun to install, here."""
        return self._stamp.exists() or self._lock.exists()

    def prepare(
        self, log: Path, tell: Callable[[str], None], *, volumes: bool = False
    ) -> None:
        """Install OpenStack and this package, unless they are installed already.

        A lock makes other sandboxes wait meanwhile.

        :param tell: called with a line for each slow step
        :param volumes: whether to install Cinder, too
        :raises SandboxError: when a package cannot be installed
        """
        constraints = CONSTRAINTS.read_text(encoding="utf-8")
        # Of the checkout pip reads setup.cfg; the sources are used in place, so that a
        # service that is started anew runs what was edited.
        setup = (_CHECKOUT / "setup.cfg").read_text(encoding="utf-8")
        made_of = (constraints, *OPENSTACK, sys.version, str(_CHECKOUT), setup)
        wanted = [hashlib.sha256("\n".join(made_of).encode()).hexdigest()]
        if volumes:
            wanted.append(CINDER)
        if self._has(wanted):
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        with textfile.open_lock(self._lock) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._has(wanted[:1]):
                # While pip works, the environment matches neither hash.
                self._stamp.unlink(missing_ok=True)
                tell(f"installing OpenStack into {self.directory} (minutes)")
                command = [sys.executable, "-m", "venv", str(self.directory)]
                running.run(command, log=log)
                self._pip(log, *OPENSTACK)
                shutil.rmtree(self.schemas, ignore_errors=True)
                self._pip(log, "--no-build-isolation", "--editable", str(_CHECKOUT))
                self._stamp.write_text(wanted[0], encoding="utf-8")
            if not self._has(wanted):
                tell(f"installing {CINDER}")
                self._pip(log, CINDER)
                self._stamp.write_text(" ".join(wanted), encoding="utf-8")

    def _has(self, wanted: Sequence[str]) -> bool:
        """Return whether the stamp has all the wanted entries."""
        said = self._stamp.read_text().split() if self._stamp.exists() else []
        return set(wanted) <= set(said)

    def _pip(self, log: Path, *arguments: str) -> None:
        running.run(
            [
                self.program("python"),
                *("-m", "pip", "--disable-pip-version-check", "install"),
                *("--constraint", str(CONSTRAINTS), *arguments),
            ],
            log=log,
        )

# SPDX-License-Identifier: Apache-2.0
"""The virtual environment that all services and the client run in."""

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

# Released together; all else follows from the constraints.
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
    # What the plugin is built with, so that nothing is fetched for that.
    "pip",
    "setuptools",
    "wheel",
    "pbr",
)
CINDER: Final = "cinder"


class Environment:
    """The virtual environment in a directory."""

    def __init__(self, directory: Path) -> None:
        """Know the directory; nothing is made yet."""
        self.directory = directory
        # Where the wheels put their files of configuration.
        self.etc = directory / "etc"
        # Where the tables that this OpenStack makes are kept.
        self.schemas = directory / "schemas"
        # Says what was installed.
        self._stamp = directory / ".nova-perfvm-installed"
        self._lock = directory / ".nova-perfvm-lock"

    def program(self, name: str) -> str:
        """Return the path of a program in it."""
        return str(self.directory / "bin" / name)

    @property
    def is_ours(self) -> bool:
        """Return whether OpenStack was installed into it from here, or is to be."""
        return self._stamp.exists() or self._lock.exists()

    def prepare(
        self, log: Path, tell: Callable[[str], None], *, volumes: bool = False
    ) -> None:
        """Install OpenStack and this package, if they are not there already.

        One sandbox at a time does; another waits for it.

        :param tell: called with what takes time
        :param volumes: whether Cinder is needed, too
        :raises SandboxError: when something cannot be installed
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
                # What is there while pip works is neither the old nor the new.
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
        """Tell whether all that the stamp is to say has been installed."""
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

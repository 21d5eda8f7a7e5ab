# SPDX-License-Identifier: Apache-2.0
"""The virtual environment of all services and the client."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import shutil
import sys
import urllib.parse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import nova_perfvm
from nova_perfvm.documents import textfile
from nova_perfvm.sandbox.processes import running

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
        plugin = _plugin()
        constraints = CONSTRAINTS.read_text(encoding="utf-8")
        made_of = (constraints, *OPENSTACK, sys.version, *plugin, _setup(plugin))
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
                self._pip(log, "--no-build-isolation", *plugin)
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


def _setup(plugin: Sequence[str]) -> str:
    """Return setup.cfg of a checkout: its changes, such as entry points, need pip."""
    setup = Path(plugin[-1]) / "setup.cfg"
    return setup.read_text(encoding="utf-8") if setup.exists() else ""


def _plugin() -> tuple[str, ...]:
    """Return pip's arguments that install this package.

    A checkout is installed as editable, so that a restarted service runs edited code.
    Otherwise pip installs from the source of the present installation.
    """
    checkout = Path(nova_perfvm.__file__).parents[1]
    if (checkout / "setup.cfg").exists():
        return "--editable", str(checkout)
    distribution = importlib.metadata.distribution("nova-perfvm")
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    url = urllib.parse.urlsplit(origin.get("url", ""))
    if url.scheme == "file":
        return (urllib.parse.unquote(url.path),)
    return (f"nova-perfvm=={distribution.version}",)

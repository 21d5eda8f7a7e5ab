# SPDX-License-Identifier: Apache-2.0
"""The virtual environment that all services and the client run in."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import sys
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import nova_perfvm
from nova_perfvm.sandbox.processes import programs, running

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


class Environment:
    """The virtual environment in a directory."""

    def __init__(self, directory: Path) -> None:
        """Know the directory; nothing is made yet."""
        self.directory = directory

    def program(self, name: str) -> str:
        """Return the path of a program in it."""
        return str(self.directory / "bin" / name)

    @property
    def etc(self) -> Path:
        """Where the wheels put their files of configuration."""
        return self.directory / "etc"

    @property
    def schemas(self) -> Path:
        """Where the tables that this OpenStack makes are kept."""
        return self.directory / f"schemas-{_openstack_digest()[:12]}"

    @property
    def is_ours(self) -> bool:
        """Return whether OpenStack was installed into it from here, or is to be."""
        return any(self._stamp(what).exists() for what in ("openstack", "lock"))

    def prepare(self, log: Path, tell: Callable[[str], None]) -> None:
        """Install OpenStack and this package, if they are not there already.

        One sandbox at a time does; another waits for it.

        :param tell: called with what takes time
        :raises SandboxError: when something cannot be installed
        """
        wanted = {"openstack": _openstack_digest(), "plugin": _plugin_digest()}
        if not self._missing(wanted):
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        with self._stamp("lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for what in self._missing(wanted):
                self._install(what, log, tell)
                self._stamp(what).write_text(wanted[what], encoding="utf-8")

    def _missing(self, wanted: Mapping[str, str]) -> list[str]:
        """Return what is not there as its digest says."""
        return [
            what
            for what, digest in wanted.items()
            if not self._stamp(what).exists()
            or self._stamp(what).read_text(encoding="utf-8") != digest
        ]

    def _install(self, what: str, log: Path, tell: Callable[[str], None]) -> None:
        # What is there while pip works is neither the old nor the new.
        self._stamp(what).unlink(missing_ok=True)
        if what == "openstack":
            tell(f"installing OpenStack into {self.directory} (minutes)")
            programs.check_compiler()
            running.run([sys.executable, "-m", "venv", str(self.directory)], log=log)
            self._pip(log, *OPENSTACK)
        else:
            tell("installing nova-perfvm")
            self._pip(log, "--no-build-isolation", *_plugin())

    def _stamp(self, what: str) -> Path:
        """Return a file of ours in it, which says what was installed, say."""
        return self.directory / f".nova-perfvm-{what}"

    def _pip(self, log: Path, *arguments: str) -> None:
        running.run(
            [
                self.program("python"),
                *("-m", "pip", "--disable-pip-version-check", "install"),
                *("--constraint", str(CONSTRAINTS), *arguments),
            ],
            log=log,
        )


def _openstack_digest() -> str:
    made_of = (CONSTRAINTS.read_text(encoding="utf-8"), *OPENSTACK, sys.version)
    return hashlib.sha256("\n".join(made_of).encode()).hexdigest()


def _plugin_digest() -> str:
    """Return a digest of what pip would do anew; the sources are used in place."""
    arguments = _plugin()
    setup = Path(arguments[-1]) / "setup.cfg"
    text = setup.read_text(encoding="utf-8") if setup.exists() else ""
    return hashlib.sha256("\n".join((*arguments, text)).encode()).hexdigest()


def _plugin() -> tuple[str, ...]:
    """Return pip's arguments for this package as it is here.

    A checkout is used in place, so that a service that is started anew runs what
    was edited.  Otherwise it is installed from where it was installed here.
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

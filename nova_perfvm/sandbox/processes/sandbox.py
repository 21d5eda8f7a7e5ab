# SPDX-License-Identifier: Apache-2.0
"""The sandbox's interface for commands and tests."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nova_perfvm.generate.hosts import HostConfig
from nova_perfvm.policy import Policy, loader
from nova_perfvm.sandbox.processes import computes, files, ports, programs, state
from nova_perfvm.sandbox.processes import settings as kept_settings
from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.hostspec import (
    DEFAULT_HOSTS,
    PretendedHost,
    host_configs,
    more_hosts,
    parse_hosts,
)
from nova_perfvm.sandbox.processes.layout import Layout, default_directory
from nova_perfvm.sandbox.processes.policy import sandbox_policy
from nova_perfvm.sandbox.processes.process import Processes, ProcessRecord
from nova_perfvm.sandbox.processes.settings import CLOUD, SandboxSettings
from nova_perfvm.sandbox.processes.starter import Starter

# Prefixes of processes to stop together, group by group: clients before servers.
_STOP_ORDER = (
    (computes.PREFIX,),
    ("nova-", "neutron", "cinder", "glance", "placement", "keystone"),
    ("rabbitmq", "mariadb", "memcached"),
    ("",),
)


class Sandbox:
    """A sandbox: its state directory and its processes."""

    def __init__(
        self,
        directory: str | Path | None = None,
        *,
        environment: str | Path | None = None,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """Set the paths; :meth:`up` creates and starts the sandbox.

        :param directory: the state directory (default: below ~/.cache)
        :param environment: OpenStack's virtual environment, created if missing; several
            sandboxes can share it (default: in the directory)
        :param tell: called with a line for each finished step
        """
        self.layout = Layout(Path(directory or default_directory()).absolute())
        self.environment = Environment(
            Path(environment).absolute() if environment else self.layout.environment
        )
        self.processes = Processes(self.layout)
        self._tell = tell

    @property
    def settings(self) -> SandboxSettings:
        """The settings with which the sandbox was created.

        :raises SandboxError: when the sandbox was never started
        """
        found = kept_settings.load(self.layout.settings)
        if found is None:
            raise SandboxError(
                f"there is no sandbox in {self.layout.directory}: start one with "
                "nova-perfvm sandbox up"
            )
        return found

    def up(
        self,
        hosts: str | None = None,
        policy: str | None = None,
        schedulers: int = 2,
        *,
        volumes: bool = False,
    ) -> None:
        """Start all processes; after a failure none is left running.

        :param hosts: see :func:`nova_perfvm.sandbox.processes.hostspec.parse_hosts`;
            None for the hosts of the last run, or the default
        :param policy: a policy file; None for the policy of the last run, or the
            built-in policy fitted to the hosts
        :param schedulers: number of nova-schedulers
        :param volumes: whether to run Cinder, too; a sandbox with Cinder keeps it
        :raises PerfVMError: when the sandbox runs already, options contradict its data,
            or a process does not start
        """
        settings, chosen = self._settle(hosts, policy, volumes=volumes)
        configs = host_configs(settings.pretended, chosen)
        found = programs.find_programs()
        with state.claim(self.layout):
            self._refuse_running()
            if not self.layout.settings.exists() and self.layout.data.exists():
                # A wipe was interrupted after it removed the settings.
                shutil.rmtree(self.layout.data)
            self.layout.logs.mkdir(parents=True, exist_ok=True)
            log = self.layout.logs / "install.log"
            self.environment.prepare(log, self._tell, volumes=settings.volumes)
            kept_settings.save(settings, self.layout.settings)
            files.write(
                self.layout,
                settings,
                self.environment,
                chosen,
                configs,
                schedulers,
            )
            try:
                starter = self._starter(settings, found)
                starter.start_all(chosen, schedulers, self.connect)
            except BaseException:
                self._tell("failed: stopping what was started")
                self._stop_all()
                raise

    def add(self, hosts: str) -> dict[str, HostConfig]:
        """Start more hosts in a running sandbox; undo all after a failure.

        New hosts are like freshly installed computes: configured by the generator,
        mapped to the cell, and not enrolled.

        :param hosts: see :func:`nova_perfvm.sandbox.processes.hostspec.more_hosts`
        :return: configurations of the new hosts, by the host's name
        :raises PerfVMError: when the sandbox is not up, the policy forbids a host, or
            a host does not start
        """
        there = self.settings
        grown = replace(there, hosts=more_hosts(there.hosts, hosts))
        new = grown.pretended[len(there.pretended) :]
        configs = host_configs(new, loader.load(str(self.layout.policy)))
        with state.claim(self.layout):
            self._refuse_broken(new)
            starter = self._starter(grown, programs.find_programs())
            # A killed command may have left parts of the new hosts.
            starter.take_out(new, self.connect)
            files.write_hosts(self.layout, configs)
            try:
                starter.add(new, self.connect)
                kept_settings.save(grown, self.layout.settings)
            except BaseException:
                self._tell("failed: taking out what was added")
                starter.take_out(new, self.connect)
                raise
        return configs

    def down(self) -> None:
        """Stop all processes; data and logs stay.

        :raises SandboxError: when another command works on the sandbox
        """
        if self.layout.directory.exists():
            with state.claim(self.layout):
                self._stop_all()

    def wipe(self) -> None:
        """Stop all processes, and remove the state directory.

        :raises SandboxError: when the directory is not a sandbox's
        """
        directory = self.layout.directory
        if not directory.exists():
            return
        with state.claim(self.layout):
            self._stop_all()
            state.clear(self.layout)
        with contextlib.suppress(OSError):
            directory.rmdir()

    def status(self) -> list[ProcessRecord]:
        """Return the records of all started processes, until they are stopped."""
        return self.processes.all()

    def start(self, name: str) -> None:
        """Start a stopped or dead process of a running sandbox.

        :raises SandboxError: when the process runs already, or does not start
        """
        self._starter(self.settings, programs.find_programs()).start(name)

    def restart(self, names: Sequence[str]) -> None:
        """Stop processes and start them again, even if they are dead.

        :raises SandboxError: when a name is unknown, or a process does not start
        """
        self.settings  # noqa: B018 - raises where there is no sandbox
        with state.claim(self.layout):
            for name in names:
                self.processes.stop([name])
                self.start(name)
                self._tell(f"restarted {name}")

    def connect(self) -> Any:
        """Return an SDK connection of the administrator."""
        # The command line imports this module, but seldom needs the slow SDK.
        import openstack  # noqa: PLC0415

        connection = openstack.connect(
            load_yaml_config=False, load_envvars=False, **self.settings.cloud
        )
        # Ignore proxies of the environment, too.
        connection.session.session.trust_env = False
        return connection

    def exports(self) -> dict[str, str]:
        """Return the variables with which the client finds the cloud and the policy.

        ``PATH`` is a directory to prepend to the present PATH.  ``PERFVM_SANDBOX`` is
        the state directory, with the services' configuration in ``etc``.  ``no_proxy``
        is the present value plus this machine.
        """
        self.settings  # noqa: B018 - raises where there is no sandbox
        return {
            "OS_CLIENT_CONFIG_FILE": str(self.layout.clouds),
            "OS_CLOUD": CLOUD,
            "PERFVM_POLICY": str(self.layout.policy),
            "PERFVM_SANDBOX": str(self.layout.directory),
            **ports.without_proxies(os.environ),
            "PATH": str(Path(self.environment.program("openstack")).parent),
        }

    def _settle(
        self, hosts: str | None, path: str | None, *, volumes: bool
    ) -> tuple[SandboxSettings, Policy]:
        """Return the saved or new settings, and the policy."""
        kept = kept_settings.load(self.layout.settings)
        volumes = volumes or (kept is not None and kept.volumes)
        if kept is not None and (hosts, path) == (None, None):
            path = str(self.layout.policy)
        hosts = hosts or (kept.hosts if kept else DEFAULT_HOSTS)
        chosen = sandbox_policy(parse_hosts(hosts), path, volumes=volumes)
        if kept is None:
            new = kept_settings.new_settings(hosts, chosen.digest, volumes=volumes)
            return new, chosen
        asked = (hosts, chosen.digest, volumes)
        if (kept.hosts, kept.policy_digest, kept.volumes) != asked:
            how = "with" if kept.volumes else "without"
            raise SandboxError(
                f"{self.layout.directory} has data of a sandbox {how} --volumes, with "
                f"--hosts {kept.hosts} and policy SHA-256 {kept.policy_digest[:12]}: "
                "leave the options out, use another --directory, or wipe it first"
            )
        return kept, chosen

    def _refuse_running(self) -> None:
        if any(record.alive for record in self.status()):
            raise SandboxError(
                f"the sandbox in {self.layout.directory} is up already: take it down "
                "first (nova-perfvm sandbox down)"
            )
        self.processes.sweep(0)

    def _refuse_broken(self, new: Sequence[PretendedHost]) -> None:
        """Refuse a sandbox with dead processes, except those of the new hosts."""
        left = {computes.PREFIX + host.name for host in new}
        alive = {record.name for record in self.status() if record.alive} - left
        directory = self.layout.directory
        if not alive:
            raise SandboxError(
                f"the sandbox in {directory} is down: start it with nova-perfvm "
                "sandbox up, and then --add"
            )
        wanted = {record.name for record in self.status()} - left
        wanted |= {computes.PREFIX + host.name for host in self.settings.pretended}
        if dead := sorted(wanted - alive):
            raise SandboxError(
                f"the sandbox in {directory} has dead processes: nova-perfvm sandbox "
                f"restart {' '.join(dead)}, and then up --add"
            )

    def _starter(self, settings: SandboxSettings, found: programs.Programs) -> Starter:
        return Starter(
            self.layout,
            settings,
            self.environment,
            found,
            self.processes,
            self._tell,
        )

    def _stop_all(self) -> None:
        for prefixes in _STOP_ORDER:
            names = [r.name for r in self.status() if r.name.startswith(prefixes)]
            killed = self.processes.stop(names)
            if killed:
                self._tell(f"had to be killed: {', '.join(killed)}")
            elif names:
                self._tell(f"stopped {', '.join(names)}")
        # Sweep up Erlang's port mapper, and workers whose masters were killed.
        self.processes.sweep(1)

# SPDX-License-Identifier: Apache-2.0
"""The sandbox as commands and tests use it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nova_perfvm.policy import Policy
from nova_perfvm.sandbox.processes import (
    computes,
    policy,
    ports,
    programs,
    state,
)
from nova_perfvm.sandbox.processes import settings as kept_settings
from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.files import Files
from nova_perfvm.sandbox.processes.hostspec import (
    DEFAULT_HOSTS,
    host_configs,
    parse_hosts,
)
from nova_perfvm.sandbox.processes.layout import Layout, default_directory
from nova_perfvm.sandbox.processes.process import Processes, ProcessRecord
from nova_perfvm.sandbox.processes.settings import CLOUD, SandboxSettings
from nova_perfvm.sandbox.processes.starter import Starter

# In this order, each group at once: whoever needs another ends before it.
_STOP_ORDER = (
    (computes.PREFIX, computes.FORK_SERVER),
    ("nova-", "neutron", "glance", "placement", "keystone"),
    ("rabbitmq", "mariadb", "memcached"),
    ("",),
)


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """What is asked of a start.

    :ivar hosts: see :func:`nova_perfvm.sandbox.processes.hostspec.parse_hosts`;
        None for what there is already, or the default
    :ivar policy: a policy file; None for the built-in policy, fitted
    :ivar filters_only: switch Placement's layer off
    """

    hosts: str | None = None
    policy: str | None = None
    filters_only: bool = False
    schedulers: int = 2
    placement_retries: int = 1


class Sandbox:
    """One sandbox: its state directory and what runs of it."""

    def __init__(
        self,
        directory: str | Path | None = None,
        *,
        environment: str | Path | None = None,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """Know where the sandbox is; nothing is made or started.

        :param directory: the state directory (default: below ~/.cache)
        :param environment: OpenStack's virtual environment, made if it is not
            there, for several sandboxes to share (default: in the directory)
        :param tell: called with a line for each step that is done
        """
        self.layout = Layout(Path(directory or default_directory()).absolute())
        self.environment = Environment(
            Path(environment).absolute() if environment else self.layout.environment
        )
        self.processes = Processes(self.layout)
        self._tell = tell

    @property
    def settings(self) -> SandboxSettings:
        """What the sandbox was made with.

        :raises SandboxError: when it was never started
        """
        found = kept_settings.load(self.layout.settings)
        if found is None:
            raise SandboxError(
                f"there is no sandbox in {self.layout.directory}: start one with "
                "nova-perfvm sandbox up"
            )
        return found

    def up(self, options: SandboxOptions | None = None) -> None:
        """Start everything; on failure nothing is left running.

        :raises PerfVMError: when it runs already, an option cannot be met, or
            something does not come up
        """
        options = options or SandboxOptions()
        _check(options)
        state.check_path(self.layout)
        settings, chosen = self._settle(options)
        configs = host_configs(settings.pretended, chosen)
        found = programs.find_programs()
        with state.claim(self.layout):
            self._refuse_running()
            state.discard(self.layout)
            self.layout.logs.mkdir(parents=True, exist_ok=True)
            self.environment.prepare(self.layout.logs / "install.log", self._tell)
            kept_settings.save(settings, self.layout.settings)
            files = Files(self.layout, settings, self.environment)
            files.write(chosen, configs, options.schedulers, options.placement_retries)
            for remark in policy.remarks(chosen):
                self._tell(f"note: {remark}")
            try:
                self._starter(settings, found).start_all(
                    chosen, options.schedulers, self.connect, self._tell
                )
            except BaseException:
                self._tell("failed: stopping what was started")
                self._stop_all()
                raise

    def down(self) -> None:
        """Stop everything that runs; data and logs stay.

        :raises SandboxError: when another command works on the sandbox
        """
        if self.layout.directory.exists():
            with state.claim(self.layout):
                self._stop_all()

    def wipe(self, *, environment: bool = True) -> None:
        """Stop everything and remove the state directory.

        :param environment: remove OpenStack's environment in it, too
        :raises SandboxError: when the directory is no sandbox's
        """
        directory = self.layout.directory
        if not directory.exists():
            return
        with state.claim(self.layout):
            self._stop_all()
            state.clear(self.layout, environment=environment, tell=self._tell)
        with contextlib.suppress(OSError):
            directory.rmdir()

    def status(self) -> list[ProcessRecord]:
        """Return every process that was started and not stopped, dead ones, too."""
        self.processes.reap()
        return self.processes.all()

    def kill(self, name: str) -> ProcessRecord:
        """End a process as a crash would, with its children.

        :raises SandboxError: when it does not run
        """
        return self.processes.kill(name)

    def start(self, name: str) -> None:
        """Start one process of a running sandbox again.

        :raises SandboxError: when it runs already or does not come up
        """
        self._starter(self.settings, programs.find_programs()).start(name)

    def stop(self, name: str) -> None:
        """End one process in good order."""
        self.processes.stop([name])

    def restart(self, names: Sequence[str]) -> None:
        """Stop processes and start them again, dead ones, too.

        :raises SandboxError: when there is none of a name, before any is stopped; or
            one does not come up
        """
        known = {record.name for record in self.status()}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise SandboxError(
                f"no process {', '.join(unknown)} was started in "
                f"{self.layout.directory}: see nova-perfvm sandbox status"
            )
        with state.claim(self.layout):
            for name in names:
                self.stop(name)
                self.start(name)
                self._tell(f"restarted {name}")

    def set_placement_retries(self, retries: int) -> None:
        """Restart Placement with another allocation_conflict_retry_count.

        The next ``up`` sets it again.

        :raises SandboxError: when Placement does not come up
        """
        _check(SandboxOptions(placement_retries=retries))
        files = Files(self.layout, self.settings, self.environment)
        files.write_placement(retries)
        self.stop("placement")
        self.start("placement")

    def connect(self) -> Any:
        """Return an SDK connection of the administrator."""
        # The command line imports this module and seldom needs the SDK.
        import openstack  # noqa: PLC0415

        entry = dict(self.settings.cloud)
        entry.pop("compute_api_version")
        entry.pop("placement_api_version")
        connection = openstack.connect(
            load_yaml_config=False, load_envvars=False, **entry
        )
        # Proxies are variables of the environment, too.
        connection.session.session.trust_env = False
        return connection

    def domain_xml(self, host: str, server_name: str) -> str:
        """Return what Nova's libvirt driver defined for a guest.

        :param server_name: OS-EXT-SRV-ATTR:instance_name
        :raises SandboxError: when the host has no such guest
        """
        path = self.layout.domains(host) / f"{server_name}.xml"
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise SandboxError(f"{host} has no guest {server_name}") from None

    def exports(self) -> dict[str, str]:
        """Return the variables with which the client finds cloud and policy.

        ``PATH`` is what has to be put before it; ``PERFVM_SANDBOX`` is the state
        directory, with the services' configuration in ``etc``; ``no_proxy`` is what
        it was and this machine.
        """
        self.settings  # noqa: B018 - raises where there is no sandbox
        return {
            "OS_CLIENT_CONFIG_FILE": str(self.layout.clouds),
            "OS_CLOUD": CLOUD,
            "PERFVM_POLICY": str(self.layout.policy),
            "PERFVM_SANDBOX": str(self.layout.directory),
            **ports.proxy_exemptions(os.environ),
            "PATH": str(Path(self.environment.program("openstack")).parent),
        }

    def _settle(self, options: SandboxOptions) -> tuple[SandboxSettings, Policy]:
        """Return the settings, kept or new, and the policy."""
        kept = kept_settings.load(self.layout.settings)
        hosts = options.hosts or (kept.hosts if kept else DEFAULT_HOSTS)
        path, filters_only = options.policy, options.filters_only
        if kept is not None and (options.hosts, path) == (None, None):
            path, filters_only = str(self.layout.policy), False
        chosen = policy.sandbox_policy(
            parse_hosts(hosts), path, filters_only=filters_only
        )
        if kept is None:
            new = kept_settings.new_settings(
                hosts, chosen.digest, filters_only=filters_only
            )
            return new, chosen
        same = (kept.hosts, kept.policy_digest) == (hosts, chosen.digest)
        if not same or (options.filters_only and not kept.filters_only):
            raise SandboxError(
                f"{self.layout.directory} has data of a sandbox with --hosts "
                f"{kept.hosts} and policy SHA-256 {kept.policy_digest[:12]}: leave the "
                "options out, use another --directory, or wipe it first"
            )
        return kept, chosen

    def _refuse_running(self) -> None:
        running = [record for record in self.status() if record.alive]
        if running:
            raise SandboxError(
                f"the sandbox in {self.layout.directory} is up already: "
                f"{len(running)} of {len(self.status())} processes run (nova-perfvm "
                "sandbox status); take it down first (nova-perfvm sandbox down)"
            )
        # Workers whose masters were killed, say.
        self.processes.sweep(0)
        kept = kept_settings.load(self.layout.settings)
        taken = ports.taken(kept.ports.values()) if kept else []
        if taken:
            raise SandboxError(
                f"port {', '.join(map(str, taken))} on {ports.ADDRESS} belongs to the "
                "sandbox, and something else listens there: stop that, or wipe the "
                "sandbox, which gets other ports then"
            )

    def _starter(self, settings: SandboxSettings, found: programs.Programs) -> Starter:
        return Starter(self.layout, settings, self.environment, found, self.processes)

    def _stop_all(self) -> None:
        for prefixes in _STOP_ORDER:
            names = [r.name for r in self.status() if r.name.startswith(prefixes)]
            killed = self.processes.stop(names)
            if killed:
                self._tell(f"had to be killed: {', '.join(killed)}")
            elif names:
                self._tell(f"stopped {', '.join(names)}")
        self.processes.sweep()
        self.layout.fork_server.unlink(missing_ok=True)


def _check(options: SandboxOptions) -> None:
    if not 1 <= options.schedulers <= 16:
        raise SandboxError(f"--schedulers {options.schedulers}: expected 1 to 16")
    if not 0 <= options.placement_retries <= 100:
        raise SandboxError(
            f"--placement-retries {options.placement_retries}: expected 0 to 100"
        )

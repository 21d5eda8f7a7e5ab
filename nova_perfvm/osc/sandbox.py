# SPDX-License-Identifier: Apache-2.0
"""``sandbox up``, ``status``, ``restart``, ``down``, ``wipe`` and ``openrc``."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cliff.lister import Lister

from nova_perfvm.generate.hosts import remarks
from nova_perfvm.osc.base import Arguments, PerfVMCommand, Table, argument, flag
from nova_perfvm.sandbox.processes.content import IMAGE, NETWORK
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.hostspec import DEFAULT_HOSTS
from nova_perfvm.sandbox.processes.sandbox import Sandbox

# Another cloud's variables, such as OS_AUTH_URL, would override OS_CLOUD.  The set of
# overriding variables depends on the client's authentication plugins, so every OS_*
# is unset.  zsh's unset needs at least one name; an eval without quotes joins the
# lines, hence the semicolon.
_FORGET: Final = (
    r"unset OS_CLOUD $(env | sed -n 's/^\(OS_[A-Za-z0-9_]*\)=.*/\1/p');" "\n"
)


class SandboxCommand(PerfVMCommand):
    """A command for one sandbox."""

    arguments: Arguments = (
        argument(
            "--directory",
            metavar="DIR",
            help="state directory (default: nova_perfvm/sandbox in $XDG_CACHE_HOME, or "
            "else in ~/.cache)",
        ),
        argument(
            "--environment",
            metavar="DIR",
            help="virtual environment of OpenStack, created if missing; several "
            "sandboxes can share it (default: venv in the state directory)",
        ),
    )

    def sandbox(self, parsed_args: argparse.Namespace) -> Sandbox:
        """Return the sandbox of the command line; its progress goes to stderr."""
        return Sandbox(
            parsed_args.directory,
            environment=parsed_args.environment,
            tell=_timed(self.app.stderr.write),
        )


class Up(SandboxCommand):
    """Start a real OpenStack of separate processes on pretended hosts."""

    arguments = (
        argument(
            "--hosts",
            metavar="SPEC",
            help="[COUNTx]MODE:SHAPE[@CLASS], several joined by commas: "
            "3xdedicated:2x20,1xelastic:2x20x2; CLASS only where the policy has "
            "several pinned classes (default: the hosts of the last run, else "
            f"{DEFAULT_HOSTS})",
        ),
        argument(
            "--policy",
            metavar="FILE",
            help="policy file (default: the built-in policy, fitted to the hosts and, "
            "unless --volumes is given, to a cloud without Cinder)",
        ),
        flag("--volumes", "start Cinder, too; its volumes take no disk space"),
        argument(
            "--add",
            metavar="N|SPEC",
            help="start more hosts in a running sandbox: N hosts like its first one, "
            "or the hosts of a SPEC as for --hosts; they are not enrolled",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        sandbox = self.sandbox(parsed_args)
        if parsed_args.add is not None:
            self._add(sandbox, parsed_args)
            return
        sandbox.up(parsed_args.hosts, parsed_args.policy, volumes=parsed_args.volumes)
        # A virtual environment may not be on PATH.
        openrc = [str(Path(sys.argv[0]).with_name("nova-perfvm")), "sandbox", "openrc"]
        for option in ("directory", "environment"):
            if value := getattr(parsed_args, option):
                openrc += [f"--{option}", value]
        self.app.stdout.write(
            f"The sandbox is up. In a shell:\n"
            f'  eval "$({shlex.join(openrc)})"\n'
            f"  openstack server create --flavor FLAVOR --image {IMAGE} "
            f"--network {NETWORK} NAME\n"
            f"Flavors: openstack flavor list. Logs: {sandbox.layout.logs}\n"
        )

    def _add(self, sandbox: Sandbox, parsed_args: argparse.Namespace) -> None:
        if parsed_args.hosts or parsed_args.policy or parsed_args.volumes:
            raise SandboxError(
                "--add starts hosts in a running sandbox: leave --hosts, --policy and "
                "--volumes out"
            )
        for name, config in sandbox.add(parsed_args.add).items():
            then = remarks.enrolling(config, name)
            self.app.stdout.write(f"{name} is up. {then}".rstrip() + "\n")


class ShowStatus(SandboxCommand, Lister):
    """List the processes of the sandbox; exit with 1 if a process has died."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        sandbox = self.sandbox(parsed_args)
        sandbox.settings  # noqa: B018 - raises where there is no sandbox
        rows = [
            (r.name, r.pid, r.port or "", "running" if r.alive else "dead")
            for r in sandbox.status()
        ]
        self.exit_status = int(any(row[-1] == "dead" for row in rows))
        return ("Service", "PID", "Port", "State"), rows


class Restart(SandboxCommand):
    """Restart processes of the sandbox, which then read their configuration files."""

    arguments = (
        argument(
            "services",
            nargs="+",
            metavar="SERVICE",
            help="name of a process, such as nova-compute-shared1: see sandbox status",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.sandbox(parsed_args).restart(parsed_args.services)


class Down(SandboxCommand):
    """Stop every process of the sandbox; data and logs stay."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.sandbox(parsed_args).down()


class Wipe(SandboxCommand):
    """Stop the sandbox, and remove all files that it has made."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.sandbox(parsed_args).wipe()


class OpenRC(SandboxCommand):
    """Print shell lines after which the openstack client uses the sandbox."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        exports = self.sandbox(parsed_args).exports()
        self.app.stdout.write(_FORGET)
        for name, value in exports.items():
            added = ':"$PATH"' if name == "PATH" else ""
            self.app.stdout.write(f"export {name}={shlex.quote(value)}{added}\n")


def _timed(write: Callable[[str], object]) -> Callable[[str], None]:
    began = time.monotonic()

    def tell(text: str) -> None:
        write(f"[{time.monotonic() - began:6.1f} s] {text}\n")

    return tell

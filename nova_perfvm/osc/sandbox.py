# SPDX-License-Identifier: Apache-2.0
"""``sandbox up``, ``status``, ``down``, ``wipe`` and ``openrc``."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from typing import TYPE_CHECKING, Final

from cliff.lister import Lister

from nova_perfvm.osc.output import PrintableCommand
from nova_perfvm.sandbox.processes.content import IMAGE, NETWORK
from nova_perfvm.sandbox.processes.hostspec import DEFAULT_HOSTS
from nova_perfvm.sandbox.processes.sandbox import Sandbox, SandboxOptions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

# OS_AUTH_URL and others of another cloud would win over OS_CLOUD; which ones do
# depends on the authentication plugins that the client has.  zsh wants one name at
# least; the semicolon is for an eval without quotes, which joins the lines.
_FORGET: Final = (
    r"unset OS_CLOUD $(env | sed -n 's/^\(OS_[A-Za-z0-9_]*\)=.*/\1/p');" "\n"
)


class SandboxCommand(PrintableCommand):
    """A command for one sandbox."""

    auth_required = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add where the sandbox is."""
        parser = super().get_parser(prog_name)
        _where(parser)
        return parser

    def sandbox(self, parsed_args: argparse.Namespace) -> Sandbox:
        """Return the sandbox that the command line names; it tells on stderr."""
        return Sandbox(
            parsed_args.directory,
            environment=parsed_args.environment,
            tell=_timed(self.app.stderr.write),
        )


class Up(SandboxCommand):
    """Start a real OpenStack of separate processes on pretended hosts."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the hosts, the policy, and what is compared."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--hosts",
            metavar="SPEC",
            help="[COUNTx]MODE:SHAPE[@CLASS], several joined by commas: "
            "3xdedicated:2x20,1xelastic:2x20x2; CLASS only where the policy has "
            "several pinned ones (default: those of the last time, else "
            f"{DEFAULT_HOSTS})",
        )
        parser.add_argument(
            "--policy",
            metavar="FILE",
            help="policy file (default: the built-in policy, fitted to the hosts and "
            "to a cloud without Cinder)",
        )
        parser.add_argument(
            "--filters-only",
            action="store_true",
            help="switch Placement's layer off (placement: none), to compare",
        )
        parser.add_argument(
            "--schedulers",
            type=int,
            default=2,
            metavar="N",
            help="nova-scheduler processes (default: %(default)s)",
        )
        parser.add_argument(
            "--placement-retries",
            type=int,
            default=1,
            metavar="N",
            help="[placement]allocation_conflict_retry_count; Placement's own default "
            "is 10 and grants too much (default: %(default)s)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Start it, and say how it is used."""
        sandbox = self.sandbox(parsed_args)
        sandbox.up(
            SandboxOptions(
                hosts=parsed_args.hosts,
                policy=parsed_args.policy,
                filters_only=parsed_args.filters_only,
                schedulers=parsed_args.schedulers,
                placement_retries=parsed_args.placement_retries,
            )
        )
        where = ""
        for option in ("directory", "environment"):
            value = getattr(parsed_args, option)
            where += f" --{option} {shlex.quote(value)}" if value else ""
        self.app.stdout.write(
            f"The sandbox is up. In a shell:\n"
            f'  eval "$({_program()} sandbox openrc{where})"\n'
            f"  openstack server create --flavor FLAVOR --image {IMAGE} "
            f"--network {NETWORK} NAME\n"
            f"Flavors: openstack flavor list. Logs: {sandbox.layout.logs}\n"
        )


class Status(PrintableCommand, Lister):
    """List the processes of the sandbox; 1 if one that was started is dead."""

    auth_required = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add where the sandbox is."""
        parser = super().get_parser(prog_name)
        _where(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Return 1 for an exit status when something that was started is dead."""
        self._dead = False
        return super().run(parsed_args) or int(self._dead)

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterable[tuple[object, ...]]]:
        """Look at the processes."""
        sandbox = Sandbox(parsed_args.directory, environment=parsed_args.environment)
        rows = [
            (
                record.name,
                record.pid,
                record.port or "",
                "running" if record.alive else "dead",
            )
            for record in sandbox.status()
        ]
        self._dead = any(row[-1] == "dead" for row in rows)
        return ("Service", "PID", "Port", "State"), rows


class Down(SandboxCommand):
    """Stop every process of the sandbox; data and logs stay."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Stop it."""
        self.sandbox(parsed_args).down()


class Wipe(SandboxCommand):
    """Stop the sandbox and remove everything that it has made."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add what may stay."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--keep-environment",
            action="store_true",
            help="keep OpenStack's virtual environment, which takes minutes to make",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Remove it."""
        self.sandbox(parsed_args).wipe(environment=not parsed_args.keep_environment)


class OpenRC(SandboxCommand):
    """Print shell lines after which the openstack client uses the sandbox."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print them."""
        exports = self.sandbox(parsed_args).exports()
        self.app.stdout.write(_FORGET)
        for name, value in exports.items():
            added = ':"$PATH"' if name == "PATH" else ""
            self.app.stdout.write(f"export {name}={shlex.quote(value)}{added}\n")


def _where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--directory",
        metavar="DIR",
        help="state directory (default: nova_perfvm/sandbox in $XDG_CACHE_HOME, "
        "without that in ~/.cache)",
    )
    parser.add_argument(
        "--environment",
        metavar="DIR",
        help="virtual environment of OpenStack, made if it is missing, for several "
        "sandboxes to share (default: venv in the state directory)",
    )


def _program() -> str:
    """Return how this program is called; a virtual environment may not be on PATH."""
    return "nova-perfvm" if shutil.which("nova-perfvm") else shlex.quote(sys.argv[0])


def _timed(write: Callable[[str], object]) -> Callable[[str], None]:
    began = time.monotonic()

    def tell(text: str) -> None:
        write(f"[{time.monotonic() - began:6.1f} s] {text}\n")

    return tell

# SPDX-License-Identifier: Apache-2.0
"""What all commands share: the policy, the generators, where text goes."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, Final, TextIO

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.generate.properties import extensions
from nova_perfvm.osc import output
from nova_perfvm.osc.output import PrintableCommand
from nova_perfvm.policy import loader

if TYPE_CHECKING:
    from nova_perfvm.cloud.api import API
    from nova_perfvm.generate.flavors import PolicyFlavor
    from nova_perfvm.policy import Policy

# Of the four exit statuses that monitoring systems know, the one for that.
CANNOT_TELL: Final = 3
# What `nova-perfvm sandbox openrc` sets, too.
POLICY_VARIABLE: Final = "PERFVM_POLICY"


class OfflineCommand(PrintableCommand):
    """A command that needs a policy and no cloud."""

    # The openstack client asks for credentials otherwise.
    auth_required = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add ``--policy`` to the command's options."""
        parser = super().get_parser(prog_name)
        policy_argument(parser)
        return parser

    def policy(self, parsed_args: argparse.Namespace) -> Policy:
        """Return the policy that the command line names.

        :raises PolicyError: with every mistake of the file
        """
        return loader.load(parsed_args.policy)

    def write(self, text: str) -> None:
        """Print a whole text, and know whether it arrived.

        :raises PerfVMError: when the output cannot be written
        """
        try:
            self.app.stdout.write(text)
            self.app.stdout.flush()
        except BrokenPipeError:
            output.discard()
            raise
        except (OSError, UnicodeEncodeError) as exc:
            output.discard()
            raise PerfVMError(output.lost(exc)) from exc


def cloud_of(app: Any) -> API:
    """Return what the plugin module's make_client made."""
    api: API = app.client_manager.perfvm
    return api


def file_path(text: str) -> str:
    """Take a path from the command line.

    :raises argparse.ArgumentTypeError: for an empty one, which would mean the
        current directory; a shell makes it of a variable that is not set
    """
    if not text:
        raise argparse.ArgumentTypeError("an empty path: give one, or leave it out")
    return text


def policy_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--policy``, whose default is the variable PERFVM_POLICY."""
    parser.add_argument(
        "--policy",
        metavar="FILE",
        default=os.environ.get(POLICY_VARIABLE) or None,
        help=f"policy file (default: {POLICY_VARIABLE} of the environment, else the "
        "built-in policy)",
    )


def policy_path(parsed_args: argparse.Namespace) -> str | None:
    """Return the policy file of a command that takes FILE as well as ``--policy``.

    :raises PerfVMError: when both are given
    """
    named: str | None = parsed_args.policy
    if parsed_args.file is None:
        return named
    if named not in {None, os.environ.get(POLICY_VARIABLE)}:
        raise PerfVMError("name the policy file once: FILE, or --policy FILE")
    file: str = parsed_args.file
    return file


def changing_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--dry-run`` and ``--yes``."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--dry-run", action="store_true", help="only show what would be changed"
    )
    group.add_argument("--yes", action="store_true", help="ask no question")


def ask(stream: TextIO) -> bool:
    """Ask whether to proceed.

    :raises PerfVMError: when nobody is there to be asked
    """
    if not sys.stdin.isatty():
        raise PerfVMError("nobody is there to be asked: add --yes, or --dry-run")
    stream.write("Proceed? [y/N] ")
    stream.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def flavor_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what selects the policy's flavors and says how they are."""
    class_argument(parser)
    parser.add_argument(
        "--memory-gb",
        type=int,
        nargs="+",
        action="extend",
        metavar="GB",
        help="flavors of these sizes instead of the policy's, for classes with an "
        "exact number of vCPUs",
    )
    parser.add_argument(
        "--prefix", default="", help="put this before each flavor's name"
    )
    parser.add_argument(
        "--isolated-aggregates",
        action="store_true",
        help="general flavors do not forbid the trait of hosts with slots: for clouds "
        "whose other flavors cannot be changed, and where an isolated aggregate keeps "
        "their VMs off these hosts",
    )


def flavors_of(
    policy: Policy, parsed_args: argparse.Namespace
) -> tuple[PolicyFlavor, ...]:
    """Return the flavors that :func:`flavor_arguments` select.

    :raises FlavorError: when there is none such
    """
    return generate_flavors(
        policy,
        class_name=parsed_args.class_name,
        memory_gb=parsed_args.memory_gb,
        prefix=parsed_args.prefix,
        isolated_aggregates=parsed_args.isolated_aggregates,
        generators=extensions.load(),
    )


def names_of(policy: Policy, prefix: str = "") -> frozenset[str]:
    """Return the names of all flavors of a policy, with and without a prefix."""
    if not policy.lists_flavors:
        return frozenset()
    names = [flavor.name for flavor in generate_flavors(policy)]
    return frozenset([*names, *(prefix + name for name in names)])


def class_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--class``."""
    parser.add_argument(
        "--class",
        dest="class_name",
        metavar="NAME",
        help="only this class (default: all of the policy)",
    )

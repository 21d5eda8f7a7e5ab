# SPDX-License-Identifier: Apache-2.0
"""What all commands share: arguments as values, what they print, the exit status."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final, TextIO

from cliff.command import Command

from nova_perfvm import constants as const
from nova_perfvm.documents import textfile
from nova_perfvm.documents.mistakes import DocumentError, UnreadableFileError
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.recorded_policy import RecordedPolicy, short_digest
from nova_perfvm.osc import output
from nova_perfvm.policy import Policy, loader
from nova_perfvm.printable import first_line

if TYPE_CHECKING:
    # The SDK is for commands that have a cloud.
    from nova_perfvm.cloud.api import API
    from nova_perfvm.generate.options import FileOptions

# What `python -m tests.sandbox openrc` sets, too.
POLICY_VARIABLE: Final = "PERFVM_POLICY"
# As commands call the built-in policy in place of a file.
BUILT_IN: Final = "built-in"

# An argument of a command: called with the parser, it adds itself.
Argument = Callable[[Any], object]
Arguments = tuple[Argument, ...]
# Columns and rows.
Table = tuple[tuple[str, ...], Iterable[tuple[Any, ...]]]


def argument(*names: str, **keywords: Any) -> Argument:
    """Return an argument of argparse.

    The values that its help names, such as ``%(default)s``, are put in here: the
    reference pages print a help as it is.
    """
    if "help" in keywords:
        known = {"default": None, "const": None} | keywords
        keywords["help"] = (keywords["help"] % known).replace("%", "%%")
    return methodcaller("add_argument", *names, **keywords)


def flag(name: str, help: str) -> Argument:  # noqa: A002 - argparse's name
    """Return an option without a value."""
    return argument(name, action="store_true", help=help)


def file_argument(name: str, **keywords: Any) -> Argument:
    """Return an argument that is the path of a file."""
    return argument(name, **{"type": file_path, "metavar": "FILE"} | keywords)


def one_of(*arguments: Argument, required: bool = False) -> Argument:
    """Return arguments of which only one may be given."""

    def add(parser: Any) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for add_to in arguments:
            add_to(group)

    return add


class PerfVMCommand(Command):
    """A command that prints names, and nothing in them that a terminal acts on.

    Every command is one, whatever its format.

    :cvar arguments: its own, behind those of the classes that it is made of
    :ivar exit_status: what it ends with, unless it fails
    """

    arguments: Arguments = ()
    # The openstack client asks for credentials otherwise.
    auth_required = False
    exit_status = 0

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser of the arguments."""
        parser = super().get_parser(prog_name)
        # What changes a cloud is to be said in full.
        parser.allow_abbrev = False
        for owner in reversed(type(self).__mro__):
            for add_to in vars(owner).get("arguments", ()):
                add_to(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command with streams that escape; return the exit status."""
        app = self.app
        kept = app.stdout, app.stderr
        app.stdout = output.standard_output(kept[0])
        app.stderr = output.escaping(kept[1])
        try:
            status = super().run(parsed_args) or self.exit_status
            # What is lost later would be no matter of the command's status.
            app.stdout.flush()
        except ModuleNotFoundError as exc:
            extra = "pages" if exc.name == "jinja2" else "measure"
            install = f"pip install '{const.PACKAGE}[{extra}]'"
            raise PerfVMError(f"{exc}: is it of an extra? {install}") from exc
        else:
            return status
        finally:
            app.stdout, app.stderr = kept

    @property
    def has_cloud(self) -> bool:
        """Whether the openstack client runs the command, not the console script."""
        return getattr(self.app, "client_manager", None) is not None

    def log_in(self) -> None:
        """Ask for credentials, for what only a cloud tells.

        :raises PerfVMError: when there is no cloud, or it takes none
        """
        if not self.has_cloud:
            raise PerfVMError(
                "there is no cloud here: name a snapshot (--snapshot FILE), or use "
                "openstack perfvm"
            )
        self.auth_required = True
        try:
            self.app.prepare_to_run_command(self)
        except Exception as exc:
            # Whatever a plugin for authentication raises.
            raise PerfVMError(f"cannot log in: {first_line(exc)}") from exc

    @property
    def cloud(self) -> API:
        """What the plugin module's make_client made."""
        app: Any = self.app
        api: API = app.client_manager.perfvm
        return api

    def write(self, text: str, path: str | None = None) -> None:
        """Print a whole text, or replace a file by it.

        :raises PerfVMError: when it cannot be written
        """
        if path is not None:
            textfile.replace(path, text)
            return
        self.app.stdout.write(text)
        self.app.stdout.flush()

    def warn(self, text: object) -> None:
        """Print a warning."""
        self.app.stderr.write(f"warning: {text}\n")


def policy_of_environment() -> str | None:
    """Return what the environment names as the policy, None for nothing."""
    return os.environ.get(POLICY_VARIABLE) or None


def read_policy(path: str | None) -> Policy:
    """Return a policy; where it cannot be read, name the variable that names it.

    :raises DocumentError: with every mistake of the file
    """
    try:
        return loader.load(path)
    except UnreadableFileError as exc:
        if path != policy_of_environment():
            raise
        name = f"{path}, from {POLICY_VARIABLE}"
        raise UnreadableFileError(name, exc.reason) from exc


class PolicyCommand(PerfVMCommand):
    """A command that needs a policy."""

    arguments: Arguments = (
        argument(
            "--policy",
            metavar="FILE",
            help=f"policy file, {loader.BUILT_IN_NAME} for the built-in policy "
            f"(default: {POLICY_VARIABLE} of the environment, else the built-in one)",
        ),
    )

    def policy(self, parsed_args: argparse.Namespace) -> Policy:
        """Return the policy that the command line names, or the environment.

        :raises DocumentError: with every mistake of the file
        """
        return self.load_policy(parsed_args.policy)

    def chosen_policy(self, parsed_args: argparse.Namespace) -> Policy:
        """Return the policy to change a cloud by, which somebody has to have named.

        :raises PerfVMError: when nobody has: the built-in one would undo another's
        :raises DocumentError: with every mistake of the file
        """
        if policy_name(parsed_args) is None:
            raise PerfVMError(
                "no policy is named, and this changes the cloud: name the one that "
                f"nova-scheduler has with --policy FILE (or {POLICY_VARIABLE}); if "
                f"that is the built-in one: --policy {loader.BUILT_IN_NAME}"
            )
        return self.policy(parsed_args)

    def load_policy(self, named: str | None, what: str = "policy") -> Policy:
        """Return a policy, and say on standard error which one it is.

        :param named: None for that of the environment, or else the built-in one
        :param what: what the policy is here, in words
        :raises DocumentError: with every mistake of the file
        """
        path = policy_of_environment() if named is None else named
        policy = read_policy(path)
        where = f"sha256 {short_digest(policy.digest)}"
        if named is None and path is not None:
            where += f", from {POLICY_VARIABLE}"
        shown = BUILT_IN if path in {None, loader.BUILT_IN_NAME} else path
        self.app.stderr.write(f"{what}: {shown} ({where})\n")
        return policy

    def compare_policy(
        self,
        _parsed_args: argparse.Namespace,
        policy: Policy,
        recorded: RecordedPolicy | None,
    ) -> None:
        """Warn where the cloud was changed by another policy than this one."""
        if recorded is not None and recorded.digest != policy.digest:
            self.warn(
                f"the cloud was changed by another policy, {recorded}: if that is "
                "nova-scheduler's, name it with --policy"
            )


def policy_name(parsed_args: argparse.Namespace) -> str | None:
    """Return what names the policy: the command line, or else the environment."""
    named: str | None = parsed_args.policy
    return policy_of_environment() if named is None else named


def policy_file(parsed_args: argparse.Namespace) -> str | None:
    """Return the path of the policy's file, None for the built-in policy."""
    named = policy_name(parsed_args)
    return None if named == loader.BUILT_IN_NAME else named


def file_path(text: str) -> str:
    """Take a path from the command line.

    :raises argparse.ArgumentTypeError: for an empty one, which would mean the
        current directory; a shell makes it of a variable that is not set
    """
    if not text:
        raise argparse.ArgumentTypeError("an empty path: give one, or leave it out")
    return text


def positive(text: str) -> float:
    """Take a number above 0 from the command line.

    :raises argparse.ArgumentTypeError: for anything else
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number above 0")
    return value


def count(text: str) -> int:
    """Take a whole number above 0 from the command line.

    :raises argparse.ArgumentTypeError: for anything else
    """
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number above 0")
    return int(text)


POLICY_FILE: Final = argument(
    "file",
    nargs="?",
    metavar="FILE",
    help="policy file (default: that of --policy)",
)


def policy_path(parsed_args: argparse.Namespace) -> str | None:
    """Return what names the policy of a command that takes FILE beside ``--policy``.

    :raises PerfVMError: when both are given
    """
    if parsed_args.file is None:
        return policy_name(parsed_args)
    if parsed_args.policy is not None:
        raise PerfVMError("name the policy file once: FILE, or --policy FILE")
    file: str = parsed_args.file
    return file


def format_argument(formats: Any, help: str, **keywords: Any) -> Argument:  # noqa: A002
    """Return ``--format`` of a command that prints no table."""
    return argument("-f", "--format", choices=tuple(formats), help=help, **keywords)


def class_argument(
    help: str = "only this class (default: all of the policy)",  # noqa: A002
) -> Argument:
    """Return ``--class``."""
    return argument("--class", dest="class_name", metavar="NAME", help=help)


OUTPUT: Final = file_argument(
    "--output", help="write to this file, which is replaced, instead of printing"
)

NOVA_CONF: Final = file_argument(
    "--nova-conf",
    help="copy of nova-scheduler's nova.conf, which no API tells (default: a check "
    "of it is unknown; for all else it is taken to be what the policy needs)",
)
PLACEMENT_CONF: Final = file_argument(
    "--placement-conf",
    help="placement.conf, to judge what no API shows; its database is asked how it "
    "isolates transactions",
)


def options_of(path: str | None) -> FileOptions | None:
    """Return what a configuration file says; None where none is named.

    :raises SettingsError: when the file cannot be read
    """
    if path is None:
        return None
    # oslo.config takes time to load.
    from nova_perfvm.documents.config_file import read_settings  # noqa: PLC0415

    return read_settings(path)


def nova_options(path: str | None) -> dict[str, Any]:
    """Return what checks are told by a nova.conf, and by the policy that it names.

    :returns: keyword arguments of :class:`nova_perfvm.diagnose.audit.Subject`
    :raises SettingsError: when the file cannot be read
    """
    if (found := options_of(path)) is None:
        return {}
    from nova_perfvm.conf import checked_path  # noqa: PLC0415

    enforced: Policy | DocumentError
    try:
        enforced = loader.load(checked_path(found.get(("perfvm", "policy_file"))))
    except DocumentError as exc:
        enforced = exc
    return {"nova_settings": found, "enforced": enforced}


YES: Final = flag("--yes", "ask no question")
CHANGING: Final = one_of(flag("--dry-run", "only show what would be changed"), YES)


def ask(stream: TextIO, otherwise: str = ", or --dry-run") -> bool:
    """Ask whether to proceed.

    :param otherwise: the end of the error that says how to do without an answer
    :raises PerfVMError: when nobody is there to be asked
    """
    if not sys.stdin.isatty():
        raise PerfVMError(f"nobody is there to be asked: add --yes{otherwise}")
    stream.write("Proceed? [y/N] ")
    stream.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}

# SPDX-License-Identifier: Apache-2.0
"""What all commands share: arguments as values, what they print, the exit status."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TextIO

from cliff.command import Command

from nova_perfvm import constants as const
from nova_perfvm.documents import textfile
from nova_perfvm.documents.mistakes import DocumentError, UnreadableFileError
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.recorded_policy import RecordedPolicy, short_digest
from nova_perfvm.osc import options as opt
from nova_perfvm.osc import output
from nova_perfvm.policy import Policy, loader
from nova_perfvm.printable import first_line

if TYPE_CHECKING:
    # The SDK is for commands that have a cloud.
    from nova_perfvm.cloud.api import API
    from nova_perfvm.generate.options import FileOptions

# As commands call the built-in policy in place of a file.
BUILT_IN: Final = "built-in"

# Columns and rows.
Table = tuple[tuple[str, ...], Iterable[tuple[Any, ...]]]


class PerfVMCommand(Command):
    """Base class of all commands: escapes terminal control characters in its output.

    :cvar arguments: the class's own arguments; the parser lists those of its base
        classes first
    :ivar exit_status: the exit status of a command that does not fail
    """

    arguments: opt.Arguments = ()
    # The openstack client asks for credentials otherwise.
    auth_required = False
    exit_status = 0

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        # An abbreviated option could change a cloud by mistake.
        parser.allow_abbrev = False
        for owner in reversed(type(self).__mro__):
            for add_to in vars(owner).get("arguments", ()):
                add_to(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command, escape what it prints, and return the exit status."""
        app = self.app
        kept = app.stdout, app.stderr
        app.stdout = output.standard_output(kept[0])
        app.stderr = output.escaping(kept[1])
        try:
            status = super().run(parsed_args) or self.exit_status
            # Output lost after this line would not change the exit status.
            app.stdout.flush()
        except ModuleNotFoundError as exc:
            extra = "pages" if exc.name == "jinja2" else "measure"
            install = f"pip install '{const.PACKAGE}[{extra}]'"
            raise PerfVMError(f"{exc}: is an extra missing? {install}") from exc
        else:
            return status
        finally:
            app.stdout, app.stderr = kept

    @property
    def has_cloud(self) -> bool:
        """Whether the openstack client runs the command, not the console script."""
        return getattr(self.app, "client_manager", None) is not None

    def log_in(self) -> None:
        """Log in to the cloud with the client's credentials.

        :raises PerfVMError: when ``nova-perfvm`` runs the command, or the login fails
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
            # Authentication plugins raise exceptions of many kinds.
            raise PerfVMError(f"cannot log in: {first_line(exc)}") from exc

    @property
    def cloud(self) -> API:
        """The cloud's API, made by :func:`nova_perfvm.osc.plugin.make_client`."""
        app: Any = self.app
        api: API = app.client_manager.perfvm
        return api

    def write(self, text: str, path: str | None = None) -> None:
        """Print a text, or replace the file at `path` by it.

        :raises PerfVMError: when the file cannot be written
        """
        if path is not None:
            textfile.replace(path, text)
            return
        self.app.stdout.write(text)
        self.app.stdout.flush()

    def save(self, path: str, text: str, said: str) -> None:
        """Write a private file, or print the text for the path "-".

        :param said: description of the file's content, printed after the writing
        :raises PerfVMError: when the file cannot be written
        """
        if path == "-":
            self.write(text)
        else:
            textfile.replace(path, text, private=True)
            self.write(f"{path}: {said}\n")

    def tell(self, *lines: object) -> None:
        """Print lines on standard error, beside the output."""
        for line in lines:
            self.app.stderr.write(f"{line}\n")

    def warn(self, text: object) -> None:
        self.tell(f"warning: {text}")


def policy_of_environment() -> str | None:
    """Return the value of PERFVM_POLICY; None where it is empty or not set."""
    return os.environ.get(opt.POLICY_VARIABLE) or None


def read_policy(path: str | None) -> Policy:
    """Load a policy; an unreadable file's error mentions PERFVM_POLICY if it is there.

    Keys of Nova in the policy are judged by Nova's validators.

    :raises DocumentError: with every mistake of the file
    """
    # Imported here, as few commands read a policy.
    from nova_perfvm.cloud.nova_rules import key_mistakes  # noqa: PLC0415

    try:
        return loader.load(path, key_mistakes)
    except UnreadableFileError as exc:
        if path != policy_of_environment():
            raise
        name = f"{path}, from {opt.POLICY_VARIABLE}"
        raise UnreadableFileError(name, exc.reason) from exc


class PolicyCommand(PerfVMCommand):
    """A command that needs a policy.

    :ivar chosen: the policy by which the command changes the cloud; None before
        :meth:`chosen_policy`
    :ivar recorded: the policy that the cloud records; None before
        :meth:`compare_policy`, or where it records none
    """

    arguments: opt.Arguments = (opt.POLICY,)
    chosen: Policy | None = None
    recorded: RecordedPolicy | None = None

    def policy(self, parsed_args: argparse.Namespace) -> Policy:
        """Return the policy of ``--policy``, of PERFVM_POLICY, or the built-in one.

        :raises DocumentError: with every mistake of the file
        """
        return self.load_policy(parsed_args.policy)

    def chosen_policy(self, parsed_args: argparse.Namespace) -> Policy:
        """Return the policy for a command that changes the cloud; keep it as `chosen`.

        :raises PerfVMError: when neither ``--policy`` nor PERFVM_POLICY names one: the
            built-in policy by default would undo what the cloud's own policy made
        :raises DocumentError: with every mistake of the file
        """
        if policy_name(parsed_args) is None:
            raise PerfVMError(
                "this command changes the cloud, and no policy is named: name "
                f"nova-scheduler's with --policy FILE (or {opt.POLICY_VARIABLE}); if "
                f"nova-scheduler has the built-in policy: --policy "
                f"{loader.BUILT_IN_NAME}"
            )
        self.chosen = self.policy(parsed_args)
        return self.chosen

    def load_policy(self, named: str | None, what: str = "policy") -> Policy:
        """Load a policy, and print its name and hash on standard error.

        :param named: path of the policy; None for PERFVM_POLICY or the built-in policy
        :param what: title of the policy in that line, such as "new policy"
        :raises DocumentError: with every mistake of the file
        """
        path = policy_of_environment() if named is None else named
        policy = read_policy(path)
        where = f"sha256 {short_digest(policy.digest)}"
        if named is None and path is not None:
            where += f", from {opt.POLICY_VARIABLE}"
        shown = BUILT_IN if path in {None, loader.BUILT_IN_NAME} else path
        self.tell(f"{what}: {shown} ({where})")
        return policy

    def compare_policy(
        self,
        parsed_args: argparse.Namespace,
        policy: Policy,
        recorded: RecordedPolicy | None,
    ) -> None:
        """Compare `policy` with the policy recorded on the cloud, and keep the record.

        Warn of another one if the command only reads the cloud by `policy`.

        :raises PerfVMError: when the command changes the cloud by `policy`, the cloud
            records another one, and --policy-changed does not accept that
        """
        self.recorded = recorded
        if recorded is None or recorded.digest == policy.digest:
            return
        if policy is not self.chosen:
            self.warn(
                f"the cloud was changed by another policy, {recorded}: if that is "
                "nova-scheduler's, name it with --policy"
            )
        elif not getattr(parsed_args, "policy_changed", False):
            raise another_policy(parsed_args, policy, recorded)


def policy_name(parsed_args: argparse.Namespace) -> str | None:
    """Return the policy's name: of ``--policy``, or else of PERFVM_POLICY."""
    named: str | None = parsed_args.policy
    return policy_of_environment() if named is None else named


def policy_file(parsed_args: argparse.Namespace) -> str | None:
    """Return the path of the policy's file, None for the built-in policy."""
    named = policy_name(parsed_args)
    return None if named == loader.BUILT_IN_NAME else named


def another_policy(
    parsed_args: argparse.Namespace, policy: Policy, recorded: RecordedPolicy
) -> PerfVMError:
    """Return the error of a change by a policy other than the recorded one."""
    return PerfVMError(
        f"the cloud was changed by another policy, {recorded}, than "
        f"{policy_file(parsed_args) or BUILT_IN} (sha256 "
        f"{short_digest(policy.digest)}): name the recorded policy with --policy, "
        "or record the new one by a command with --policy-changed"
    )


def policy_path(parsed_args: argparse.Namespace) -> str | None:
    """Return the policy's name for commands that take FILE as well as ``--policy``.

    :raises PerfVMError: when the command line has both
    """
    if parsed_args.file is None:
        return policy_name(parsed_args)
    if parsed_args.policy is not None:
        raise PerfVMError("name the policy file once: FILE, or --policy FILE")
    file: str = parsed_args.file
    return file


def options_of(path: str | None) -> FileOptions | None:
    """Return the options of a configuration file; None where `path` is None.

    :raises SettingsError: when the file cannot be read
    """
    if path is None:
        return None
    # oslo.config takes time to load.
    from nova_perfvm.documents.config_file import read_settings  # noqa: PLC0415

    return read_settings(path)


def nova_options(path: str | None) -> dict[str, Any]:
    """Return the options of a nova.conf, and the policy of its ``policy_file``.

    :returns: keyword arguments of :class:`nova_perfvm.diagnose.audit.Subject`; empty
        if `path` is None
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


def ask(stream: TextIO, otherwise: str = ", or --dry-run") -> bool:
    """Ask the operator whether to proceed.

    :param otherwise: end of the error message: options that ask no question
    :raises PerfVMError: when standard input is no terminal
    """
    if not sys.stdin.isatty():
        raise PerfVMError(f"no terminal to ask on: add --yes{otherwise}")
    stream.write("Proceed? [y/N] ")
    stream.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}

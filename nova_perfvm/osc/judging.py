# SPDX-License-Identifier: Apache-2.0
"""Commands that judge a cloud or a snapshot; their exit status is the verdict."""

from __future__ import annotations

import argparse
import logging
import sys
from typing import NoReturn

from cliff.lister import Lister

from nova_perfvm.diagnose.verdicts import SchedulerSettings, settings_for
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.findings import CANNOT_TELL, Level, exit_code
from nova_perfvm.generate import inventory, options
from nova_perfvm.osc import options as opt
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import PerfVMCommand, PolicyCommand, options_of
from nova_perfvm.policy import Policy
from nova_perfvm.printable import first_line, printable

_LOG = logging.getLogger(__name__)


class JudgingCommand(PerfVMCommand):
    """A command whose exit status is its verdict, 0 to 2, or 3 without a verdict.

    :cvar needs_cloud: whether the command always reads a cloud
    :cvar judges: the kind of document that the command judges, so that mistakes in
        it exit with 2, not 3; empty for none
    """

    # The client's login exits with 1 on failure, which would be a verdict: so
    # run() logs in.
    auth_required = False
    needs_cloud = False
    judges = ""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser that exits with 3 for wrong arguments."""
        parser = super().get_parser(prog_name)

        def error(message: str) -> NoReturn:
            parser.print_usage(sys.stderr)
            parser.exit(CANNOT_TELL, f"{parser.prog}: error: {message}\n")

        parser.error = error  # type: ignore[method-assign]
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; return 3 where an error prevents a verdict."""
        try:
            if self.needs_cloud:
                self.log_in()
            return super().run(parsed_args)
        except PerfVMError as exc:
            self.tell(exc)
            judged = isinstance(exc, DocumentError) and exc.kind == self.judges
            return exit_code(Level.FAILURE) if judged else CANNOT_TELL
        except BrokenPipeError:
            raise
        except Exception as exc:  # noqa: BLE001
            # cliff would exit with 1, which stands for warnings of a complete run.
            debug = getattr(self.app_args, "debug", False)
            message = printable(f"{type(exc).__name__}: {first_line(exc)}")
            _LOG.error("%s", message, exc_info=debug)
        return CANNOT_TELL


class JudgingLister(JudgingCommand, PolicyCommand, Lister):
    """A command that lists its findings; the worst one is the exit status."""


class ObservingCommand(PolicyCommand):
    """A command that reads a cloud or a snapshot; a snapshot needs no credentials.

    :cvar keeps_rules: whether the command applies the rules even where nova.conf sets
        ``[perfvm]mode = observe`` or does not enable the filter
    """

    keeps_rules = True

    arguments: opt.Arguments = (opt.INVENTORY, opt.NOVA_CONF)

    def settings(
        self, parsed_args: argparse.Namespace, policy: Policy
    ) -> SchedulerSettings:
        """Return nova-scheduler's settings: of ``--nova-conf``, else of the policy.

        With `keeps_rules` the settings enforce the rules, and the reasons for which the
        file does not are printed.

        :raises SettingsError: when the file cannot be read
        """
        read = options_of(parsed_args.nova_conf)
        if read is not None:
            self.tell(*options.not_enforced(read))
        found = settings_for(policy, read)
        return found.strict if self.keeps_rules else found

    def snapshot(self, parsed_args: argparse.Namespace, policy: Policy) -> Snapshot:
        """Return a snapshot of the cloud or of the saved file; print its gaps.

        :raises PerfVMError: when the file cannot be read, or the cloud fails
        """
        # The inventory before requests to the cloud: a wrong file fails at once.
        cells = None
        if parsed_args.inventory is not None:
            cells = inventory.load(parsed_args.inventory, policy)
        found = snapshots.look_by(self, parsed_args, policy)
        if getattr(parsed_args, "snapshot", None) is not None:
            self.tell(f"snapshot of {found.taken_at}")
        if cells is not None:
            found, remarks = inventory.with_inventory(found, cells)
            self.tell(*remarks)
        return found

    def observed(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Policy, SchedulerSettings, Snapshot]:
        """Return the policy, nova-scheduler's settings and a snapshot.

        :raises PerfVMError: when a file cannot be read, or the cloud fails
        """
        policy = self.policy(parsed_args)
        settings = self.settings(parsed_args, policy)
        return policy, settings, self.snapshot(parsed_args, policy)


class LookingCommand(ObservingCommand):
    """A command with ``--snapshot`` and ``--from-nova-db``."""

    arguments: opt.Arguments = (opt.SOURCE,)


class LookingLister(LookingCommand, JudgingLister):
    """A list of findings of a cloud or a snapshot; the worst is the exit status."""

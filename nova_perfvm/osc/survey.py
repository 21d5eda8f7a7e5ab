# SPDX-License-Identifier: Apache-2.0
"""``perfvm survey``: what a cloud is, and what the project would bring it."""

from __future__ import annotations

import argparse
from typing import Final

from nova_perfvm.changes import recover
from nova_perfvm.diagnose.survey import Survey, survey
from nova_perfvm.diagnose.survey.collected import as_snapshot
from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import (
    Arguments,
    Table,
    argument,
    file_argument,
    one_of,
    policy_name,
)
from nova_perfvm.osc.collect import collected_argument, hypervisors
from nova_perfvm.osc.formats import proposal
from nova_perfvm.osc.formats import survey as page
from nova_perfvm.osc.reports import ReportFormatter, ReportingLister

_COLUMNS: Final = ("Part", "What", "Number", "Details")


class SurveyHTMLFormatter(ReportFormatter):
    """One page for people."""

    render = staticmethod(page.html)


class ShowSurvey(ReportingLister):
    """Show what a cloud is, what it breaks, and what it could hold; change nothing.

    Of a cloud, of a saved snapshot, or of what was collected on hosts.  What the
    credentials may not read is a gap in the report, with the remedy.  Proposes a
    policy.  Exits with 0, or 1 if something was refused or no policy is proposed.
    """

    formatter_namespace = "nova_perfvm.survey.formatter"
    arguments: Arguments = (
        one_of(
            snapshots.SNAPSHOT,
            collected_argument("once for each host"),
            snapshots.NOVA_DB,
        ),
        argument(
            "--vcpus",
            type=int,
            metavar="N",
            help="propose a class of VMs of N vCPUs (default: the largest size that "
            "owns a tenth of all pinned CPUs, or else that hosts have room for)",
        ),
        file_argument("--policy-out", help="write the proposed policy there"),
    )

    def snapshot(self, parsed_args: argparse.Namespace) -> Snapshot:
        """Return what the cloud shows, or files do."""
        if parsed_args.collected:
            return as_snapshot(hypervisors(parsed_args))
        return snapshots.look(
            self, parsed_args.snapshot, nova_conf=parsed_args.from_nova_db
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Look, propose, judge; write the policy."""
        # First, as a mistake there shows at once.
        policy = None
        if parsed_args.policy_out or parsed_args.vcpus:
            if parsed_args.policy is not None:
                raise PerfVMError(
                    "--policy is the policy to judge by, and none is proposed beside "
                    "it: leave it out, or --vcpus and --policy-out"
                )
        elif policy_name(parsed_args) is not None:
            policy = self.policy(parsed_args)
        seen = self.snapshot(parsed_args)
        found = survey(seen, policy, parsed_args.vcpus)
        won = None
        if found.policy is not None and found.slots.unfit:
            won = recover.recovery(found.policy, seen)
        if parsed_args.policy_out is not None:
            self._write(found, parsed_args.policy_out)
        parsed_args.report = found, won
        self.exit_status = 1 if seen.gaps or found.policy is None else 0
        return _COLUMNS, list(page.rows((found, won)))

    def _write(self, found: Survey, path: str) -> None:
        """Write the proposed policy, once it is proved.

        :raises PerfVMError: when there is none, or it cannot be written
        """
        if found.proposal is None:
            raise PerfVMError(f"no policy is written: {found.not_proposed}")
        text = proposal.as_file(found.proposal)
        textfile.replace(path, text)
        self.app.stderr.write(f"{path}: the policy that is proposed\n")

    def summary(self, report: page.Report) -> str:
        """Say in one line what was found."""
        return page.headline(report[0])

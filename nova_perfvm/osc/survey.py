# SPDX-License-Identifier: Apache-2.0
"""``perfvm survey``: a cloud's hosts, pinned VMs and slots, and a proposed policy."""

from __future__ import annotations

import argparse
from typing import Final

from nova_perfvm.changes import recover
from nova_perfvm.cloud.host_nodes import hypervisors
from nova_perfvm.diagnose.formats import proposal
from nova_perfvm.diagnose.survey import Survey, survey
from nova_perfvm.diagnose.survey.collected import as_snapshot
from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.osc import options as opt
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import Table, policy_name
from nova_perfvm.osc.formats import survey as page
from nova_perfvm.osc.output import ProgressLine
from nova_perfvm.osc.reports import ReportFormatter, ReportingLister
from nova_perfvm.policy import TYPE_TO_CHOOSE

_COLUMNS: Final = ("Part", "What", "Number", "Details")


class SurveyHTMLFormatter(ReportFormatter):
    """An HTML page."""

    render = staticmethod(page.html)


class ShowSurvey(ReportingLister):
    """Show a cloud's hosts, pinned VMs, violations and slots; change nothing.

    Reads a cloud, a saved snapshot, or files collected on hosts, and proposes a policy.
    Facts that the credentials may not read are gaps in the report, with a remedy.
    Exits with 1 if a service refused or did not answer, or no policy is proposed.
    """

    formatter_namespace = "nova_perfvm.survey.formatter"
    arguments: opt.Arguments = (
        opt.one_of(
            opt.SNAPSHOT,
            opt.collected("repeat it for each host"),
            opt.NOVA_DB,
        ),
        opt.option(
            "--vcpus N",
            "propose a class of VMs of N vCPUs (default: the largest size that "
            "owns a tenth of all pinned CPUs, or else a size that fits the hosts)",
            type=opt.count,
        ),
        opt.MAX_RATIO,
        opt.file("--policy-out", "write the proposed policy to this file"),
    )

    def snapshot(self, parsed_args: argparse.Namespace) -> Snapshot:
        if parsed_args.collected:
            return as_snapshot(hypervisors(parsed_args.collected))
        return snapshots.look(
            self, parsed_args.snapshot, nova_conf=parsed_args.from_nova_db
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        # Arguments before requests to the cloud: a mistake fails at once.
        policy = None
        if parsed_args.policy_out or parsed_args.vcpus:
            if parsed_args.policy is not None:
                raise PerfVMError(
                    "--policy names the policy to judge by; a policy is proposed only "
                    "without it: leave out --policy, or --vcpus and --policy-out"
                )
        elif policy_name(parsed_args) is not None:
            policy = self.policy(parsed_args)
        seen = self.snapshot(parsed_args)
        found = survey(seen, policy, parsed_args.vcpus)
        report, most = page.SurveyReport(found), parsed_args.max_ratio
        if found.policy is not None:
            won = recover.recovery(found.policy, seen) if found.slots.unfit else None
            with ProgressLine() as progress:
                emptied = recover.convertible(
                    found.policy, seen, found.to_convert, most, progress
                )
            report = page.SurveyReport(found, won, emptied, most)
            # The notes of the last one are about all hosts.
            self.tell(*(emptied[-1].notes if emptied else ()))
        if parsed_args.policy_out is not None:
            self._write(found, parsed_args.policy_out)
        parsed_args.report = report
        self.exit_status = 1 if seen.gaps or found.policy is None else 0
        return _COLUMNS, list(page.rows(report))

    def _write(self, found: Survey, path: str) -> None:
        """Write the proposed policy, if ``policy check`` finds no mistake in it.

        :raises PerfVMError: when no policy is proposed, the policy is not valid, or
            the file cannot be written
        """
        if found.proposal is None:
            raise PerfVMError(f"no policy is written: {found.not_proposed}")
        text = proposal.as_file(found.proposal)
        textfile.replace(path, text)
        self.tell(f"{path}: the proposed policy")
        if TYPE_TO_CHOOSE in text:
            why = found.proposal.why["volume_type"]
            self.tell(f"{path}: write the volume_type before flavor sync: {why}")

    def summary(self, report: page.SurveyReport) -> str:
        return page.headline(report)

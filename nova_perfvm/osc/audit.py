# SPDX-License-Identifier: Apache-2.0
"""``perfvm audit``: what slipped past, and what to do about it."""

from __future__ import annotations

import argparse
from typing import Final

from nova_perfvm.cloud import placement_database
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import Report
from nova_perfvm.diagnose.audit.subject import STUCK_AFTER_MIN
from nova_perfvm.facts.recorded_policy import recorded
from nova_perfvm.generate.properties import extensions
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import Arguments, Table, argument, file_argument, flag
from nova_perfvm.osc.formats import monitoring, page
from nova_perfvm.osc.reports import ReportFormatter, ReportingLister

_COLUMNS: Final = ("Code", "Severity", "Subject", "Evidence", "Remedy")


class HTMLFormatter(ReportFormatter):
    """One page for people."""

    render = staticmethod(page.html)


class AuditJUnitFormatter(ReportFormatter):
    """XML for what runs tests."""

    render = staticmethod(monitoring.junit)


class AuditPrometheusFormatter(ReportFormatter):
    """Metrics for node_exporter's textfile collector."""

    render = staticmethod(monitoring.prometheus)


def _arguments(*, snapshot_required: bool) -> Arguments:
    return (
        file_argument(
            "--snapshot",
            required=snapshot_required,
            help="audit a saved snapshot, - for standard input",
        ),
        file_argument(
            "--placement-conf",
            help="placement.conf, to judge what no API shows; its database is asked "
            "how it isolates transactions",
        ),
        argument(
            "--stuck-after",
            type=int,
            metavar="MINUTES",
            default=STUCK_AFTER_MIN,
            help="take a server for stuck with which Nova has been busy so long "
            "(default: %(default)s)",
        ),
        flag("--strict", "exit with 1 for what is unknown, too"),
    )


class AuditCommand(ReportingLister):
    """A command that judges a snapshot, and prints a report."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Look at the cloud, or at the snapshot, and judge it."""
        policy = self.policy(parsed_args)
        settings = database = None
        if parsed_args.placement_conf is not None:
            # Only here is oslo.config needed.
            from nova_perfvm.cloud.preflight import read_settings  # noqa: PLC0415

            settings = read_settings(parsed_args.placement_conf)
            database = placement_database.read(parsed_args.placement_conf)
        path = parsed_args.snapshot
        seen = snapshots.take(self.app) if path is None else snapshots.read(path)
        self.compare_policy(parsed_args, policy, recorded(seen.aggregates))
        if seen.policy_digest not in {None, policy.digest}:
            self.warn(
                "the snapshot was taken with another policy "
                f"({seen.policy_digest}): name that with --policy"
            )
        known = (policy, seen, settings, extensions.load())
        report = audit.run(audit.Subject(*known, parsed_args.stuck_after, database))
        parsed_args.report = report
        self.exit_status = report.exit_code(strict=parsed_args.strict)
        return _COLUMNS, [
            (f.code, f.severity.value, f.subject, f.evidence, f.remedy)
            for f in report.findings
        ]

    def summary(self, report: Report) -> str:
        """Say in one line what was found."""
        counts = ", ".join(
            f"{report.count(severity)} {severity.value}"
            for severity in reversed(audit.Severity)
        )
        return (
            f"{len(report.results)} checks on {report.hosts} host(s) and "
            f"{report.servers} server(s): {counts}"
        )

    @property
    def formatter_namespace(self) -> str:
        """Name the entry points: the client's own formats, and reports."""
        return "nova_perfvm.audit.formatter"


class Audit(AuditCommand):
    """Find what violates the policy, by whatever way it came.

    Exits with 0 if nothing is found, 1 for warnings, 2 for what is critical, 3 if
    it could not be made.
    """

    arguments = _arguments(snapshot_required=False)


class AuditOffline(AuditCommand):
    """Find what violates the policy in a saved snapshot.

    Exits with 0 if nothing is found, 1 for warnings, 2 for what is critical, 3 if
    it could not be made.
    """

    auth_required = False
    arguments = _arguments(snapshot_required=True)

# SPDX-License-Identifier: Apache-2.0
"""``perfvm audit``: what slipped past, and what to do about it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

from cliff.formatters.base import ListFormatter

from nova_perfvm.cloud import placement_database
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit.subject import STUCK_AFTER_MIN
from nova_perfvm.generate.properties import extensions
from nova_perfvm.osc import output
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import file_path, policy_argument
from nova_perfvm.osc.checks import JudgingLister
from nova_perfvm.osc.formats import monitoring, page
from nova_perfvm.policy import loader

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from nova_perfvm.diagnose.audit import Finding, Report
    from nova_perfvm.facts.snapshot import Snapshot

_COLUMNS: Final = ("Code", "Severity", "Subject", "Evidence", "Remedy")


class ReportFormatter(ListFormatter):
    """Prints the whole report, not the rows of a table."""

    render: Callable[[Report], str]

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing."""

    def emit_list(
        self,
        column_names: Sequence[str],  # noqa: ARG002 - cliff's signature
        data: Iterable[Any],  # noqa: ARG002
        stdout: Any,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Print the report that the command has left."""
        stdout.write(type(self).render(parsed_args.report))


class HTMLFormatter(ReportFormatter):
    """One page for people."""

    render = staticmethod(page.html)


class JUnitFormatter(ReportFormatter):
    """XML for what runs tests."""

    render = staticmethod(monitoring.junit)


class PrometheusFormatter(ReportFormatter):
    """Metrics for node_exporter's textfile collector."""

    render = staticmethod(monitoring.prometheus)


class Audit(JudgingLister):
    """Find what violates the policy, by whatever way it came.

    Exits with 0 if nothing is found, 1 for warnings, 2 for what is critical, 3 if
    it could not be made.
    """

    snapshot_required = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the files, and what counts."""
        parser = super().get_parser(prog_name)
        policy_argument(parser)
        parser.add_argument(
            "--snapshot",
            type=file_path,
            metavar="FILE",
            required=self.snapshot_required,
            help="audit a saved snapshot, - for standard input",
        )
        parser.add_argument(
            "--placement-conf",
            type=file_path,
            metavar="FILE",
            help="placement.conf, to judge what no API shows; its database is asked "
            "how it isolates transactions",
        )
        parser.add_argument(
            "--stuck-after",
            type=int,
            metavar="MINUTES",
            default=STUCK_AFTER_MIN,
            help="take a server for stuck with which Nova has been busy so long "
            "(default: %(default)s)",
        )
        parser.add_argument(
            "--strict", action="store_true", help="exit with 1 for what is unknown, too"
        )
        parser.add_argument(
            "--output",
            type=file_path,
            metavar="FILE",
            help="replace this file as a whole instead of printing",
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterable[tuple[str, ...]]]:
        """Look at the cloud, or at the snapshot, and judge it."""
        policy = loader.load(parsed_args.policy)
        settings = database = None
        if parsed_args.placement_conf is not None:
            # Only here is oslo.config needed.
            from nova_perfvm.cloud.preflight import read_settings  # noqa: PLC0415

            settings = read_settings(parsed_args.placement_conf)
            database = placement_database.read(parsed_args.placement_conf)
        seen = self._snapshot(parsed_args.snapshot)
        if seen.policy_digest not in {None, policy.digest}:
            self.app.stderr.write(
                "warning: the snapshot was taken with another policy "
                f"({seen.policy_digest}): name that with --policy\n"
            )
        subject = audit.Subject(
            policy,
            seen,
            settings,
            extensions.load(),
            parsed_args.stuck_after,
            database,
        )
        report = audit.run(subject)
        parsed_args.report = report
        self.judged(report.exit_code(strict=parsed_args.strict))
        return _COLUMNS, [_row(finding) for finding in report.findings]

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Any, data: Any
    ) -> int:
        """Print, or write to the file, and say in one line what was found."""
        if parsed_args.output is None:
            super().produce_output(parsed_args, column_names, data)
        else:
            kept, text = self.app.stdout, io.StringIO()
            self.app.stdout = output.escaping(text)
            try:
                super().produce_output(parsed_args, column_names, data)
            finally:
                self.app.stdout = kept
            snapshots.write_whole(parsed_args.output, text.getvalue())
        self.app.stderr.write(_summary(parsed_args.report))
        return 0

    @property
    def formatter_namespace(self) -> str:
        """Name the entry points: the client's own formats, and reports."""
        return "nova_perfvm.audit.formatter"

    def _snapshot(self, path: str | None) -> Snapshot:
        if path is None:
            return snapshots.take(self.app)
        return snapshots.read(path)


class AuditOffline(Audit):
    """Find what violates the policy in a saved snapshot.

    Exits with 0 if nothing is found, 1 for warnings, 2 for what is critical, 3 if
    it could not be made.
    """

    auth_required = False
    snapshot_required = True


def _row(finding: Finding) -> tuple[str, ...]:
    return (
        finding.code,
        finding.severity.value,
        finding.subject,
        finding.evidence,
        finding.remedy,
    )


def _summary(report: Report) -> str:
    counts = ", ".join(
        f"{report.count(severity)} {severity.value}"
        for severity in reversed(audit.Severity)
    )
    return (
        f"{len(report.results)} checks on {report.hosts} host(s) and "
        f"{report.servers} server(s): {counts}\n"
    )

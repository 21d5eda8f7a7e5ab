# SPDX-License-Identifier: Apache-2.0
"""Commands that end with a report: lines for people, or a document of all findings."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from typing import Any, ClassVar, Final

from cliff.formatters.base import ListFormatter
from cliff.formatters.table import TableFormatter

from nova_perfvm.documents import textfile
from nova_perfvm.findings import Report
from nova_perfvm.osc import output
from nova_perfvm.osc.base import OUTPUT, Arguments, Table, flag
from nova_perfvm.osc.formats import junit, monitoring, page, text
from nova_perfvm.osc.judging import JudgingLister

# The entry points of the client's own formats, of which the one for people prints
# findings as lines; and beside them of documents.
LINES: Final = "nova_perfvm.findings.formatter"
FORMATS: Final = "nova_perfvm.report.formatter"
STRICT: Final = flag("--strict", "exit with 1 for what is unknown, too")


class ReportFormatter(ListFormatter):
    """Prints the whole report, not the rows of a table."""

    render: Callable[[Any], str]

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing."""

    def emit_list(self, *arguments: Any) -> None:
        """Print the report that the command has left."""
        *_, stdout, parsed_args = arguments
        stdout.write(type(self).render(parsed_args.report))


class FindingsFormatter(TableFormatter):
    """Lines for people; a table, if they choose its columns."""

    def emit_list(self, *arguments: Any) -> None:
        """Print the findings that the command has left, to the terminal's width."""
        *_, stdout, parsed_args = arguments
        if parsed_args.columns:
            super().emit_list(*arguments)
            return
        found = parsed_args.report.findings
        stdout.write(text.findings(found, text.width(stdout)))


class HTMLFormatter(ReportFormatter):
    """One page for people."""

    render = staticmethod(page.html)


class JUnitFormatter(ReportFormatter):
    """XML for what runs tests."""

    render = staticmethod(junit.junit)


class PrometheusFormatter(ReportFormatter):
    """Metrics for node_exporter's textfile collector."""

    render = staticmethod(monitoring.prometheus)


class ReportingLister(JudgingLister):
    """A command that judges, and leaves its report in ``parsed_args.report``."""

    arguments: Arguments = (OUTPUT,)

    def summary(self, report: Any) -> str:
        """Say in one line what was found."""
        raise NotImplementedError

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Any, data: Any
    ) -> int:
        """Print, or write to the file, and say in one line what was found."""
        if parsed_args.output is None:
            super().produce_output(parsed_args, column_names, data)
        else:
            kept, written = self.app.stdout, io.StringIO()
            self.app.stdout = output.escaping(written)
            try:
                super().produce_output(parsed_args, column_names, data)
            finally:
                self.app.stdout = kept
            textfile.replace(parsed_args.output, written.getvalue())
        self.app.stderr.write(f"{self.summary(parsed_args.report)}\n")
        return 0


class FindingsLister(ReportingLister):
    """A command that lists what checks found.

    :cvar columns: of what is no line for people, each a member of a finding
    """

    formatter_namespace = LINES
    columns: ClassVar[tuple[str, ...]] = (
        "Code",
        "Level",
        "Subject",
        "Observed",
        "Remedy",
    )

    def reported(self, parsed_args: argparse.Namespace, report: Report) -> Table:
        """Return the table of a report, worst first, and keep the exit status.

        Without ``--strict`` among its arguments a command takes what is unknown for a
        warning.
        """
        parsed_args.report = report
        strict = getattr(parsed_args, "strict", True)
        self.exit_status = report.exit_code(strict=strict)
        return self.columns, [
            tuple(str(getattr(one, name.lower())) for name in self.columns)
            for one in report.findings
        ]

    def title(self, report: Any) -> str:
        """Say what was checked."""
        return f"{len(report.results)} checks"

    def summary(self, report: Any) -> str:
        """Say in one line what was found."""
        return f"{self.title(report)}: {report.counts}"

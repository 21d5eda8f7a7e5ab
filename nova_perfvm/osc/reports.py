# SPDX-License-Identifier: Apache-2.0
"""Commands that print a report: lines for people, or a document of all findings."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from typing import Any, ClassVar, Final

from cliff.formatters.base import ListFormatter
from cliff.formatters.table import TableFormatter

from nova_perfvm.diagnose.formats import junit, page, text
from nova_perfvm.documents import textfile
from nova_perfvm.findings import Report
from nova_perfvm.osc import options as opt
from nova_perfvm.osc import output
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.formats import monitoring
from nova_perfvm.osc.judging import JudgingLister

# Namespaces of entry points of formatters.  Both have cliff's formats, with lines of
# findings in place of its table; the second one adds HTML, JUnit and Prometheus.
LINES: Final = "nova_perfvm.findings.formatter"
FORMATS: Final = "nova_perfvm.report.formatter"


class ReportFormatter(ListFormatter):
    """A format that prints the whole report instead of a table's rows.

    :cvar render: returns a report as text
    """

    render: Callable[[Any], str]

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add no options."""

    def emit_list(self, *arguments: Any) -> None:
        *_, stdout, parsed_args = arguments
        stdout.write(type(self).render(parsed_args.report))


class FindingsFormatter(TableFormatter):
    """Lines of text; a table where ``-c`` selects columns."""

    def emit_list(self, *arguments: Any) -> None:
        *_, stdout, parsed_args = arguments
        if parsed_args.columns:
            super().emit_list(*arguments)
            return
        found = parsed_args.report.findings
        stdout.write(text.findings(found, text.width(stdout)))


class HTMLFormatter(ReportFormatter):
    """An HTML page."""

    render = staticmethod(page.html)


class JUnitFormatter(ReportFormatter):
    """JUnit's XML, which CI systems read."""

    render = staticmethod(junit.junit)


class PrometheusFormatter(ReportFormatter):
    """Metrics for node_exporter's textfile collector."""

    render = staticmethod(monitoring.prometheus)


class ReportingLister(JudgingLister):
    """A judging command that stores its report in ``parsed_args.report``."""

    arguments: opt.Arguments = (opt.OUTPUT,)

    def summary(self, report: Any) -> str:
        """Return one line that sums up the report."""
        raise NotImplementedError

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Any, data: Any
    ) -> int:
        """Print the report, or write it to ``--output``; print the summary."""
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
        self.tell(self.summary(parsed_args.report))
        return 0


class FindingsLister(ReportingLister):
    """A command that lists the findings of checks.

    :cvar columns: columns of tables, CSV and JSON, each an attribute of a finding
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
        """Return the report's table, worst findings first; set the exit status.

        A command without the option ``--strict`` counts unknown results as warnings.
        """
        parsed_args.report = report
        strict = getattr(parsed_args, "strict", True)
        self.exit_status = report.exit_code(strict=strict)
        return self.columns, [
            tuple(str(getattr(one, name.lower())) for name in self.columns)
            for one in report.findings
        ]

    def title(self, report: Any) -> str:
        return f"{len(report.results)} checks"

    def summary(self, report: Any) -> str:
        return f"{self.title(report)}: {report.counts}"

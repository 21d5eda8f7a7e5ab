# SPDX-License-Identifier: Apache-2.0
"""Commands that end with a report: a table of findings, or a document of them all."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from typing import Any

from cliff.formatters.base import ListFormatter

from nova_perfvm.documents import textfile
from nova_perfvm.osc import output
from nova_perfvm.osc.base import OUTPUT, Arguments
from nova_perfvm.osc.judging import JudgingLister


class ReportFormatter(ListFormatter):
    """Prints the whole report, not the rows of a table."""

    render: Callable[[Any], str]

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing."""

    def emit_list(self, *arguments: Any) -> None:
        """Print the report that the command has left."""
        *_, stdout, parsed_args = arguments
        stdout.write(type(self).render(parsed_args.report))


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
            kept, text = self.app.stdout, io.StringIO()
            self.app.stdout = output.escaping(text)
            try:
                super().produce_output(parsed_args, column_names, data)
            finally:
                self.app.stdout = kept
            textfile.replace(parsed_args.output, text.getvalue())
        self.app.stderr.write(f"{self.summary(parsed_args.report)}\n")
        return 0

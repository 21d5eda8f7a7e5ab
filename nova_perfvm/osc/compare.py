# SPDX-License-Identifier: Apache-2.0
"""``bench compare``: what measurements say, in a table and on a page."""

from __future__ import annotations

import argparse
from typing import Any

from cliff.lister import Lister

from nova_perfvm.documents import textfile
from nova_perfvm.findings import CANNOT_TELL, CheckFindings, Report
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.judging import JudgingCommand
from nova_perfvm.osc.reports import LINES


class Compare(JudgingCommand, Lister):
    """Compare VMs with their host, metric by metric, and with fewer VMs or servers.

    Vs host divides a VM's value by that of a run on the host, and vs share by the
    part of the host's that each VM can have. A star marks the ratio that is held
    against the target, which alone is printed for people: vs share for network and
    disk, vs host for all else. In brackets are 95 % intervals. Scaling is what VMs at
    once do together, by what one does alone; and what a growing number of servers does.
    Whatever the ratios, they are measured, not a proof: it exits with 3.
    """

    formatter_namespace = LINES
    arguments = (
        opt.file(
            "files",
            "measurements of bench run or bench import, loads of a service, or "
            "records of proofs",
            nargs="+",
        ),
        opt.option(
            "--target RATIO",
            "least part of the expected throughput (default: %(default)s)",
            type=opt.positive,
            default=0.70,
        ),
        opt.option(
            "--latency-target RATIO",
            "most times of the host's latency (default: %(default)s)",
            type=opt.positive,
            default=2.0,
        ),
        opt.option(
            "--vms N",
            "VMs that share the host (default: as many as ran at once)",
            type=opt.count,
        ),
        opt.file(
            "--output", "HTML to write: the same with plots, which needs no network"
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Compare, and write the page that is asked for."""
        # SciPy is of the extra [measure].
        from nova_perfvm.measure.report import answer, content, page, table  # noqa: PLC0415

        found = content.read(
            parsed_args.files,
            target=parsed_args.target,
            latency_target=parsed_args.latency_target,
            vms=parsed_args.vms,
        )
        if parsed_args.output is not None:
            textfile.replace(parsed_args.output, page.html(found))
        self.exit_status = CANNOT_TELL
        for remark in found.remarks:
            self.warn(remark)
        parsed_args.report = Report(
            tuple(CheckFindings(one.code, (one,)) for one in table.findings(found)), ""
        )
        said = answer.answer(found.comparisons) if found.comparisons else ""
        self._answer = ": ".join(filter(None, (answer.MEASURED, said)))
        return table.COLUMNS, table.rows(found)

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Any, data: Any
    ) -> int:
        """Print, and say in one line which part of the host VMs reach."""
        super().produce_output(parsed_args, column_names, data)
        self.tell(self._answer)
        return 0

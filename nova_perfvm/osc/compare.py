# SPDX-License-Identifier: Apache-2.0
"""``bench compare``: what measurements say, in a table and on a page."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from cliff.lister import Lister

from nova_perfvm.documents import textfile
from nova_perfvm.findings import CANNOT_TELL, CheckFindings, Finding, Report
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.judging import JudgingCommand
from nova_perfvm.osc.reports import LINES

if TYPE_CHECKING:
    from nova_perfvm.measure.statistics.compare import Comparison
    from nova_perfvm.measure.statistics.scaling import ScalingFinding

_COLUMNS: Final = (
    "Metric",
    "Threads",
    "VM",
    "At once",
    "Vs host",
    "Vs share",
    "Scaling",
    "Target",
    "Verdict",
    "Reason",
)


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
            "records of proofs, of earlier versions, too",
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
        from nova_perfvm.measure.report import answer, content, page  # noqa: PLC0415

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
        findings = [
            *map(answer.finding, found.comparisons),
            *map(_finding, found.scaling),
        ]
        parsed_args.report = Report(
            tuple(CheckFindings(one.code, (one,)) for one in findings), ""
        )
        said = answer.answer(found.comparisons) if found.comparisons else ""
        self._answer = ": ".join(filter(None, (answer.MEASURED, said)))
        rows = [*map(_row, found.comparisons), *map(_scaling_row, found.scaling)]
        return _COLUMNS, rows

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Any, data: Any
    ) -> int:
        """Print, and say in one line which part of the host VMs reach."""
        super().produce_output(parsed_args, column_names, data)
        self.app.stderr.write(f"{self._answer}\n")
        return 0


def _row(found: Comparison) -> tuple[Any, ...]:
    # SciPy is of the extra [measure].
    from nova_perfvm.measure.report import answer  # noqa: PLC0415
    from nova_perfvm.measure.statistics.verdict import OF_RATIO  # noqa: PLC0415

    ratios = [
        answer.ratio(value) + ("*" if name == found.against and value else "")
        for name, value in (("host", found.vs_host), ("share", found.vs_share))
    ]
    group = found.group
    return (
        group.metric,
        group.threads,
        found.who,
        f"{group.at_once}{group.beside}" if group.beside else group.at_once,
        *ratios,
        "",
        f"{found.target:.3g}",
        OF_RATIO[found.level].upper(),
        found.reason,
    )


def _scaling_row(found: ScalingFinding) -> tuple[Any, ...]:
    from nova_perfvm.measure.statistics.verdict import OF_RATIO  # noqa: PLC0415

    return (
        *(found.name, "", found.what, found.number, "", ""),
        *(f"{found.observed:.4g}", f"{found.limit:.3g}"),
        *(OF_RATIO[found.level].upper(), found.reason),
    )


def _finding(found: ScalingFinding) -> Finding:
    """Return a judgement of scaling as a line for people."""
    return Finding(
        found.name,
        found.level,
        f"{found.number}, {found.what}",
        "; ".join(filter(None, (f"{found.observed:.4g}", found.reason))),
        f"{found.limit:.3g}",
    )

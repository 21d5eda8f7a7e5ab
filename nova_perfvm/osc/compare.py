# SPDX-License-Identifier: Apache-2.0
"""``bench compare`` and ``bench scaling``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from cliff.lister import Lister

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.findings import CheckFindings, Report, exit_code
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import busy_vms, record
from nova_perfvm.osc.base import Table, argument, count, file_argument, positive
from nova_perfvm.osc.judging import JudgingCommand
from nova_perfvm.osc.reports import LINES

if TYPE_CHECKING:
    from nova_perfvm.measure.statistics.compare import Comparison

_WARNED: Final = 1
_COMPARED: Final = (
    "Metric",
    "Threads",
    "VM",
    "At once",
    "Vs host",
    "Vs share",
    "Target",
    "Verdict",
    "Reason",
)
_SCALED: Final = ("Name", "Number", "What", "Observed", "Limit", "Verdict", "Reason")

TARGET: Final = argument(
    "--target",
    type=positive,
    default=0.70,
    metavar="RATIO",
    help="least part of the expected throughput that passes (default: %(default)s)",
)
LATENCY_TARGET: Final = argument(
    "--latency-target",
    type=positive,
    default=2.0,
    metavar="RATIO",
    help="how many times the host's latency passes at most (default: %(default)s)",
)
MEASURED: Final = "measurements that bench run has left"


class Compare(JudgingCommand, Lister):
    """Compare VMs with their host, metric by metric.

    Vs host divides a VM's value by that of a run on the host, and vs share by the
    part of the host's that each VM can have. A star marks the ratio that is judged,
    which alone is printed for people: vs share for network and disk, vs host for all
    else. In brackets are 95 % intervals. Exits with 0 if all pass, 1 if something is
    inconclusive or doubtful, 2 if something fails.
    """

    formatter_namespace = LINES
    arguments = (
        file_argument("files", nargs="+", help=MEASURED),
        TARGET,
        LATENCY_TARGET,
        argument(
            "--vms",
            type=count,
            metavar="N",
            help="VMs that share the host (default: as many as ran at once)",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Compare, and keep the code of the worst verdict."""
        # SciPy is of the extra [measure].
        from nova_perfvm.measure.report import answer  # noqa: PLC0415
        from nova_perfvm.measure.statistics.compare import compare  # noqa: PLC0415

        found = compare(
            samples.load(parsed_args.files).measurements,
            target=parsed_args.target,
            latency_target=parsed_args.latency_target,
            vms=parsed_args.vms,
        )
        worst = max(row.level for row in found)
        self.exit_status = exit_code(worst, strict=True)
        if any(row.remarks for row in found):
            self.exit_status = max(self.exit_status, _WARNED)
        for text in _beside(parsed_args.files):
            self.exit_status = max(self.exit_status, _WARNED)
            self.warn(text)
        for remark in dict.fromkeys(r for row in found for r in row.remarks):
            self.warn(remark)
        parsed_args.report = Report(
            tuple(CheckFindings(r.group.metric, (answer.finding(r),)) for r in found),
            "",
        )
        self._answer = answer.answer(found)
        return _COMPARED, list(map(_row, found))

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Any, data: Any
    ) -> int:
        """Print, and say in one line which part of the host VMs reach."""
        super().produce_output(parsed_args, column_names, data)
        self.app.stderr.write(f"{self._answer}\n")
        return 0


class Scaling(JudgingCommand, Lister):
    """Judge how throughput grows with the number of VMs at once, or of servers.

    Exits with 0 if all pass, 1 if something is inconclusive, 2 if something fails.
    """

    arguments = (
        file_argument("files", nargs="+", help="measurements, or loads of a service"),
        TARGET,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Judge, and keep the code of the worst verdict."""
        # SciPy is of the extra [measure].
        from nova_perfvm.measure.statistics import scaling  # noqa: PLC0415
        from nova_perfvm.measure.statistics.verdict import OF_RATIO  # noqa: PLC0415

        found = scaling.judge_all(samples.load(parsed_args.files), parsed_args.target)
        worst = max(row.level for row in found)
        self.exit_status = exit_code(worst, strict=True)
        return _SCALED, [
            (
                row.name,
                row.number,
                row.what,
                f"{row.observed:.4g}",
                f"{row.limit:g}",
                OF_RATIO[row.level].upper(),
                row.reason,
            )
            for row in found
        ]


def _beside(paths: Iterable[str]) -> Iterator[str]:
    """Yield which hosts were measured beside VMs that perhaps were busy."""
    for path in paths:
        run = record.json_of(path).get("run")
        try:
            found = busy_vms.of_hosts(run) if run else {}
        except ValueError as exc:
            raise PerfVMError(f"{path}: run: {exc}") from exc
        yield from (f"{who}: {one.doubt}" for who, one in found.items() if one.doubt)


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
        f"{found.target:.3g}",
        OF_RATIO[found.level].upper(),
        found.reason,
    )

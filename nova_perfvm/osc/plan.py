# SPDX-License-Identifier: Apache-2.0
"""``plan disk``."""

from __future__ import annotations

import argparse
from typing import Final

from cliff.lister import Lister

from nova_perfvm.diagnose import disk_capacity
from nova_perfvm.documents import textfile
from nova_perfvm.measure.bench import disk_figures
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.judging import JudgingCommand

_UNCERTAIN: Final = 1
_NONE: Final = 2


class PlanDisk(JudgingCommand, Lister):
    """Count the VMs for which a disk can guarantee a number of reads and writes.

    The files are fio's JSON output. "rule" divides the throughput of one VM alone by
    the guarantee. "demonstrated" is the number of VMs that ran at once, if each got the
    guarantee. "extrapolated" divides the sum of their throughput by the guarantee.
    Exits with 0 if a number is demonstrated, 1 if all numbers are calculated, 2 if not
    even one VM gets the guarantee.
    """

    arguments = (
        opt.file("--alone", "fio's result of one VM, alone", required=True),
        opt.repeated(
            "--contended FILE",
            "fio's result of one of several VMs that ran at once; repeat it for "
            "each VM",
            type=opt.file_path,
        ),
        opt.option(
            "--guarantee-read N", "reads per second promised to each VM", type=opt.count
        ),
        opt.option(
            "--guarantee-write N",
            "writes per second promised to each VM",
            type=opt.count,
        ),
        opt.option(
            "--guarantee-latency MS",
            "mean latency that no VM may exceed, in milliseconds",
            type=opt.positive,
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        found = disk_capacity.plan(
            _figures(parsed_args.alone),
            disk_capacity.Guarantee(
                parsed_args.guarantee_read,
                parsed_args.guarantee_write,
                parsed_args.guarantee_latency,
            ),
            list(map(_figures, parsed_args.contended)),
        )
        for remark in found.remarks:
            self.warn(remark)
        if not found.vms("demonstrated"):
            calculated = any(row.vms for row in found.counts)
            self.exit_status = _UNCERTAIN if calculated else _NONE
        columns = ("Count", "VMs", "Limit", "Latency ms", "Evidence")
        return columns, [
            (
                row.count,
                row.vms,
                row.limit,
                "" if row.latency_ms is None else f"{row.latency_ms:.4g}",
                row.evidence,
            )
            for row in found.counts
        ]


def _figures(path: str) -> disk_capacity.Figures:
    return disk_figures.read_fio(textfile.read(path), path)

# SPDX-License-Identifier: Apache-2.0
"""``plan disk``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Final

from cliff.lister import Lister

from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate import disk as guarantees
from nova_perfvm.generate.hosts import output
from nova_perfvm.measure import disk
from nova_perfvm.osc.base import (
    Table,
    argument,
    count,
    file_argument,
    flag,
    one_of,
    positive,
)
from nova_perfvm.osc.judging import JudgingCommand

_UNCERTAIN: Final = 1
_NONE: Final = 2


class PlanDisk(JudgingCommand, Lister):
    """Say how many VMs a disk serves with a guarantee of I/Os for each.

    By the rule: one VM's figures alone by the guarantee. Demonstrated: VMs that ran
    at once, if each got it. Extrapolated: what these got in sum by the guarantee.
    Exits with 0 if a number is demonstrated, 1 if there is but a calculated one, 2 if
    not even one VM gets the guarantee.
    """

    arguments = (
        one_of(
            file_argument("--fio", help="JSON of fio that ran in one VM, alone"),
            argument(
                "--read-iops",
                type=positive,
                metavar="N",
                help="reads per second of one VM alone, with --write-iops",
            ),
            required=True,
        ),
        argument(
            "--write-iops",
            type=positive,
            metavar="N",
            help="writes per second of one VM alone, at the same time",
        ),
        argument(
            "--latency-ms",
            metavar="READ,WRITE",
            help="mean latencies of one VM alone, in milliseconds",
        ),
        argument(
            "--contended",
            action="append",
            default=[],
            metavar="FILE|FIGURES",
            help="what one of several VMs got that ran at once, once for each: JSON of "
            "fio; or reads and writes per second and, if known, the latencies, such as "
            "72.0,31.1,80.84",
        ),
        argument(
            "--guarantee-read",
            type=count,
            metavar="N",
            help="reads per second that each VM is promised",
        ),
        argument(
            "--guarantee-write",
            type=count,
            metavar="N",
            help="writes per second that each VM is promised",
        ),
        argument(
            "--guarantee-latency",
            type=positive,
            metavar="MS",
            help="mean latency that no VM may exceed, in milliseconds",
        ),
        argument(
            "--network-volume",
            metavar="TYPE",
            help="with --output-dir: the disks are volumes of this Cinder type",
        ),
        file_argument(
            "--output-dir",
            metavar="DIR",
            help=f"write {', '.join(guarantees.FILES)} there: what the policy, the "
            "host and Cinder need",
        ),
        flag("--force", "with --output-dir: replace the files of an earlier run"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Count the VMs; write what the guarantee needs."""
        if parsed_args.output_dir is None and (
            parsed_args.force or parsed_args.network_volume
        ):
            raise PerfVMError("--force and --network-volume are for --output-dir")
        found = disk.plan(
            _alone(parsed_args),
            disk.Guarantee(
                parsed_args.guarantee_read,
                parsed_args.guarantee_write,
                parsed_args.guarantee_latency,
            ),
            [_contended(text) for text in parsed_args.contended],
        )
        for remark in found.remarks:
            self.warn(remark)
        if parsed_args.output_dir is not None:
            directory = Path(parsed_args.output_dir)
            files = _files(found, parsed_args.network_volume)
            output.write_files(
                directory, files, guarantees.FILES, force=parsed_args.force
            )
            self.app.stderr.write("".join(f"{directory / name}\n" for name in files))
        self.exit_status = _status(found)
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


def _status(found: disk.DiskPlan) -> int:
    if found.vms("demonstrated"):
        return 0
    return _UNCERTAIN if any(row.vms for row in found.counts) else _NONE


def _alone(parsed_args: argparse.Namespace) -> disk.Figures:
    given = (parsed_args.write_iops, parsed_args.latency_ms)
    if parsed_args.fio is not None:
        if any(value is not None for value in given):
            raise PerfVMError(
                "--fio has the figures: leave --write-iops and --latency-ms out"
            )
        return disk.read_fio(textfile.read(parsed_args.fio), parsed_args.fio)
    if parsed_args.write_iops is None:
        raise PerfVMError("--read-iops: give --write-iops, too")
    alone = disk.Figures(parsed_args.read_iops, parsed_args.write_iops)
    if parsed_args.latency_ms is None:
        return alone
    read_ms, write_ms = _numbers("--latency-ms", parsed_args.latency_ms, 2, 2)
    return replace(alone, read_ms=read_ms, write_ms=write_ms)


def _contended(text: str) -> disk.Figures:
    """Take a text for figures, or else for a file's name."""
    there = Path(text).exists()
    if "," in text and not there and not text[:1].isdigit():
        raise PerfVMError(
            f"--contended {text}: neither a file that is there nor figures such as "
            "72.0,31.1,80.84"
        )
    if text[:1].isdigit() and not there:
        read, write, *latencies = _numbers("--contended", text, 2, 4)
        read_ms, write_ms = (*latencies, None, None)[:2]
        return disk.Figures(read, write, read_ms, write_ms)
    return disk.read_fio(textfile.read(text), text)


def _numbers(option: str, text: str, least: int, most: int) -> list[float]:
    try:
        found = [positive(part) for part in text.split(",")]
    except argparse.ArgumentTypeError as exc:
        raise PerfVMError(f"{option} {text}: {exc}") from None
    if not least <= len(found) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise PerfVMError(f"{option} {text}: expected {wanted} numbers with commas")
    return found


def _files(found: disk.DiskPlan, volume_type: str | None) -> dict[str, str]:
    promised = {
        "read": found.guarantee.read_iops,
        "write": found.guarantee.write_iops,
    }
    return guarantees.files(
        dict(zip(("read", "write"), found.capacity, strict=True)),
        {kind: n for kind, n in promised.items() if n is not None},
        volume_type,
    )

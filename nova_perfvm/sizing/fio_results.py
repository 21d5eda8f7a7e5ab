# SPDX-License-Identifier: Apache-2.0
"""What VMs got of a disk, from fio's JSON, for planning by it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nova_perfvm.documents.document import KINDS, kind_of
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.bench.tools import fio
from nova_perfvm.measure.bench.tools.tool import OutputError, output_of
from nova_perfvm.sizing.disk import Figures, all_known

# Engines of fio for which iodepth means nothing; the first is its default.
_SYNCHRONOUS: Final = frozenset({"psync", "sync", "vsync", "pvsync", "pvsync2", "mmap"})
# Where fio has mean latencies, and how many of its units are a millisecond; fio 2 has
# the last one.
_LATENCIES: Final = (("lat_ns", 1e6), ("clat_ns", 1e6), ("lat", 1e3))


class FioError(PerfVMError):
    """The file is no JSON output of fio, or has no usable job."""


def read_fio(text: str, source: str) -> Figures:
    """Return the figures in fio's JSON (``--output-format=json`` or ``json+``).

    All jobs of the file count together.

    :raises FioError: when the file is no output of fio or has no I/O, a job failed, or
        the jobs may have run one by one
    """
    try:
        return _figures(text)
    except OutputError as exc:
        raise FioError(f"{source}: {exc}") from None


@output_of(fio.NAME)
def _figures(text: str) -> Figures:
    if kind := kind_of(text):
        raise OutputError(f"this is {KINDS[kind].title}")
    jobs = fio.jobs_of(text)
    read_iops, read_ms = _of_way([job["read"] for job in jobs])
    write_iops, write_ms = _of_way([job["write"] for job in jobs])
    if not 0 < read_iops + write_iops < math.inf:
        raise OutputError("no I/O was done")
    options = [job["job options"] for job in jobs]
    depth = _depth([job.get("jobname") for job in jobs], options)
    cached = any(str(of_job.get("direct", "0")) != "1" for of_job in options)
    return Figures(read_iops, write_iops, read_ms, write_ms, depth, cached)


def _of_way(parts: Sequence[Any]) -> tuple[float, float | None]:
    """Return IOPS of all jobs, and their mean latency in milliseconds.

    The latency is None if a job with I/O tells no latency.
    """
    done = [(float(part["iops"]), part) for part in parts if float(part["iops"])]
    rates = [iops for iops, _ in done]
    means = all_known(_mean_ms(part) for _, part in done)
    return sum(rates), statistics.fmean(means, rates) if means else None


def _mean_ms(part: Mapping[str, Any]) -> float | None:
    means = ((part.get(key, {}).get("mean"), per_ms) for key, per_ms in _LATENCIES)
    return next((float(mean) / per_ms for mean, per_ms in means if mean), None)


def _depth(names: Sequence[str], options: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the I/Os that all jobs may have outstanding; None for a depth like 1k.

    With ``group_reporting`` one entry stands for all clones of a job; without it
    each clone has an entry, of the same name.
    """
    total = 0
    for name, of_job in zip(names, options, strict=True):
        clones = 1 if names.count(name) > 1 else of_job.get("numjobs", 1)
        synchronous = of_job.get("ioengine", "psync") in _SYNCHRONOUS
        depth = 1 if synchronous else of_job.get("iodepth", 1)
        try:
            total += int(depth) * int(clones)
        except ValueError:
            # Such as 1k.
            return None
    return total

# SPDX-License-Identifier: Apache-2.0
"""How many VMs a disk serves with a guarantee for each (KISTI).

The paper divides what one VM gets alone by the guarantee.  But what one VM gets
alone is what its few outstanding I/Os get, not what the disk can do: Little's law
tells.  So there are three counts: by the paper's rule, as VMs demonstrated it
together, and extrapolated from what these got in sum.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from nova_perfvm.documents.document import KINDS, kind_of
from nova_perfvm.exceptions import PerfVMError

# Latencies and depths are rounded, and ramp-up counts, too.
_NEAR: Final = 0.05
# What more VMs get in sum, above what one gets, is no noise.
_MORE: Final = 1.10
# Engines of fio for which iodepth means nothing; the first is its default.
_SYNCHRONOUS: Final = frozenset({"psync", "sync", "vsync", "pvsync", "pvsync2", "mmap"})

Count = Literal["rule", "demonstrated", "extrapolated"]


class FioError(PerfVMError):
    """A file that is no JSON of fio's, or has nothing that counts."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one VM, or one run of fio, got of a disk.

    :ivar read_iops: reads per second, ``write_iops`` writes
    :ivar read_ms: mean latency of a read in milliseconds, None if not known
    :ivar depth: outstanding I/Os that were asked for, None if not known
    :ivar cached: whether they went through the page cache
    """

    read_iops: float
    write_iops: float
    read_ms: float | None = None
    write_ms: float | None = None
    depth: int | None = None
    cached: bool = False

    @property
    def outstanding(self) -> float | None:
        """Return how many I/Os were outstanding on average, by Little's law."""
        total = 0.0
        for iops, ms in (
            (self.read_iops, self.read_ms),
            (self.write_iops, self.write_ms),
        ):
            if iops and ms is None:
                return None
            total += iops * (ms or 0.0) / 1000
        return total

    @property
    def queue_full(self) -> bool | None:
        """Return whether the queue was always full; None if that is not known.

        Where the depth is not known: whether it is near a whole number.
        """
        found = self.outstanding
        if found is None:
            return None
        depth = self.depth or max(round(found), 1)
        return abs(found - depth) <= _NEAR * depth

    @property
    def latency_ms(self) -> float | None:
        """Return the mean latency of reads and writes together."""
        total = self.read_iops + self.write_iops
        if self.outstanding is None or not total:
            return None
        return self.outstanding / total * 1000


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What each VM is promised; None is no promise.

    :ivar latency_ms: mean latency that no VM may exceed
    """

    read_iops: int | None = None
    write_iops: int | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Consolidation:
    """How many VMs, and what says so.

    :ivar limit: what the count rests on
    :ivar latency_ms: that goes with it, None if not known
    :ivar evidence: the figures
    """

    count: Count
    vms: int
    limit: str
    latency_ms: float | None
    evidence: str


@dataclass(frozen=True, slots=True)
class DiskPlan:
    """Three counts of VMs, and what the disk gives for certain.

    :ivar capacity: reads and writes per second that several VMs got in sum, or
        one if that is all there is
    :ivar depth_limited: whether the figures are limited by the depth of the queue
        and not by the disk; None if that cannot be told
    """

    counts: tuple[Consolidation, ...]
    capacity: tuple[int, int]
    guarantee: Guarantee
    depth_limited: bool | None
    remarks: tuple[str, ...] = ()

    def vms(self, count: Count) -> int | None:
        """Return a count, None where nothing was measured that it rests on."""
        return next((c.vms for c in self.counts if c.count == count), None)


def plan(
    alone: Figures, guarantee: Guarantee, contended: Sequence[Figures] = ()
) -> DiskPlan:
    """Return how many VMs the disk serves.

    :param alone: what one VM got, with nobody beside it
    :param contended: what each of several got that ran at once
    """
    counts = [_by_rule(alone, guarantee)]
    total = (alone.read_iops, alone.write_iops)
    if contended:
        total = (
            sum(vm.read_iops for vm in contended),
            sum(vm.write_iops for vm in contended),
        )
        counts += [
            _demonstrated(contended, guarantee),
            _extrapolated(alone, contended, guarantee, total),
        ]
    limited = _depth_limited(alone, contended, total)
    return DiskPlan(
        counts=tuple(counts),
        capacity=(math.floor(total[0]), math.floor(total[1])),
        guarantee=guarantee,
        depth_limited=limited,
        remarks=tuple(_remarks(alone, contended, total, limited=limited)),
    )


def read_fio(text: str, source: str) -> Figures:
    """Return what fio's JSON (``--output-format=json`` or ``json+``) says.

    All jobs of the file ran at once, as fio's jobs do, and count together.

    :raises FioError: when it is no such file
    """
    if kind := kind_of(text):
        raise FioError(
            f"{source}: this is {KINDS[kind].title}; expected JSON of fio "
            "(--output-format=json+)"
        )
    # Before it, fio prints what it has to say about the machine.
    start = text.find("{")
    try:
        document = json.JSONDecoder().raw_decode(text[max(start, 0) :])[0]
    except (ValueError, RecursionError):
        raise FioError(
            f"{source}: no JSON of fio: run fio with --output-format=json+"
        ) from None
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list) or not jobs:
        raise FioError(f"{source}: jobs: missing; expected fio's list of jobs")
    found = [_fio_job(job, f"{source}: jobs.{i}") for i, job in enumerate(jobs)]
    read, write = (sum(job[kind][0] for job in found) for kind in ("read", "write"))
    if not read + write:
        raise FioError(f"{source}: no I/O was done: look for fio's errors")
    common = document.get("global options")
    options = [_options(job, common) for job in jobs]
    return Figures(
        read_iops=read,
        write_iops=write,
        read_ms=_mean_ms([job["read"] for job in found]),
        write_ms=_mean_ms([job["write"] for job in found]),
        depth=_depth(jobs, options),
        cached=any(str(of_job.get("direct", "0")) != "1" for of_job in options),
    )


def _by_rule(alone: Figures, guarantee: Guarantee) -> Consolidation:
    vms, limit = _fitting((alone.read_iops, alone.write_iops), guarantee)
    return Consolidation(
        "rule",
        vms,
        limit,
        alone.latency_ms,
        f"one VM alone: {alone.read_iops:g} reads, {alone.write_iops:g} writes a "
        "second; the latency is that of one VM, not of so many",
    )


def _demonstrated(contended: Sequence[Figures], guarantee: Guarantee) -> Consolidation:
    """Count those that ran at once if each of them got what is promised."""
    worst_read = min(vm.read_iops for vm in contended)
    worst_write = min(vm.write_iops for vm in contended)
    slowest = _slowest(contended)
    broken = [
        f"{kind} {got:g} of {wanted:g}"
        for kind, got, wanted in (
            ("reads", worst_read, guarantee.read_iops),
            ("writes", worst_write, guarantee.write_iops),
        )
        if wanted is not None and got < wanted
    ]
    if guarantee.latency_ms is not None:
        if slowest is None:
            broken.append("latency not measured")
        elif slowest > guarantee.latency_ms:
            broken.append(f"latency {slowest:.4g} of {guarantee.latency_ms:g} ms")
    together = _vms(contended)
    at_least = f"{together} at once; more were not measured"
    return Consolidation(
        "demonstrated",
        0 if broken else len(contended),
        f"broken with {together}: {', '.join(broken)}" if broken else at_least,
        slowest,
        f"the least that one of {_vms(contended)} got: {worst_read:g} reads, "
        f"{worst_write:g} writes a second",
    )


def _extrapolated(
    alone: Figures,
    contended: Sequence[Figures],
    guarantee: Guarantee,
    total: tuple[float, float],
) -> Consolidation:
    vms, limit = _fitting(total, guarantee)
    # Each VM keeps as many I/Os outstanding as it did.
    own = [vm.outstanding for vm in contended]
    known = [value for value in own if value is not None]
    each = sum(known) / len(known) if len(known) == len(own) else alone.outstanding
    operations = sum(total)
    per_vm = None if each is None or not operations else each / operations * 1000
    if guarantee.latency_ms is not None and per_vm:
        by_latency = math.floor(guarantee.latency_ms / per_vm)
        if by_latency < vms:
            vms, limit = by_latency, f"latency of {guarantee.latency_ms:g} ms"
    return Consolidation(
        "extrapolated",
        vms,
        f"{limit}; nobody measured more than {_vms(contended)} at once",
        None if per_vm is None or not vms else per_vm * vms,
        f"{_vms(contended)} in sum: {total[0]:g} reads, {total[1]:g} writes a "
        "second; the latency is what Little's law gives for so many",
    )


def _vms(measured: Sequence[Figures]) -> str:
    return f"{len(measured)} VM{'s' if len(measured) > 1 else ''}"


def _fitting(iops: tuple[float, float], guarantee: Guarantee) -> tuple[int, str]:
    """Return how often the guarantee is in what there is, and what limits it."""
    candidates = [
        (math.floor(got / wanted), f"{kind}: {got:g} / {wanted:g}")
        for kind, got, wanted in (
            ("reads", iops[0], guarantee.read_iops),
            ("writes", iops[1], guarantee.write_iops),
        )
        if wanted is not None
    ]
    if not candidates:
        raise PerfVMError(
            "nothing is guaranteed: give --guarantee-read, --guarantee-write or both"
        )
    return min(candidates)


def _slowest(contended: Sequence[Figures]) -> float | None:
    """Return the highest mean latency: of all I/Os of a VM, or of its reads."""
    found = [vm.latency_ms or vm.read_ms or vm.write_ms for vm in contended]
    known = [value for value in found if value is not None]
    return max(known) if len(known) == len(found) else None


def _depth_limited(
    alone: Figures, contended: Sequence[Figures], total: tuple[float, float]
) -> bool | None:
    if alone.queue_full is not True:
        return alone.queue_full
    if not contended:
        # A full queue is all that one run can show.
        return True
    return sum(total) > _MORE * (alone.read_iops + alone.write_iops)


def _remarks(
    alone: Figures,
    contended: Sequence[Figures],
    total: tuple[float, float],
    *,
    limited: bool | None,
) -> list[str]:
    found = []
    if any(figures.cached for figures in (alone, *contended)):
        found.append(
            "fio ran without direct=1: these are figures of the page cache, not of the "
            "disk; measure again with --direct=1"
        )
    if alone.outstanding is None:
        found.append(
            "no latencies: whether the queue's depth is the limit is not known"
        )
    elif limited:
        text = (
            f"Little's law: {alone.outstanding:.1f} I/Os were outstanding, so that the "
            "figures of one VM are limited by the depth of its queue and are not what "
            "the disk can do"
        )
        if contended:
            text += f" ({_vms(contended)} got {sum(total):g} a second in sum)"
        found.append(text)
    if not contended:
        found.append(
            "measured with one VM only: measure several at once (--contended), as "
            "neither rule says what happens then"
        )
    return found


def _fio_job(job: Any, where: str) -> dict[str, tuple[float, float | None]]:
    """Return (IOPS, mean latency in ms) of reads and writes."""
    if not isinstance(job, dict):
        raise FioError(f"{where}: expected a mapping")
    if job.get("error"):
        raise FioError(f"{where}: fio ended with error {job['error']}: run it again")
    found = {}
    for kind in ("read", "write"):
        part = job.get(kind)
        iops = part.get("iops") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not _is_amount(iops):
            raise FioError(f"{where}.{kind}.iops: expected a number from 0 up")
        found[kind] = (float(iops or 0), _fio_ms(part))
    return found


def _fio_ms(part: dict[str, Any]) -> float | None:
    """Return the mean of the total latency; fio 2 has it in microseconds."""
    for key, per_ms in (("lat_ns", 1e6), ("clat_ns", 1e6), ("lat", 1e3)):
        times = part.get(key)
        mean = times.get("mean") if isinstance(times, dict) else None
        if mean and _is_amount(mean):
            return float(mean) / per_ms
    return None


def _is_amount(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value < math.inf
    )


def _mean_ms(parts: Sequence[tuple[float, float | None]]) -> float | None:
    done = [(iops, ms) for iops, ms in parts if iops]
    known = [(iops, ms) for iops, ms in done if ms is not None]
    if not done or len(known) != len(done):
        return None
    return sum(iops * ms for iops, ms in known) / sum(iops for iops, _ in known)


def _options(job: Any, common: Any) -> dict[str, Any]:
    own = job.get("job options")
    return {
        **(common if isinstance(common, dict) else {}),
        **(own if isinstance(own, dict) else {}),
    }


def _depth(jobs: Sequence[Any], options: Sequence[dict[str, Any]]) -> int | None:
    """Return the I/Os that all jobs may have outstanding at once.

    With ``group_reporting`` one entry stands for all clones of a job; without it
    each clone has an entry, of the same name.
    """
    names = [job.get("jobname") for job in jobs]
    total = 0
    for job, of_job in zip(jobs, options, strict=True):
        clones = 1 if names.count(job.get("jobname")) > 1 else of_job.get("numjobs", 1)
        synchronous = of_job.get("ioengine", "psync") in _SYNCHRONOUS
        depth = 1 if synchronous else of_job.get("iodepth", 1)
        try:
            total += int(depth) * int(clones)
        except (TypeError, ValueError):
            return None
    return total

# SPDX-License-Identifier: Apache-2.0
"""How many VMs a disk serves with a guarantee for each (KISTI).

The paper divides what one VM gets alone by the guarantee.  But what one VM gets
alone is what its few outstanding I/Os get, not what the disk can do: Little's law
tells.  So there are three counts: by the paper's rule, as VMs demonstrated it
together, and extrapolated from what these got in sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from nova_perfvm.documents.document import KINDS, kind_of
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.bench.tools import fio
from nova_perfvm.measure.bench.tools.tool import OutputError, documents_of, output_of
from nova_perfvm.printable import number_of

# Latencies and depths are rounded, and ramp-up counts, too.
_NEAR: Final = 0.05
# What more VMs get in sum, above what one gets, is no noise.
_MORE: Final = 1.10
# Engines of fio for which iodepth means nothing; the first is its default.
_SYNCHRONOUS: Final = frozenset({"psync", "sync", "vsync", "pvsync", "pvsync2", "mmap"})
# Where fio has mean latencies, and how many of its units are a millisecond; fio 2 has
# the last one.
_LATENCIES: Final = (("lat_ns", 1e6), ("clat_ns", 1e6), ("lat", 1e3))

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
    def iops(self) -> float:
        """Return reads and writes per second."""
        return self.read_iops + self.write_iops

    @property
    def outstanding(self) -> float | None:
        """Return how many I/Os were outstanding on average, by Little's law."""
        ways = ((self.read_iops, self.read_ms), (self.write_iops, self.write_ms))
        if any(iops and ms is None for iops, ms in ways):
            return None
        return sum(iops * (ms or 0.0) for iops, ms in ways) / 1000

    @property
    def queue_full(self) -> bool:
        """Return whether the queue was always full, as far as that is known.

        Where the depth is not known: whether it is near a whole number.
        """
        found = self.outstanding
        if found is None:
            return False
        depth = self.depth or max(round(found), 1)
        return abs(found - depth) <= _NEAR * depth

    @property
    def latency_ms(self) -> float | None:
        """Return the mean latency of reads and writes together."""
        if self.outstanding is None or not self.iops:
            return None
        return self.outstanding / self.iops * 1000


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
    """Three counts of VMs, and what has to be known of them."""

    counts: tuple[Consolidation, ...]
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
    :raises PerfVMError: when neither reads nor writes are guaranteed
    """
    if guarantee.read_iops is None and guarantee.write_iops is None:
        raise PerfVMError(
            "nothing is guaranteed: give --guarantee-read, --guarantee-write or both"
        )
    counts = [_by_rule(alone, guarantee)]
    if contended:
        counts += [
            _demonstrated(contended, guarantee),
            _extrapolated(alone, contended, guarantee),
        ]
    return DiskPlan(tuple(counts), tuple(_remarks(alone, contended)))


def _by_rule(alone: Figures, guarantee: Guarantee) -> Consolidation:
    return Consolidation(
        "rule",
        *_fitting(alone, guarantee),
        alone.latency_ms,
        f"one VM alone: {_rates(alone)}; the latency is that of one VM, not of so many",
    )


def _demonstrated(contended: Sequence[Figures], guarantee: Guarantee) -> Consolidation:
    """Count those that ran at once if each of them got what is promised."""
    least = Figures(
        min(vm.read_iops for vm in contended), min(vm.write_iops for vm in contended)
    )
    slowest_ms = _slowest_ms(contended)
    broken = [
        f"{kind} {got:g} of {wanted:g}"
        for kind, got, wanted in _promised(least, guarantee)
        if got < wanted
    ]
    most_ms = guarantee.latency_ms
    if most_ms is not None and (slowest_ms is None or slowest_ms > most_ms):
        found = "not measured" if slowest_ms is None else f"{slowest_ms:.4g}"
        broken.append(f"latency {found} of {most_ms:g} ms")
    together = number_of(len(contended), "VM")
    at_least = f"{together} at once; more were not measured"
    return Consolidation(
        "demonstrated",
        0 if broken else len(contended),
        f"broken with {together}: {', '.join(broken)}" if broken else at_least,
        slowest_ms,
        f"the least that one of {together} got: {_rates(least)}",
    )


def _extrapolated(
    alone: Figures, contended: Sequence[Figures], guarantee: Guarantee
) -> Consolidation:
    total = _sum(contended)
    vms, limit = _fitting(total, guarantee)
    # Each VM keeps as many I/Os outstanding as it did.
    own = [vm.outstanding for vm in contended]
    known = [value for value in own if value is not None]
    each = sum(known) / len(known) if len(known) == len(own) else alone.outstanding
    per_vm_ms = None if each is None or not total.iops else each / total.iops * 1000
    if guarantee.latency_ms is not None and per_vm_ms:
        by_latency = math.floor(guarantee.latency_ms / per_vm_ms)
        if by_latency < vms:
            vms, limit = by_latency, f"latency of {guarantee.latency_ms:g} ms"
    together = number_of(len(contended), "VM")
    return Consolidation(
        "extrapolated",
        vms,
        f"{limit}; nobody measured more than {together} at once",
        None if per_vm_ms is None or not vms else per_vm_ms * vms,
        f"{together} in sum: {_rates(total)}; the latency is what Little's law gives "
        "for so many",
    )


def _sum(contended: Sequence[Figures]) -> Figures:
    return Figures(
        sum(vm.read_iops for vm in contended), sum(vm.write_iops for vm in contended)
    )


def _rates(of: Figures) -> str:
    return f"{of.read_iops:g} reads, {of.write_iops:g} writes a second"


def _promised(got: Figures, guarantee: Guarantee) -> Iterator[tuple[str, float, int]]:
    """Yield what is promised: its kind, what there is of it, how much is promised."""
    if guarantee.read_iops is not None:
        yield "reads", got.read_iops, guarantee.read_iops
    if guarantee.write_iops is not None:
        yield "writes", got.write_iops, guarantee.write_iops


def _fitting(got: Figures, guarantee: Guarantee) -> tuple[int, str]:
    """Return how often the guarantee is in what there is, and what limits it."""
    return min(
        (math.floor(there / wanted), f"{kind}: {there:g} / {wanted:g}")
        for kind, there, wanted in _promised(got, guarantee)
    )


def _slowest_ms(contended: Sequence[Figures]) -> float | None:
    """Return the highest mean latency: of all I/Os of a VM, or of its reads."""
    found = [vm.latency_ms or vm.read_ms or vm.write_ms for vm in contended]
    known = [value for value in found if value is not None]
    return max(known) if len(known) == len(found) else None


def _remarks(alone: Figures, contended: Sequence[Figures]) -> Iterator[str]:
    total = _sum(contended)
    # A full queue is all that one run can show.
    limited = not contended or total.iops > _MORE * alone.iops
    if any(figures.cached for figures in (alone, *contended)):
        yield (
            "fio ran without direct=1: these are figures of the page cache, not of the "
            "disk; measure again with --direct=1"
        )
    if alone.outstanding is None:
        yield "no latencies: whether the queue's depth is the limit is not known"
    elif alone.queue_full and limited:
        text = (
            f"Little's law: {alone.outstanding:.1f} I/Os were outstanding, so that the "
            "figures of one VM are limited by the depth of its queue and are not what "
            "the disk can do"
        )
        if contended:
            together = number_of(len(contended), "VM")
            text += f" ({together} got {total.iops:g} a second in sum)"
        yield text
    if not contended:
        yield (
            "measured with one VM only: measure several at once (--contended), as "
            "neither rule says what happens then"
        )


def read_fio(text: str, source: str) -> Figures:
    """Return what fio's JSON (``--output-format=json`` or ``json+``) says.

    All jobs of the file ran at once, as fio's jobs do, and count together.

    :raises FioError: when it is no such file
    """
    remedy = "run fio with --output-format=json+"
    if kind := kind_of(text):
        raise FioError(f"{source}: this is {KINDS[kind].title}: {remedy}")
    try:
        return _figures(text)
    except OutputError as exc:
        raise FioError(f"{source}: {exc}: {remedy}") from None


@output_of(fio.NAME)
def _figures(text: str) -> Figures:
    document = documents_of(fio.NAME, text)[0]
    jobs = document["jobs"]
    for job in jobs:
        if error := job.get("error"):
            raise OutputError(f"fio ended with error {error}")
    read_iops, read_ms = _of_way([job["read"] for job in jobs])
    write_iops, write_ms = _of_way([job["write"] for job in jobs])
    if not 0 < read_iops + write_iops < math.inf:
        raise OutputError("no I/O was done")
    common = document.get("global options", {})
    options = [common | job.get("job options", {}) for job in jobs]
    return Figures(
        read_iops=read_iops,
        write_iops=write_iops,
        read_ms=read_ms,
        write_ms=write_ms,
        depth=_depth([job.get("jobname") for job in jobs], options),
        cached=any(str(of_job.get("direct", "0")) != "1" for of_job in options),
    )


def _of_way(parts: Sequence[Any]) -> tuple[float, float | None]:
    """Return IOPS of all jobs, and their mean latency in milliseconds.

    The latency is None where it is not known of each that did something.
    """
    done = [
        (float(part["iops"]), _mean_ms(part)) for part in parts if float(part["iops"])
    ]
    iops = sum(one for one, _ in done)
    known = [one * ms for one, ms in done if ms is not None]
    return iops, sum(known) / iops if done and len(known) == len(done) else None


def _mean_ms(part: Mapping[str, Any]) -> float | None:
    means = ((part.get(key, {}).get("mean"), per_ms) for key, per_ms in _LATENCIES)
    return next((float(mean) / per_ms for mean, per_ms in means if mean), None)


def _depth(names: Sequence[str], options: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the I/Os that all jobs may have outstanding at once.

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

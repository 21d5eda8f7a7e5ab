# SPDX-License-Identifier: Apache-2.0
"""How many VMs a disk serves with a guarantee for each (KISTI).

The paper divides what one VM gets alone by the guarantee.  But what one VM gets
alone is what its few outstanding I/Os get, not what the disk can do: Little's law
tells.  So there are three counts: by the paper's rule, as VMs demonstrated it
together, and extrapolated from what these got in sum.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.printable import number_of

# Latencies and depths are rounded, and ramp-up counts, too.
_NEAR: Final = 0.05
# What more VMs get in sum, above what one gets, is no noise.
_MORE: Final = 1.10
_OF_ONE: Final = "the latency of one VM, not of the counted VMs"
_OF_SO_MANY: Final = "the latency by Little's law for the counted VMs"
_CACHED: Final = (
    "fio ran without direct=1: these are figures of the page cache, not of the disk; "
    "measure again with --direct=1"
)
_LIMITED: Final = (
    "Little's law: {:.1f} I/Os were outstanding, so that the figures of one VM are "
    "limited by the depth of its queue and are not what the disk can do"
)
_ONE_ONLY: Final = (
    "measured with one VM only: measure several at once (--contended), as neither rule "
    "says what happens then"
)

Count = Literal["rule", "demonstrated", "extrapolated"]


@dataclass(frozen=True, slots=True)
class Figures:
    """The disk figures of one VM, or of one run of fio.

    :ivar read_iops: reads per second, ``write_iops`` writes
    :ivar read_ms: mean latency of a read in milliseconds, None if not known
    :ivar depth: outstanding I/Os that were asked for, None if not known
    :ivar cached: whether I/Os went through the page cache
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
        """Return the mean outstanding I/Os, by Little's law; None if unknown."""
        ways = ((self.read_iops, self.read_ms), (self.write_iops, self.write_ms))
        if any(iops and ms is None for iops, ms in ways):
            return None
        return sum(iops * (ms or 0.0) for iops, ms in ways) / 1000

    @property
    def queue_full(self) -> bool:
        """Return whether the queue was always full; False without latencies.

        Without a known depth: whether outstanding I/Os are near a whole number.
        """
        found = self.outstanding
        if found is None:
            return False
        depth = self.depth or max(round(found), 1)
        return abs(found - depth) <= _NEAR * depth

    @property
    def latency_ms(self) -> float | None:
        """Return the mean latency of reads and writes together; None if unknown."""
        if self.outstanding is None or not self.iops:
            return None
        return self.outstanding / self.iops * 1000


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The I/O promised to each VM; None for no promise.

    :ivar latency_ms: mean latency that no VM may exceed
    """

    read_iops: int | None = None
    write_iops: int | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Consolidation:
    """A number of VMs, and its source.

    :ivar limit: what the count rests on
    :ivar latency_ms: latency at this number of VMs; None if unknown
    :ivar evidence: the figures
    """

    count: Count
    vms: int
    limit: str
    latency_ms: float | None
    evidence: str


@dataclass(frozen=True, slots=True)
class DiskPlan:
    """Counts of VMs with remarks; without contended VMs only that of the rule."""

    counts: tuple[Consolidation, ...]
    remarks: tuple[str, ...] = ()

    def vms(self, count: Count) -> int | None:
        """Return a count; None if the figures for that count were not measured."""
        return next((c.vms for c in self.counts if c.count == count), None)


def plan(
    alone: Figures, guarantee: Guarantee, contended: Sequence[Figures] = ()
) -> DiskPlan:
    """Return how many VMs the disk serves, by each count that was measured.

    :param alone: figures of one VM, without others on the disk
    :param contended: figures of each of several VMs at once
    :raises PerfVMError: when neither reads nor writes are guaranteed
    """
    if guarantee.read_iops is None and guarantee.write_iops is None:
        raise PerfVMError(
            "nothing is guaranteed: give the service read_iops, write_iops or both"
        )
    vms, limit = _fitting(alone, guarantee)
    evidence = f"one VM alone: {_rates(alone)}; {_OF_ONE}"
    counts = [Consolidation("rule", vms, limit, alone.latency_ms, evidence)]
    total = _over(contended, sum)
    if contended:
        counts.append(_demonstrated(contended, guarantee))
        counts.append(_extrapolated(alone, contended, total, guarantee))
    return DiskPlan(tuple(counts), tuple(_remarks(alone, contended, total)))


def _demonstrated(contended: Sequence[Figures], guarantee: Guarantee) -> Consolidation:
    """Count the VMs that ran at once; 0 unless each VM reached the guarantee."""
    least = _over(contended, min)
    broken = [
        f"{kind} {got:g} of {wanted:g}"
        for kind, got, wanted in _promised(least, guarantee)
        if got < wanted
    ]
    # The mean latency of all I/Os, else of reads, else of writes.
    means = all_known(v.latency_ms or v.read_ms or v.write_ms for v in contended)
    slowest_ms, most_ms = max(means, default=None), guarantee.latency_ms
    if most_ms is not None and (slowest_ms is None or slowest_ms > most_ms):
        found = "not measured" if slowest_ms is None else f"{slowest_ms:.4g}"
        broken.append(f"latency {found} of {most_ms:g} ms")
    together = number_of(len(contended), "VM")
    limit = f"{together} at once; more were not measured"
    if broken:
        limit = f"broken with {together}: {', '.join(broken)}"
    evidence = f"the least that one of {together} got: {_rates(least)}"
    vms = 0 if broken else len(contended)
    return Consolidation("demonstrated", vms, limit, slowest_ms, evidence)


def _extrapolated(
    alone: Figures, contended: Sequence[Figures], total: Figures, guarantee: Guarantee
) -> Consolidation:
    """Count how often `total`, the sum of all VMs at once, holds the guarantee."""
    vms, limit = _fitting(total, guarantee)
    # Each VM keeps its number of outstanding I/Os.
    own = all_known(vm.outstanding for vm in contended)
    each = statistics.fmean(own) if own else alone.outstanding
    per_vm_ms = None if each is None or not total.iops else each / total.iops * 1000
    if guarantee.latency_ms is not None and per_vm_ms:
        by_latency = math.floor(guarantee.latency_ms / per_vm_ms)
        if by_latency < vms:
            vms, limit = by_latency, f"latency of {guarantee.latency_ms:g} ms"
    together = number_of(len(contended), "VM")
    limit = f"{limit}; nobody measured more than {together} at once"
    latency_ms = None if per_vm_ms is None or not vms else per_vm_ms * vms
    evidence = f"{together} in sum: {_rates(total)}; {_OF_SO_MANY}"
    return Consolidation("extrapolated", vms, limit, latency_ms, evidence)


def _over(
    contended: Sequence[Figures], of_all: Callable[[list[float]], float]
) -> Figures:
    """Return several VMs' IOPS in sum, or the least IOPS that one of them got."""
    reads = [vm.read_iops for vm in contended]
    writes = [vm.write_iops for vm in contended]
    return Figures(of_all(reads), of_all(writes))


def all_known(values: Iterable[float | None]) -> list[float]:
    """Return the values; an empty list if one of the values is None."""
    found = list(values)
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else []


def _rates(of: Figures) -> str:
    return f"{of.read_iops:g} reads, {of.write_iops:g} writes a second"


def _promised(got: Figures, guarantee: Guarantee) -> Iterator[tuple[str, float, int]]:
    """Yield (kind, IOPS got, IOPS promised) of reads, writes or both, as promised."""
    if guarantee.read_iops is not None:
        yield "reads", got.read_iops, guarantee.read_iops
    if guarantee.write_iops is not None:
        yield "writes", got.write_iops, guarantee.write_iops


def _fitting(got: Figures, guarantee: Guarantee) -> tuple[int, str]:
    """Return how often figures hold the guarantee, and the limit: reads: 900 / 300."""
    return min(
        (math.floor(there / wanted), f"{kind}: {there:g} / {wanted:g}")
        for kind, there, wanted in _promised(got, guarantee)
    )


def _remarks(
    alone: Figures, contended: Sequence[Figures], total: Figures
) -> Iterator[str]:
    # One run alone shows only that its queue was full.
    limited = not contended or total.iops > _MORE * alone.iops
    if any(figures.cached for figures in (alone, *contended)):
        yield _CACHED
    if alone.outstanding is None:
        yield "no latencies: whether the queue's depth is the limit is not known"
    elif alone.queue_full and limited:
        together = number_of(len(contended), "VM")
        more = f" ({together} got {total.iops:g} a second in sum)" if contended else ""
        yield _LIMITED.format(alone.outstanding) + more
    if not contended:
        yield _ONE_ONLY

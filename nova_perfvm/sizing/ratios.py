# SPDX-License-Identifier: Apache-2.0
"""The part of a physical server that VMs reach, measured or of a source document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.findings import Level

if TYPE_CHECKING:
    from nova_perfvm.measure.statistics.compare import Comparison
    from nova_perfvm.measure.statistics.scaling import ScalingFinding

# The document with both ratios, of CPUs and of the network.
DEFAULT: Final = "ly"
_NOT_COMPARED: Final = "wake-ups of VMs were not compared with the host's"


@dataclass(frozen=True, slots=True)
class VMRatios:
    """Ratios of VMs to a server, with the planned number of VMs on a host.

    :ivar source: names of the documents or files
    :ivar measured: whether all ratios were measured, not taken from documents
    :ivar cpu: throughput of a VM / of as many CPUs of a host; None if unknown
    :ivar network: throughput of a VM / its even share of the host's link; None if
        unknown
    :ivar scale_out: {number of servers of a service: throughput of each / of one
        alone}
    :ivar most_vcpus: largest VM whose throughput still grew with its vCPUs; None if
        unknown
    :ivar late: why late wake-ups of VMs are not excluded; empty if they are
    """

    source: str
    measured: bool = False
    cpu: float | None = None
    network: float | None = None
    scale_out: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    most_vcpus: int | None = None
    late: str = _NOT_COMPARED

    def linearity(self, servers: int) -> float:
        """Return the throughput of one of several servers / of a server alone.

        Interpolates from 1 for one server; beyond the largest number its value holds.
        """
        points = sorted(({1: 1.0} | dict(self.scale_out)).items())
        below = max(point for point in points if point[0] <= servers)
        above = min((p for p in points if p[0] >= servers), default=below)
        if below == above:
            return below[1]
        part = (servers - below[0]) / (above[0] - below[0])
        return below[1] + part * (above[1] - below[1])

    def with_cpu(self, cpu: float) -> VMRatios:
        """Return the ratios with another one of CPUs, to show what depends on it."""
        return replace(self, cpu=cpu)


DOCUMENTS: Final = {
    # Two VMs at once: the CPU with 16 threads (VM 2), the network with 8 (VM 2),
    # against half of what the host did.
    "ly": VMRatios(
        "LY",
        cpu=13094.76 / 14485.46,
        network=7.52 / (23.5 / 2),
        late="LY's VM was late by up to 13.38 ms, its host by 0.66 ms",
    ),
    # 8 % more than Linux, which gains 17 % if it is bound to NUMA nodes, too.
    "vmware": VMRatios("VMWARE", cpu=1.08 / 1.17),
    # VMs of 40 cores and more do less than smaller ones.
    "etri": VMRatios("ETRI", most_vcpus=39),
    # The second attempt, with the doubled load generator.
    "rps": VMRatios("RPS", scale_out={2: 1.0, 10: 0.617}),
}


def joined(parts: Iterable[VMRatios]) -> VMRatios:
    """Return the ratios of several sources; the last that has a ratio holds.

    :raises PerfVMError: when no source has a ratio of CPUs
    """
    found = VMRatios("", measured=True)
    for part in parts:
        found = VMRatios(
            ", ".join(filter(None, (found.source, part.source))),
            found.measured and part.measured,
            part.cpu or found.cpu,
            part.network or found.network,
            part.scale_out or found.scale_out,
            part.most_vcpus or found.most_vcpus,
            found.late if part.late == _NOT_COMPARED else part.late,
        )
    if found.cpu is None:
        having = [name for name, of in DOCUMENTS.items() if of.cpu]
        raise PerfVMError(
            f"{found.source} has no ratio of CPUs: add --ratios {' or '.join(having)}, "
            "or name measurements of the host and its VMs with --record"
        )
    return found


def of_records(paths: Sequence[str]) -> VMRatios:
    """Return the ratios of records of proofs, or of measurements, taken together.

    CPU and network: the worst VM while the most VMs ran.  Files without a host have
    the sum of VMs at once / one VM alone instead (ETRI).

    :raises PerfVMError: when a file cannot be used
    """
    # Statistics need the extra [measure].
    from nova_perfvm.measure.report import content  # noqa: PLC0415

    found = content.read(paths)
    rows, scaled = found.comparisons, found.scaling
    return VMRatios(
        ", ".join(paths),
        measured=True,
        cpu=_worst(rows, "cpu") or _of_alone(scaled, "cpu"),
        network=_worst(rows, "network") or _of_alone(scaled, "network"),
        scale_out={r.number: r.observed for r in scaled if r.what == "linearity"},
        late=_late(rows),
    )


def _worst(rows: Iterable[Comparison], kind: str) -> float | None:
    """Return a resource's lowest throughput ratio while the most VMs were measured."""
    mine = [r for r in rows if r.better == "higher" and _kind(r.group.metric) == kind]
    most = max((row.group.at_once for row in mine), default=0)
    return min(
        (found.ratio for r in mine if r.group.at_once == most and (found := r.judged)),
        default=None,
    )


def _of_alone(scaled: Iterable[ScalingFinding], kind: str) -> float | None:
    """Return a resource's lowest sum of the most VMs at once / one VM alone."""
    mine = [r for r in scaled if r.what == "of alone" and _kind(r.name) == kind]
    most = max((row.number for row in mine), default=0)
    return min((row.observed for row in mine if row.number == most), default=None)


def _kind(metric: str) -> str:
    """Return the resource of a metric; the work of a whole service is CPU time."""
    first = metric.split(".", maxsplit=1)[0]
    return first if first in {"memory", "network", "disk"} else "cpu"


def _late(rows: Iterable[Comparison]) -> str:
    """Return why latencies do not exclude late wake-ups; empty if they do."""
    mine = [row for row in rows if "latency" in row.group.metric]
    if not mine:
        return "the record has no latencies"
    bad = [row for row in mine if row.level is not Level.OK]
    return f"{bad[0].group}: {bad[0].reason}" if bad else ""

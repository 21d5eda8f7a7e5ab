# SPDX-License-Identifier: Apache-2.0
"""What files of measurements show: comparisons, scaling, failures, machines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm.documents.document import (
    SCHEMA_VERSION,
    kind_of,
    parse_document,
    read_text,
)
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import busy_vms
from nova_perfvm.measure.bench.record import reading_run
from nova_perfvm.measure.samples import Samples
from nova_perfvm.measure.statistics import scaling
from nova_perfvm.measure.statistics.compare import (
    LATENCY_TARGET,
    TARGET,
    CannotCompareError,
    Comparison,
    compare,
)
from nova_perfvm.measure.statistics.scaling import ScalingFinding

_FEATURES: Final = ("hostname", "kernel", "cpu_model", "governor")


@dataclass(frozen=True, slots=True)
class Content:
    """Comparisons, scaling, failures and machines of files of measurements.

    :ivar comparisons: VMs against hosts; without any, ``not_compared`` is the reason
    :ivar scaling: findings by number of VMs at once, or of servers
    :ivar remarks: causes of doubt about ratios
    :ivar failures: (step, target, reason, output of the tool) of failed measurements
    :ivar machines: (name, hostname, kernel, CPU, governor, tools, clock) of each target
        when it was measured
    """

    files: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    scaling: tuple[ScalingFinding, ...] = ()
    not_compared: str = ""
    remarks: tuple[str, ...] = ()
    failures: tuple[tuple[str, ...], ...] = ()
    machines: tuple[tuple[str, ...], ...] = ()


def read(
    files: Sequence[str],
    *,
    target: float = TARGET,
    latency_target: float = LATENCY_TARGET,
    vms: int | None = None,
) -> Content:
    """Return the content of files of measurements, or of records of proofs.

    :param target: and ``latency_target``, ``vms``: as :func:`compare` takes them
    :raises PerfVMError: when a file has mistakes, or no file has figures
    """
    parts = {file: _samples(file) for file in files}
    whole = samples.joined(parts)
    comparisons: list[Comparison] = []
    not_compared = ""
    try:
        comparisons = compare(
            whole.measurements, target=target, latency_target=latency_target, vms=vms
        )
    except CannotCompareError as exc:
        not_compared = str(exc)
    scaled = scaling.judge_all(whole, target)
    if not_compared and not scaled:
        raise PerfVMError(not_compared)
    remarks = [remark for row in comparisons for remark in row.remarks]
    failures: list[tuple[str, ...]] = []
    # The last session says how it is now.
    machines: dict[str, tuple[str, ...]] = {}
    for file, part in parts.items():
        with reading_run(file):
            remarks += _busy(part.run)
            for session in part.run.get("sessions", ()):
                for who, look in session["targets"].items():
                    machines[who] = _machine(who, look)
            for one in part.run.get("failures", ()):
                told = (one["where"], one["who"], one["reason"], one.get("stderr", ""))
                failures.append(tuple(map(str, told)))
    return Content(
        files=tuple(files),
        comparisons=tuple(comparisons),
        scaling=tuple(scaled),
        not_compared=not_compared,
        remarks=tuple(dict.fromkeys(remarks)),
        failures=tuple(failures),
        machines=tuple(machines.values()),
    )


def _samples(path: str) -> Samples:
    """Return the measurements of a file, or those in a record of a proof."""
    text, source = read_text(["measurements", "proof"], path)
    if kind_of(text) != "proof":
        return parse_document("measurements", Samples, text, source)
    record = json.loads(text)
    measured = _part(record, "measured", source)
    baseline = (
        _part(record, "baseline", source).measurements if record.get("baseline") else ()
    )
    of_host = (m for m in baseline if m.machine.kind == "host")
    return Samples((*measured.measurements, *of_host), (), measured.run)


def _part(record: Mapping[str, Any], key: str, source: str) -> Samples:
    """Return the measurements in a part of a proof's record."""
    part = record.get(key) or {}
    if isinstance(part, dict):
        part = {"schema_version": SCHEMA_VERSION} | part
    text = json.dumps(part)
    return parse_document("measurements", Samples, text, f"{source}: {key}")


def _busy(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield which hosts were measured beside VMs that perhaps were busy."""
    if "scenario" in run:
        for who, one in busy_vms.of_hosts(run).items():
            if one.doubt:
                yield f"{who}: {one.doubt}"


def _machine(who: str, look: Mapping[str, Any]) -> tuple[str, ...]:
    clock = look.get("clock")
    words = "the same" if clock else "unknown"
    if clock and (around_s := clock.get("uncertainty_s")):
        words = f"{1000 * clock['offset_s']:+.1f} ms ± {1000 * around_s:.1f}"
    versions = look.get("versions", {}).items()
    return (
        who,
        *(str(look.get(key) or "unknown") for key in _FEATURES),
        ", ".join(f"{name} {version}" for name, version in versions),
        words,
    )

# SPDX-License-Identifier: Apache-2.0
"""Metrics in Prometheus' text format, for node_exporter's textfile collector."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from nova_perfvm.diagnose.audit import AuditReport
from nova_perfvm.diagnose.overview import Overview
from nova_perfvm.findings import LEVELS
from nova_perfvm.printable import printable

if TYPE_CHECKING:
    from nova_perfvm.measure.checks.report import CheckReport

# Labels, {name: value}, and the sample's value.
Sample = tuple[Mapping[str, str], int]


def prometheus(report: AuditReport | CheckReport) -> str:
    """Return a report as metrics; a code without findings has a sample of 0."""
    if not isinstance(report, AuditReport):
        return _of_machine(report)
    findings = [
        ({"code": code, "level": LEVELS[code].value}, count)
        for code, count in report.by_code().items()
    ]
    accepted = [
        ({"code": code}, count) for code, count in report.accepted_by_code().items()
    ]
    return (
        _gauge("audit_findings", "Violations of the policy.", findings)
        + _gauge("audit_accepted", "Findings that the policy accepts.", accepted)
        + _gauge("audit_hosts", "Compute hosts looked at.", [({}, report.hosts)])
        + _gauge("audit_servers", "Servers looked at.", [({}, report.servers)])
        + _looked("audit", report.taken_at)
    )


def _of_machine(report: CheckReport) -> str:
    machine = {"kind": report.kind, "hostname": report.hostname}
    found = (
        (
            machine | {"code": result.code, "level": level.value},
            sum(finding.level is level for finding in result.findings),
        )
        for result in report.results
        for level in report.counted
    )
    findings = _gauge("check_findings", "What checks of a machine found.", found)
    return findings + _looked("check", report.taken_at, machine)


def overview(found: Overview) -> str:
    hosts = [({"host": s.name, "class": s.class_name}, s) for s in found.slots]
    named = [({"flavor": f.flavor, "class": f.class_name}, f) for f in found.flavors]
    text = prometheus(found.report)
    for name, key, meaning in (
        ("slots", "total", "Servers that the empty host would take."),
        ("slots_used", "used", "Slots that servers of the class occupy."),
        ("slots_free", "free", "Slots that the next servers would get."),
        ("slots_unfit", "unfit", "Slots that are neither used nor free."),
    ):
        text += _gauge(name, meaning, [(of, getattr(s, key)) for of, s in hosts])
    text += _gauge(
        "hosts_accepting",
        "Hosts that would take a new server of the flavor.",
        [(labels, flavor.accepting) for labels, flavor in named],
    )
    refusals = [
        (labels | {"code": code}, count)
        for labels, flavor in named
        for code, count in flavor.by_code().items()
    ]
    meaning = "Hosts that would refuse a new server, counted under each reason."
    return text + _gauge("hosts_refusing", meaning, refusals)


def _looked(what: str, taken_at: str, labels: Mapping[str, str] | None = None) -> str:
    seconds = int(dt.datetime.fromisoformat(taken_at).timestamp())
    meaning = "Time of the audit or check, in seconds since the epoch."
    return _gauge(f"{what}_timestamp_seconds", meaning, [(labels or {}, seconds)])


def _gauge(name: str, meaning: str, samples: Iterable[Sample]) -> str:
    """Return a metric with its samples in the given order."""
    lines = [f"# HELP perfvm_{name} {meaning}", f"# TYPE perfvm_{name} gauge"]
    for labels, value in samples:
        pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        shown = f"{{{pairs}}}" if pairs else ""
        lines.append(f"perfvm_{name}{shown} {value}")
    return "".join(f"{line}\n" for line in lines)


def _escaped(text: str) -> str:
    """Return a label's value with backslash, quote and line break escaped.

    Prometheus' text format knows only these escapes.
    """
    shown = printable(text).replace("\\", r"\\").replace('"', r"\"")
    return shown.replace("\n", r"\n")

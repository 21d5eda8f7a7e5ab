# SPDX-License-Identifier: Apache-2.0
"""What is said about a cloud in Prometheus' text format."""

from __future__ import annotations

from nova_perfvm.diagnose.audit import AuditReport
from nova_perfvm.diagnose.overview import Overview
from nova_perfvm.findings import LEVELS
from nova_perfvm.osc.formats import metrics


def prometheus(report: AuditReport) -> str:
    """Return metrics for node_exporter's textfile collector, always the same ones."""
    findings = (
        ({"code": code, "level": LEVELS[code].value}, count)
        for code, count in report.by_code().items()
    )
    accepted = (
        ({"code": code}, count) for code, count in report.accepted_by_code().items()
    )
    return "".join(
        metrics.gauge(f"perfvm_audit_{name}", meaning, samples)
        for name, meaning, samples in (
            ("findings", "Violations of the policy that an audit found.", findings),
            ("accepted", "Findings that the policy accepts.", accepted),
            ("hosts", "Compute hosts that were looked at.", [({}, report.hosts)]),
            ("servers", "Servers that were looked at.", [({}, report.servers)]),
            (
                "timestamp_seconds",
                "When the cloud was looked at, in seconds since the epoch.",
                [({}, metrics.seconds(report.taken_at))],
            ),
        )
    )


def overview(found: Overview) -> str:
    """Return the audit's metrics, and those of slots and of refusals."""
    return prometheus(found.report) + _slots(found) + _refusals(found)


def _slots(found: Overview) -> str:
    return "".join(
        metrics.gauge(
            f"perfvm_slots{name}",
            meaning,
            [
                ({"host": slots.name, "class": slots.class_name}, getattr(slots, key))
                for slots in found.slots
            ],
        )
        for name, key, meaning in (
            ("", "total", "Servers of the class that the empty host would take."),
            ("_used", "used", "Slots that servers of the class have."),
            ("_free", "free", "Slots that the next servers would get."),
            ("_unfit", "unfit", "Slots that are neither used nor free."),
        )
    )


def _refusals(found: Overview) -> str:
    """Return how many hosts would take a new server, and why the others would not."""
    named = [({"flavor": f.flavor, "class": f.class_name}, f) for f in found.flavors]
    return metrics.gauge(
        "perfvm_hosts_accepting",
        "Hosts that would take a new server of the flavor.",
        [(labels, flavor.accepting) for labels, flavor in named],
    ) + metrics.gauge(
        "perfvm_hosts_refusing",
        "Hosts that would not, by reason; one with several counts for each.",
        [
            (labels | {"code": code}, count)
            for labels, flavor in named
            for code, count in flavor.by_code().items()
        ],
    )

# SPDX-License-Identifier: Apache-2.0
"""From files to a judged record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nova_perfvm.measure.prove import record, regression
from nova_perfvm.measure.prove.inputs import Inputs, Mistakes
from nova_perfvm.measure.prove.judge import Judged, judge, worst_first
from nova_perfvm.measure.prove.record import Document
from nova_perfvm.measure.statistics.compare import LATENCY_TARGET, TARGET


def make(
    read: Callable[[], Inputs],
    *,
    made_at: str,
    target: float = TARGET,
    latency_target: float = LATENCY_TARGET,
    previous: str | None = None,
    signed_off_by: str | None = None,
) -> tuple[Judged, Document]:
    """Read, judge and record.

    :param read: returns what a certificate is made of
    :param made_at: now, ISO 8601, UTC
    :param previous: an earlier record that nothing may be worse than
    :param signed_off_by: who answers for it, as said
    :raises InputsError: with all mistakes of all files
    """
    mistakes = Mistakes()
    inputs = mistakes.of(read)
    before = mistakes.of(record.read, previous) if previous else None
    if mistakes.found or inputs is None:
        raise mistakes.error()
    judged = judge(inputs, target, latency_target)
    found = record.document(judged, made_at, signed_off_by)
    if before is None:
        return judged, found
    worse, remarks = regression.find(before, found)
    judged = replace(judged, reasons=worst_first((*judged.reasons, *worse)))
    noted = {
        "path": previous,
        **{key: before[key] for key in ("sha256", "verdict", "made_at")},
        "regressions": len(worse),
        "remarks": remarks,
    }
    return judged, record.compared(found, judged, noted)

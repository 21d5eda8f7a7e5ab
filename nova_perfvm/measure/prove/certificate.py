# SPDX-License-Identifier: Apache-2.0
"""From files to a judged record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.prove import record, regression
from nova_perfvm.measure.prove.inputs import Inputs, InputsError
from nova_perfvm.measure.prove.judge import Judged, judge, worst_first
from nova_perfvm.measure.prove.record import Document


def make(
    read: Callable[..., Inputs],
    *,
    within_s: float,
    target: float,
    latency_target: float,
    previous: str | None,
    signed_off_by: str | None,
    made_at: str,
) -> tuple[Judged, Document]:
    """Read, judge and record.

    :param read: returns what a certificate is made of, given ``within_s``
    :param previous: an earlier record that nothing may be worse than
    :param signed_off_by: who answers for it, as said
    :param made_at: now, ISO 8601, UTC
    :raises InputsError: with all mistakes of all files
    """
    mistakes: list[str] = []
    before = inputs = None
    try:
        inputs = read(within_s=within_s)
    except InputsError as exc:
        mistakes += exc.mistakes
    if previous is not None:
        try:
            before = record.read(previous)
        except PerfVMError as exc:
            mistakes.append(str(exc))
    if mistakes or inputs is None:
        raise InputsError(mistakes)
    return of_inputs(
        inputs,
        target=target,
        latency_target=latency_target,
        made_at=made_at,
        signed_off_by=signed_off_by,
        before=before,
        path=previous,
    )


def of_inputs(
    inputs: Inputs,
    *,
    target: float,
    latency_target: float,
    made_at: str,
    signed_off_by: str | None = None,
    before: Document | None = None,
    path: str | None = None,
) -> tuple[Judged, Document]:
    """Judge and record what was read.

    :param before: an earlier record, and ``path`` where it is
    """
    judged = judge(inputs, target, latency_target)
    found = record.document(judged, made_at, signed_off_by)
    if before is None:
        return judged, found
    worse = regression.find(before, judged, found)
    reasons = worst_first((*judged.reasons, *worse.reasons))
    judged = replace(judged, reasons=reasons)
    noted = {
        "path": path,
        "sha256": before["sha256"],
        "verdict": before["verdict"],
        "made_at": before["made_at"],
        "regressions": len(worse.reasons),
        "remarks": list(worse.remarks),
    }
    return judged, record.document(judged, made_at, signed_off_by, noted)

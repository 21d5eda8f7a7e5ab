# SPDX-License-Identifier: Apache-2.0
"""A proof as one HTML page that needs nothing else: the verdict first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nova_perfvm.findings import Finding
from nova_perfvm.measure.prove import promise, promised_iops
from nova_perfvm.measure.prove.judge import Judged
from nova_perfvm.measure.prove.provenance import ProofRecord
from nova_perfvm.measure.report.answer import MEASURED
from nova_perfvm.measure.report.page import of_comparisons
from nova_perfvm.measure.statistics.verdict import OF_PROOF
from nova_perfvm.pages import render_page

_ALL_HOLDS: Final = "All that the promise rests on was seen, and holds."


def html(record: ProofRecord, judged: Judged) -> str:
    """Return the page of a record, and of what was judged by it."""
    inputs = judged.inputs
    return render_page(
        "proof.html",
        **of_comparisons(judged.comparisons),
        title=f"Flavor {inputs.flavor.name} on {inputs.host.collected.hostname}",
        verdict=judged.verdict,
        look="unknown" if judged.no_proof else judged.level.value,
        words=_ALL_HOLDS if judged.proven else "",
        reasons=list(_reasons(judged)),
        conditions=list(map(_warning, judged.conditions)),
        warnings=[_warning(w) for w in judged.warnings if w not in judged.conditions],
        judged=judged,
        made_of=record.made_of,
        promised=[
            *promise.words(inputs.flavor, inputs.vm_class),
            *(f"{words}, while all ran" for words in promised_iops.worst(inputs)),
        ],
    )


def _reasons(judged: Judged) -> Iterator[tuple[str, ...]]:
    """Yield (level, heading, subjects, text, remedy) for each reason."""
    for reason in judged.no_proof:
        yield "unknown", MEASURED, "", reason, ""
    alike: dict[tuple[str, ...], list[str]] = {}
    for one in judged.reasons:
        heading = f"{OF_PROOF[one.level].lower()}: {one.code}"
        key = (one.level.value, heading, one.observed, one.remedy)
        alike.setdefault(key, []).append(f"{one.source} {one.subject}".strip())
    for (look, heading, text, remedy), things in alike.items():
        yield look, heading, "; ".join(things), text, remedy


def _warning(one: Finding) -> str:
    if not one.expected:
        return one.observed
    told = f"{one.code}: {one.subject}: {one.expected}: found {one.observed}"
    return f"{told}; {one.remedy}"

# SPDX-License-Identifier: Apache-2.0
"""A certificate as one HTML page that needs nothing else: the verdict first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nova_perfvm.measure.prove.record import Document
from nova_perfvm.measure.report.page import of_comparisons
from nova_perfvm.measure.statistics.compare import Comparison
from nova_perfvm.measure.statistics.verdict import OF_CERTIFICATE
from nova_perfvm.pages import render_page

_LOOKS: Final = {word: level.value for level, word in OF_CERTIFICATE.items()}
_ALL_HOLDS: Final = "All that the promise rests on was seen, and holds."


def html(record: Document, comparisons: Sequence[Comparison]) -> str:
    """Return the page of a record, and of the comparisons that are in it."""
    promised = record["promised"]
    ratios = (
        f"at least {promised['target']:g} of the host's throughput, at most "
        f"{promised['latency_target']:g} times its latency"
    )
    return render_page(
        "certificate.html",
        **of_comparisons(comparisons),
        title=f"Flavor {promised['flavor']} on {record['host']['hostname']}",
        verdict=record["verdict"],
        look=_LOOKS[record["verdict"]],
        words="" if record["reasons"] else _ALL_HOLDS,
        reasons=list(_reasons(record)),
        warnings=record["warnings"],
        record=record,
        promised_words=[*promised["words"], ratios],
        tools=[f"{name} {', '.join(v)}" for name, v in record["tools"].items()],
    )


def _reasons(record: Document) -> Iterator[tuple[str, ...]]:
    """Yield why it is not certified; what is said of many things once."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for one in record["reasons"]:
        key = (one["verdict"], one["code"], one["text"], one["remedy"])
        about = f"{one['where']} {one['subject']}".strip()
        alike.setdefault(key, []).append(about)
    for (verdict, code, text, remedy), things in alike.items():
        heading = f"{verdict}: {code}"
        yield _LOOKS[verdict], heading, "; ".join(things), text, remedy

# SPDX-License-Identifier: Apache-2.0
"""A certificate as one HTML page that needs nothing else: the verdict first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nova_perfvm.measure.prove.record import Document
from nova_perfvm.measure.report.page import of_comparisons
from nova_perfvm.measure.statistics.compare import Comparison
from nova_perfvm.pages import date_words, render_page

_LOOKS: Final = {"certified": "ok", "not proven": "warning", "refused": "failure"}
_ALL_HOLDS: Final = "All that the promise rests on was seen, and holds."
_OF_A_VM: Final = ("hostname", "domain", "uuid", "who", "taken_at", "known_by")


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
        checks=[_checks(section) for section in record["checks"]],
        vms=[_words(vm) for vm in record["vms"]],
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


def _checks(section: Document) -> tuple[str, Document, list[Document]]:
    name = f"{section['kind']} {section['hostname']}"
    if section["kind"] == "files":
        name = "the files together"
    return name, section, [o for r in section["results"] for o in r["findings"]]


def _words(vm: Document) -> list[str]:
    words = {key: vm.get(key) or "" for key in _OF_A_VM}
    return list((words | {"taken_at": date_words(words["taken_at"])}).values())

# SPDX-License-Identifier: Apache-2.0
"""A certificate as one HTML page that needs nothing else: the verdict first."""

from __future__ import annotations

from typing import Final

from nova_perfvm.measure.prove.record import Document
from nova_perfvm.pages import date_words, render_page

_LOOKS: Final = {
    "certified": "ok",
    "not proven": "warning",
    "refused": "failure",
    "pass": "ok",
    "inconclusive": "warning",
    "fail": "failure",
}
_OF_A_VM: Final = ("hostname", "domain", "uuid", "who", "taken_at", "known_by")


def html(record: Document) -> str:
    """Return the page of a record."""
    promised = record["promised"]
    ratios = (
        f"at least {promised['target']:g} of the host's throughput, at most "
        f"{promised['latency_target']:g} times its latency"
    )
    return render_page(
        "certificate.html",
        record=record,
        looks=_LOOKS,
        promised_words=[*promised["words"], ratios],
        comparisons=[
            (_LOOKS[row["verdict"]], row["verdict"], row)
            for row in record["comparisons"]
        ],
        checks=[_checks(section) for section in record["checks"]],
        vms=[_words(vm) for vm in record["vms"]],
        tools=[f"{name} {', '.join(v)}" for name, v in record["tools"].items()],
    )


def _checks(section: Document) -> tuple[str, Document, list[Document]]:
    name = f"{section['kind']} {section['hostname']}"
    if section["kind"] == "files":
        name = "the files together"
    return name, section, [o for r in section["results"] for o in r["findings"]]


def _words(vm: Document) -> list[str]:
    words = {key: vm.get(key) or "" for key in _OF_A_VM}
    return list((words | {"taken_at": date_words(words["taken_at"])}).values())

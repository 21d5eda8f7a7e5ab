# SPDX-License-Identifier: Apache-2.0
"""A certificate as one HTML page that needs nothing else: the verdict first."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from nova_perfvm.measure.certify.record import Document
from nova_perfvm.measure.report import style
from nova_perfvm.measure.report.elements import (
    bullets,
    cell,
    date_words,
    digest,
    moment,
    sentence,
    table,
)

_CLASSES: Final = {
    "certified": "ok",
    "not proven": "warning",
    "refused": "critical",
    "pass": "ok",
    "skip": "unknown",
    "warn": "warning",
    "inconclusive": "warning",
    "fail": "critical",
}


def html(record: Document) -> str:
    """Return the page of a record."""
    promised = record["promised"]
    verdict = record["verdict"]
    title = f"Flavor {promised['flavor']} on {record['host']['hostname']}"
    body = [
        f"<h1>{escape(title)}</h1>\n",
        f'<p class="verdict {_CLASSES[verdict]}">{escape(verdict)}</p>\n',
        f'<p class="facts">made {moment(record["made_at"])}'
        + (
            f", signed off by {escape(record['signed_off_by'])}"
            if record["signed_off_by"]
            else ", signed off by nobody"
        )
        + f"<br>record {digest(record['sha256'])}: a checksum, "
        "which shows accidental changes; no signature</p>\n",
        _reasons(record["reasons"]),
        bullets("Warnings", record["warnings"]),
        _promised(promised),
        _previous(record["previous"]),
        _comparisons(record["comparisons"]),
        _checks(record["checks"]),
        _seen(record),
    ]
    return style.document(f"{title}: {verdict}", "".join(body))


def _reasons(reasons: Iterable[Document]) -> str:
    found = "".join(
        f'<article class="{_CLASSES[one["verdict"]]}"><p class="code">'
        f"{escape(one['verdict'])}: {escape(one['code'])}</p>"
        f"<p><b>{escape(' '.join((one['where'], one['subject'])).strip())}</b></p>"
        f"<p>{escape(one['text'])}</p>"
        + (f"<pre>{escape(one['remedy'])}</pre>" if one["remedy"] else "")
        + "</article>\n"
        for one in reasons
    )
    if not found:
        return '<p class="ok">All that the promise rests on was seen, and holds.</p>\n'
    return f"<h2>Why</h2>\n{found}"


def _promised(promised: Document) -> str:
    ratios = (
        f"at least {promised['target']:g} of the host's throughput, at most "
        f"{promised['latency_target']:g} times its latency"
    )
    return bullets("Promised", [*promised["words"], ratios]) + (
        f'<p class="facts">class {escape(promised["class"])}; policy '
        f"{digest(promised['policy_sha256'])}</p>\n"
    )


def _previous(previous: Document | None) -> str:
    if previous is None:
        return ""
    text = (
        f"{previous['path']}, {previous['verdict']}, made "
        f"{date_words(previous['made_at'])}, sha256 {previous['sha256'][:8]}: "
        f"{previous['regressions']} thing(s) are worse"
    )
    return bullets("Against the record before", [text, *previous["remarks"]])


def _comparisons(rows: Iterable[Document]) -> str:
    head = (
        *("Verdict", "Metric", "VM", "Threads", "At once"),
        *("VM / host", "VM / share", "Target", "Reason"),
    )
    cells = [
        (
            _status(row["verdict"]),
            *map(cell, (row["metric"], row["who"], row["threads"], row["at_once"])),
            *(
                cell(_ratio(row[f"vs_{name}"], marked=name == row["against"]))
                for name in ("host", "share")
            ),
            cell(
                ("≥ " if row["better"] == "higher" else "≤ ") + f"{row['target']:.3g}"
            ),
            sentence(row["reason"]),
        )
        for row in rows
    ]
    return (
        f"<h2>VM against host</h2>\n{table(head, cells, 'Comparisons')}"
        '<p class="note">In brackets: 95 % interval. The ratio that the target is for '
        "has a *.</p>\n"
    )


def _ratio(found: Document | None, *, marked: bool) -> str:
    if found is None:
        return ""
    mark = "*" if marked else ""
    if found["low"] is None or found["high"] is None:
        return f"{found['ratio']:.3f}{mark}"
    return f"{found['ratio']:.3f}{mark} ({found['low']:.3f}-{found['high']:.3f})"


def _checks(sections: Iterable[Document]) -> str:
    return "".join(map(_section, sections))


def _section(section: Document) -> str:
    head = ("Status", "Code", "Subject", "Expected", "Observed", "Source")
    rows = [
        (
            _status(one["status"]),
            *map(
                cell,
                (
                    *(one["code"], one["subject"]),
                    *(one["expected"], one["observed"], one["source"]),
                ),
            ),
        )
        for result in section["results"]
        for one in result["outcomes"]
    ]
    name = (
        "the files together"
        if section["kind"] == "files"
        else (f"{section['kind']} {section['hostname']}")
    )
    return (
        f"<h2>Checks of {escape(name)}</h2>\n<details><summary>{len(rows)} things, "
        f"seen {moment(section['taken_at'])}</summary>"
        f"{table(head, rows, f'Checks of {name}')}</details>\n"
    )


def _seen(record: Document) -> str:
    vms = [
        (
            *(cell(vm.get(key) or "") for key in ("hostname", "domain", "uuid", "who")),
            *(
                cell(date_words(vm.get("taken_at") or "")),
                cell(vm.get("known_by") or ""),
            ),
        )
        for vm in record["vms"]
    ]
    head = ("VM", "Domain", "UUID", "In the samples", "Collected", "Known by")
    inputs = [
        (cell(one["role"]), cell(one["path"]), f"<td>{digest(one['sha256'])}</td>")
        for one in record["inputs"]
    ]
    tools = [f"{name} {', '.join(v)}" for name, v in record["tools"].items()]
    return (
        f"<h2>VMs</h2>\n{table(head, vms, 'VMs')}"
        f"<h2>Files</h2>\n{table(('What', 'File', 'SHA-256'), inputs, 'Files')}"
        + bullets("Tools", tools)
    )


def _status(word: str) -> str:
    return f'<td class="{_CLASSES[word]}">{escape(word)}</td>'

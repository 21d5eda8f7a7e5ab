# SPDX-License-Identifier: Apache-2.0
"""The record of a certificate: JSON with a checksum of its own.

The checksum shows that a record was changed by mistake or by hand.  It is no
signature of cryptography: whoever changes a record can compute it anew.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from nova_perfvm.documents.document import SCHEMA_VERSION, load_document, parse_document
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.findings import Finding
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.prove import promise
from nova_perfvm.measure.prove.inputs import EvidenceFile, Guest
from nova_perfvm.measure.prove.judge import Judged, Section, Shortfall
from nova_perfvm.measure.statistics.compare import Comparison

Document = dict[str, Any]
_SUM: Final = "sha256"
_NAME: Final = "nova-perfvm"


def document(
    judged: Judged,
    made_at: str,
    signed_off_by: str | None = None,
    previous: Mapping[str, Any] | None = None,
) -> Document:
    """Return a record, with its checksum.

    :param made_at: now, ISO 8601, UTC
    :param signed_off_by: who answers for it, as said
    :param previous: what was found against an earlier record
    """
    inputs = judged.inputs
    host = inputs.host.collected
    found: Document = {
        "kind": "certificate",
        "schema_version": SCHEMA_VERSION,
        "verdict": judged.verdict.value,
        "made_at": made_at,
        "signed_off_by": signed_off_by,
        "reasons": [_reason(reason) for reason in judged.reasons],
        "warnings": [_warning(one) for one in judged.warnings],
        "promised": {
            "flavor": inputs.flavor.name,
            "class": inputs.vm_class.name,
            "words": list(promise.words(inputs.flavor, inputs.vm_class)),
            "extra_specs": dict(inputs.flavor.extra_specs),
            "target": judged.target,
            "latency_target": judged.latency_target,
            "within_s": inputs.within_s,
            "policy_sha256": inputs.policy.digest,
            "policy": inputs.policy.as_document(),
        },
        "host": {
            "hostname": host.hostname,
            "taken_at": host.taken_at,
            "interval_s": host.interval_s,
        },
        "vms": _vms(judged),
        "measured": _run(judged),
        "checks": [_section(section) for section in judged.sections],
        "comparisons": [comparison(row) for row in judged.comparisons],
        "tools": _tools(judged),
        "inputs": [EvidenceFile._asdict(source) for source in inputs.sources],
        "previous": dict(previous) if previous else None,
    }
    # As it is when it is read again: JSON has lists only.
    found = json.loads(json.dumps(found, allow_nan=False))
    return found | {_SUM: checksum(found)}


def checksum(found: Mapping[str, Any]) -> str:
    """Return SHA-256 of what a record says, its checksum left out, in hex."""
    rest = {key: value for key, value in found.items() if key != _SUM}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def dumps(found: Document) -> str:
    """Return the JSON of a record."""
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def read(path: str) -> Document:
    """Return an earlier record.

    :raises DocumentError: when it is none, or was changed since it was made
    :raises UnreadableFileError: when it cannot be read
    """
    return load_document("certificate", Document, path, check=_changed)


def loads(text: str, source: str) -> Document:
    """Return the record that JSON has.

    :raises DocumentError: when it is none, or was changed since it was made
    """
    return parse_document("certificate", Document, text, source, check=_changed)


def _changed(found: Document) -> Iterator[Mistake]:
    if found.get(_SUM) != checksum(found):
        yield Mistake(
            (_SUM,),
            "it is not that of the content: the record was changed since it was made; "
            "take the original",
        )


def _warning(one: Finding) -> str:
    if not one.expected:
        return one.observed
    told = f"{one.code}: {one.subject}: {one.observed}"
    return f"{told}, expected {one.expected}; {one.remedy}"


def _reason(reason: Shortfall) -> Document:
    return reason._asdict() | {"verdict": reason.verdict.value}


def _vms(judged: Judged) -> list[Document]:
    try:
        guests: tuple[Guest, ...] = judged.inputs.guests
    except NotReadError as exc:
        return [
            {"hostname": one.hostname, "taken_at": one.taken_at, "known_by": str(exc)}
            for one in judged.inputs.collected
        ]
    return [
        {
            "hostname": guest.name,
            "taken_at": guest.collected.taken_at,
            "uuid": guest.domain.uuid if guest.domain else None,
            "domain": guest.domain.name if guest.domain else None,
            "who": target.who if (target := judged.inputs.target_of(guest)) else None,
            "known_by": guest.how,
        }
        for guest in guests
    ]


def _run(judged: Judged) -> Document | None:
    run = judged.inputs.run
    if run is None:
        return None
    return {
        "begun": run.begun.isoformat(),
        "ended": run.ended.isoformat(),
        "targets": [target._asdict() for target in run.targets],
    }


def _section(section: Section) -> Document:
    report = section.report
    return {
        "kind": section.kind,
        "where": section.where,
        "hostname": report.hostname,
        "taken_at": report.taken_at,
        "results": [
            {
                "code": result.code,
                "title": result.title,
                "level": result.level.value,
                "why": promise.EVIDENCE[result.code].why,
                "findings": [_finding(one) for one in result.findings],
            }
            for result in report.results
        ],
    }


def _finding(one: Finding) -> Document:
    found = one._asdict() | {"level": one.level.value}
    del found["accepted"]
    return found


def comparison(row: Comparison) -> Document:
    """Return a comparison as a record has it."""
    return asdict(row) | {"verdict": row.verdict.value}


def _tools(judged: Judged) -> Document:
    versions: dict[str, set[str]] = {_NAME: {importlib.metadata.version(_NAME)}}
    for m in judged.inputs.samples.measurements:
        versions.setdefault(m.tool, set()).add(m.tool_version)
    return {name: sorted(found) for name, found in versions.items()}

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

from nova_perfvm.documents.document import SCHEMA_VERSION, load_document
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.findings import Finding
from nova_perfvm.measure.prove import promise
from nova_perfvm.measure.prove.inputs import EvidenceFile
from nova_perfvm.measure.prove.judge import Judged, Section
from nova_perfvm.measure.prove.run_notes import RunNotes
from nova_perfvm.measure.statistics.compare import Comparison
from nova_perfvm.measure.statistics.verdict import OF_CERTIFICATE, OF_RATIO

Document = dict[str, Any]
_SUM: Final = "sha256"
_NAME: Final = "nova-perfvm"


def document(
    judged: Judged, made_at: str, signed_off_by: str | None = None
) -> Document:
    """Return a record, with its checksum.

    :param made_at: now, ISO 8601, UTC
    :param signed_off_by: who answers for it, as said
    """
    inputs = judged.inputs
    host = inputs.host.collected
    found: Document = {
        "kind": "certificate",
        "schema_version": SCHEMA_VERSION,
        **_verdict(judged),
        "made_at": made_at,
        "signed_off_by": signed_off_by,
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
        "vms": list(_vms(judged)),
        "measured": _run(inputs.run),
        "checks": [_section(section) for section in judged.sections],
        "comparisons": [_comparison(row) for row in judged.comparisons],
        "tools": _tools(judged),
        "inputs": [EvidenceFile._asdict(source) for source in inputs.sources],
        "previous": None,
    }
    return _sealed(found)


def compared(found: Document, judged: Judged, previous: Mapping[str, Any]) -> Document:
    """Return a record with what was found against an earlier one.

    :param judged: with what is worse among its reasons
    """
    return _sealed(found | _verdict(judged) | {"previous": dict(previous)})


def _verdict(judged: Judged) -> Document:
    return {
        "verdict": OF_CERTIFICATE[judged.level],
        "reasons": [_reason(reason) for reason in judged.reasons],
    }


def _sealed(found: Document) -> Document:
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


def _changed(found: Document) -> Iterator[Mistake]:
    if found.get(_SUM) != checksum(found):
        message = "the record was changed since it was made: take the original"
        yield Mistake((_SUM,), message)


def _warning(one: Finding) -> str:
    if not one.expected:
        return one.observed
    told = f"{one.code}: {one.subject}: {one.expected}: found {one.observed}"
    return f"{told}; {one.remedy}"


def _reason(reason: Finding) -> Document:
    return {
        "verdict": OF_CERTIFICATE[reason.level],
        "code": reason.code,
        "where": reason.source,
        "subject": reason.subject,
        "text": reason.observed,
        "remedy": reason.remedy,
    }


def _vms(judged: Judged) -> Iterator[Document]:
    for guest in judged.inputs.guests:
        domain = guest.domain
        yield {
            "hostname": guest.name,
            "taken_at": guest.collected.taken_at,
            "uuid": domain and domain.uuid,
            "domain": domain and domain.name,
            "who": next(iter(guest.who), None),
            "known_by": guest.how,
        }


def _run(run: RunNotes | None) -> Document | None:
    return run and {
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


def _comparison(row: Comparison) -> Document:
    found = row.group._asdict() | asdict(row) | {"verdict": OF_RATIO[row.level]}
    del found["group"], found["level"]
    return found


def _tools(judged: Judged) -> Document:
    versions: dict[str, set[str]] = {_NAME: {importlib.metadata.version(_NAME)}}
    for m in judged.inputs.samples.measurements:
        versions.setdefault(m.tool, set()).add(m.tool_version)
    return {name: sorted(found) for name, found in versions.items()}

# SPDX-License-Identifier: Apache-2.0
"""The record of a proof: one file with all that was seen, and its verdict.

It is judged from this file alone, when it is made and whenever it is judged again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import dump_document, load_document
from nova_perfvm.documents.keys import Expected
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect import reading
from nova_perfvm.measure.collect.collected import Collected
from nova_perfvm.measure.prove import certificate as certificates
from nova_perfvm.measure.prove import inputs, run_notes
from nova_perfvm.measure.prove.inputs import EvidenceFile, Inputs
from nova_perfvm.measure.prove.judge import Judged
from nova_perfvm.measure.report import answer
from nova_perfvm.measure.samples import Samples, Text
from nova_perfvm.measure.statistics.verdict import OF_PROOF
from nova_perfvm.policy import loader


@dataclass(frozen=True)
class ProofRecord:
    """All that a proof rests on.

    :ivar policy: the policy file's text
    :ivar host: collected while the VMs were busy, and so ``guests``
    :ivar measured: what bench run has left
    :ivar baseline: of a host alike, if this one was not measured
    :ivar certificate: what was judged, see :mod:`nova_perfvm.measure.prove.record`
    """

    flavor: Text
    policy: Text
    host: Collected
    guests: tuple[Collected, ...]
    measured: Samples
    baseline: Samples | None = None
    certificate: Annotated[Mapping[str, Any], Expected("a certificate")] | None = None


def write(
    path: str,
    *,
    policy: str,
    flavor: str,
    seen: tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]],
    measured: Samples,
    baseline: Samples | None,
    made_at: str,
) -> Judged:
    """Judge what was seen, and write the record, for its owner alone to read.

    :param policy: the policy file's text
    :param seen: what was collected on the host, and in each VM
    :param made_at: now, ISO 8601, UTC
    :raises PerfVMError: when something is not what it is to be, or nothing is written
    """
    host, guests = seen
    found = ProofRecord(
        flavor=flavor,
        policy=policy,
        host=reading.loads(json.dumps(host), "host", "host"),
        guests=tuple(reading.loads(json.dumps(g), "guest", "guest") for g in guests),
        measured=measured,
        baseline=baseline,
    )
    judged, certificate = certificates.make(
        partial(inputs_of, found, path, inputs.DEFAULT_WITHIN_S), made_at=made_at
    )
    text = dumps(replace(found, certificate=certificate))
    textfile.replace(path, text, private=True)
    return judged


def read(path: str) -> ProofRecord:
    """Return the record of a proof.

    :raises DocumentError: when it is none
    :raises UnreadableFileError: when it cannot be read
    """
    return load_document("proof", ProofRecord, path)


def dumps(found: ProofRecord) -> str:
    """Return the JSON of a record."""
    return dump_document("proof", found, whole=True)


def inputs_of(found: ProofRecord, path: str, within_s: float) -> Inputs:
    """Return what a certificate is made of.

    :param path: of the record
    :raises PerfVMError: when the parts are not what they are to be
    """
    policy = loader.parse(found.policy, f"{path}: policy")
    measured = found.measured.measurements
    run = run_notes.of_samples(found.measured, path)
    if found.baseline is not None and run is not None:
        of_host = [m for m in found.baseline.measurements if m.machine.kind == "host"]
        measured = (*measured, *of_host)
        notes = run_notes.of_samples(found.baseline, f"{path}: baseline")
        run = run.with_baseline(notes) if notes else run._replace(beside={})
    seen = dumps(replace(found, certificate=None)).encode()
    return Inputs(
        policy=policy,
        flavor=inputs.flavor_of(policy, found.flavor),
        host=HostSubject(found.host, policy, None),
        collected=found.guests,
        samples=Samples(tuple(measured)),
        run=run,
        sources=(EvidenceFile("proof", path, hashlib.sha256(seen).hexdigest()),),
        within_s=within_s,
        elsewhere=found.baseline is not None,
    )


def verdict(judged: Judged) -> str:
    """Return the verdict in one line, and what VMs reach, or why it is not proven."""
    of, level = judged.inputs, judged.level
    title = f"{OF_PROOF[level]} {of.flavor.name} on {of.host.collected.hostname}"
    if level is Level.OK:
        return f"{title}: {answer.answer(judged.comparisons)}"
    first, *more = [reason for reason in judged.reasons if reason.level is level]
    parts = filter(None, (first.source, first.subject, first.observed))
    return f"{title}: {': '.join(parts)}{f' (and {len(more)} more)' if more else ''}"

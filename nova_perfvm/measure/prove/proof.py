# SPDX-License-Identifier: Apache-2.0
"""The record of a proof: one file with all that was seen, and its verdict.

It is judged from this file alone, when it is made and whenever it is judged again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import dump_document, load_document
from nova_perfvm.documents.keys import Expected, some
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect import reading
from nova_perfvm.measure.collect.collected import Collected
from nova_perfvm.measure.prove import certificate as certificates
from nova_perfvm.measure.prove import inputs, promise, run_notes
from nova_perfvm.measure.prove.inputs import EvidenceFile, Inputs
from nova_perfvm.measure.prove.judge import Certification, Judged
from nova_perfvm.measure.prove.run_notes import RunNotes
from nova_perfvm.measure.samples import Samples
from nova_perfvm.measure.statistics.compare import LATENCY_TARGET, TARGET
from nova_perfvm.policy import loader
from nova_perfvm.printable import number_of

_WORDS: Final = {
    Certification.CERTIFIED: "PROVEN",
    Certification.NOT_PROVEN: "NOT PROVEN",
    Certification.REFUSED: "REFUTED",
}
_CONFIDENCE: Final = "family-wise 97.5 %"

Text = Annotated[str, some("text")]


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
    judged, certificate = certificates.of_inputs(
        inputs_of(found, path, inputs.DEFAULT_WITHIN_S),
        target=TARGET,
        latency_target=LATENCY_TARGET,
        made_at=made_at,
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
    measured, run = found.measured.measurements, _notes(found.measured, path)
    if found.baseline is not None and run is not None:
        of_host = [m for m in found.baseline.measurements if m.machine.kind == "host"]
        measured = (*measured, *of_host)
        notes = _notes(found.baseline, f"{path}: baseline")
        hosts = [t for t in notes.targets if t.kind == "host"] if notes else []
        run = run._replace(
            targets=(*run.targets, *hosts), beside=notes.beside if notes else {}
        )
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


def _notes(found: Samples, source: str) -> RunNotes | None:
    measured = {m.who for m in found.measurements}
    return run_notes.noted(found.run or None, source, measured)


def verdict(judged: Judged) -> str:
    """Return the verdict in one line."""
    of = judged.inputs
    title = f"{_WORDS[judged.verdict]} {of.flavor.name} on {of.host.collected.hostname}"
    if judged.verdict is not Certification.CERTIFIED:
        first, *more = [r for r in judged.reasons if r.verdict is judged.verdict]
        parts = (first.where, first.subject, first.text)
        rest = f" (and {len(more)} more)" if more else ""
        return f"{title}: {': '.join(part for part in parts if part)}{rest}"
    reached = {"higher": dict[str, float](), "lower": dict[str, float]()}
    for row in judged.comparisons:
        endpoint = row.primary and promise.endpoint_of(
            row.metric, row.better, row.threads, of.flavor, of.vm_class
        )
        if endpoint and row.judged:
            worst = max if row.better == "lower" else min
            ratio = row.judged.ratio
            known = reached[row.better].get(endpoint.name, ratio)
            reached[row.better][endpoint.name] = worst(known, ratio)
    shares = ", ".join(
        f"{ratio:.2f} {name.removesuffix(' throughput')}"
        for name, ratio in reached["higher"].items()
    )
    times = ", ".join(f"{name} {ratio:.2f}" for name, ratio in reached["lower"].items())
    return (
        f"{title}: {number_of(len(of.collected), 'VM')} at once reach {shares} of "
        f"their share (at least {judged.target:.2f}, {_CONFIDENCE}); {times} times the "
        "host's"
    )

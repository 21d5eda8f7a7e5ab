# SPDX-License-Identifier: Apache-2.0
"""The record of a proof: one file with all that was seen, and its verdict."""

from __future__ import annotations

from dataclasses import replace

from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import dump_document
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.bench.record import reading_run
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import Collected
from nova_perfvm.measure.prove import (
    inputs,
    judge,
    promised_iops,
    provenance,
    run_notes,
)
from nova_perfvm.measure.prove.inputs import Inputs
from nova_perfvm.measure.prove.judge import Judged
from nova_perfvm.measure.prove.provenance import ProofRecord
from nova_perfvm.measure.report import answer
from nova_perfvm.measure.samples import Samples
from nova_perfvm.policy import loader
from nova_perfvm.printable import number_of


def make(
    *,
    policy: str,
    flavor: str,
    seen: tuple[Collected, tuple[Collected, ...]],
    measured: Samples,
    baseline: Samples | None = None,
) -> ProofRecord:
    """Return the record of a run and of the files collected after the run.

    :param policy: the policy file's text
    :param seen: what was collected on the host, and in each VM
    :raises PerfVMError: when the run has mistakes
    """
    host, guests = seen
    return ProofRecord(
        made_of=provenance.made_of(measured.run, host, guests),
        flavor=flavor,
        policy=policy,
        host=host,
        guests=guests,
        measured=measured,
        baseline=baseline,
    )


def judged(found: ProofRecord) -> Judged:
    """Return what a record says: a verdict, or that it is a measurement.

    :raises PerfVMError: when a part of the record has mistakes
    """
    with reading_run("the record"):
        of = _inputs(found)
        no_proof = tuple(provenance.no_proof(found, of))
    return judge.judge(of, no_proof)


def _inputs(found: ProofRecord) -> Inputs:
    policy = loader.parse(found.policy, "policy")
    measured = found.measured.measurements
    if found.baseline is not None:
        of_host = [m for m in found.baseline.measurements if m.machine.kind == "host"]
        measured = (*measured, *of_host)
    return Inputs(
        policy=policy,
        flavor=inputs.flavor_of(policy, found.flavor),
        host=HostSubject(found.host, policy, None),
        collected=found.guests,
        samples=Samples(tuple(measured)),
        run=run_notes.of_samples(found.measured),
    )


def write(path: str, found: ProofRecord, of: Judged) -> None:
    """Write a record with its verdict; only the file's owner may read the file.

    :raises PerfVMError: when the file cannot be written
    """
    verdict = {
        "line": line(of),
        "reasons": [_plain(one) for one in of.reasons],
        "conditions": [_plain(one) for one in of.conditions],
        "warnings": [_plain(one) for one in of.warnings],
    }
    text = dump_document("proof", replace(found, verdict=verdict), whole=True)
    # The collected files hold command lines and names.
    textfile.replace(path, text, private=True)


def _plain(one: Finding) -> dict[str, str]:
    found = one._asdict() | {"level": one.level.value}
    del found["accepted"], found["cause"]
    return found


def line(of: Judged) -> str:
    """Return the verdict in one line: what VMs reach, and why it is not proven."""
    flavor, host = of.inputs.flavor.name, of.inputs.host.collected.hostname
    iops = "".join(f", {words}" for words in promised_iops.worst(of.inputs))
    if of.no_proof:
        said = answer.answer(of.comparisons)
        return f"{of.verdict}; {flavor} on {host}: {said}{iops}"
    title = f"{of.verdict} {flavor} on {host}"
    if of.proven:
        others = len(of.warnings) - len(of.conditions)
        more = f"; {number_of(others, 'other warning')}" if others else ""
        return f"{title}: {answer.answer(of.comparisons)}{iops}{more}"
    return f"{title}: {answer.reached(of.comparisons)}{iops}: {_why(of)}"


def _why(of: Judged) -> str:
    """Return what decides: figures by their names, then the first check."""
    rows = [row for row in of.comparisons if row.primary]
    # {why: the figures' names}; what is refuted is seen in the figures.
    figures: dict[str, dict[str, None]] = {}
    for row in rows:
        if of.level is Level.FAILURE and row.level is of.level:
            slower = row.better == "lower" and answer.slower(rows, row.group.metric)
            figures.setdefault("", {})[slower or answer.kind(row)] = None
        elif of.level is Level.UNKNOWN and (row.level is of.level or row.doubts):
            figures.setdefault(f" ({row.reason or row.doubts[0]})", {})[
                answer.kind(row)
            ] = None
    said = [f"{', '.join(names)}{reason}" for reason, names in figures.items()]
    checks = [one for one in of.reasons if one.level is of.level]
    checks = [one for one in checks if one.code != judge.COMPARED or not said]
    if checks:
        first, *more = checks
        parts = filter(None, (first.source, first.subject, first.observed))
        rest = f" (and {len(more)} more)" if more else ""
        said.append(f"{': '.join(parts)}{rest}")
    return ", ".join(said)

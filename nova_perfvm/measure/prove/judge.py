# SPDX-License-Identifier: Apache-2.0
"""The verdict: certified, not proven, or refused, and why."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from nova_perfvm.findings import CheckFindings, Finding, Level, exit_code
from nova_perfvm.measure.checks import guest as guest_package
from nova_perfvm.measure.checks import host as host_package
from nova_perfvm.measure.checks import report
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.report import CheckReport
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.prove import consistency, settling
from nova_perfvm.measure.prove.inputs import Inputs
from nova_perfvm.measure.prove.promise import EVIDENCE
from nova_perfvm.measure.statistics.compare import (
    LATENCY_TARGET,
    TARGET,
    CannotCompareError,
    Comparison,
    compare,
)
from nova_perfvm.measure.statistics.verdict import Verdict as Compared

COMPARED: Final = "certify.compared"


class Certification(enum.Enum):
    """What is promised of a flavor as a whole; each finding has a Level."""

    CERTIFIED = "certified"
    NOT_PROVEN = "not proven"
    REFUSED = "refused"

    @property
    def level(self) -> Level:
        """How bad it is."""
        places = (Level.OK, Level.UNKNOWN, Level.FAILURE)
        return places[list(Certification).index(self)]

    @property
    def exit_code(self) -> int:
        """What a command ends with: 0, 1 or 2."""
        return exit_code(self.level, strict=True)


class Shortfall(NamedTuple):
    """Why a verdict is not CERTIFIED.

    :ivar where: the host, the VM or the file that it is about
    """

    verdict: Certification
    code: str
    where: str
    subject: str
    text: str
    remedy: str = ""


class Section(NamedTuple):
    """What the checks of one machine, or of the files together, found.

    :ivar where: host, the VM's UUID, or files; stable from record to record
    """

    kind: str
    where: str
    report: CheckReport


@dataclass(frozen=True)
class Judged:
    """All that was found, and the verdict.

    :ivar reasons: why it is not CERTIFIED, worst first
    """

    inputs: Inputs
    sections: tuple[Section, ...]
    comparisons: tuple[Comparison, ...]
    reasons: tuple[Shortfall, ...]
    target: float
    latency_target: float

    @property
    def verdict(self) -> Certification:
        """The worst of the reasons."""
        return worst(reason.verdict for reason in self.reasons)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What costs performance at times, or makes a ratio less sure."""
        found = [
            one._replace(subject=f"{section.report.hostname}: {one.subject}")
            for section in self.sections
            for one in section.report.findings
            if one.level is Level.WARNING
        ]
        texts: list[str] = []
        for row in self.comparisons:
            if row.verdict is Compared.FAIL and not row.primary:
                texts.append(f"{row.group}, of {row.who}: {row.reason}; no endpoint")
            texts += row.remarks
        found += [Finding(COMPARED, Level.WARNING, "", text) for text in texts]
        return tuple(dict.fromkeys(found))


def worst_first(reasons: Iterable[Shortfall]) -> tuple[Shortfall, ...]:
    """Return reasons by their verdicts."""
    return tuple(sorted(reasons, key=lambda one: one.verdict.level, reverse=True))


def worst(verdicts: Iterable[Certification]) -> Certification:
    """Return the worst of verdicts; without any it is CERTIFIED."""
    order = list(Certification)
    return max(verdicts, key=order.index, default=Certification.CERTIFIED)


def judge(
    inputs: Inputs, target: float = TARGET, latency_target: float = LATENCY_TARGET
) -> Judged:
    """Run all checks and the comparison, and draw the verdict."""
    sections = tuple(_sections(inputs))
    reasons = list(_of_checks(inputs, sections))
    comparisons: list[Comparison] = []
    try:
        comparisons = compare(
            inputs.samples.measurements,
            target=target,
            latency_target=latency_target,
            is_primary=inputs.is_primary,
        )
    except CannotCompareError as exc:
        reasons.append(
            Shortfall(Certification.NOT_PROVEN, COMPARED, "--samples", "", str(exc))
        )
    reasons += _of_comparisons(comparisons)
    ordered = worst_first(reasons)
    return Judged(inputs, sections, tuple(comparisons), ordered, target, latency_target)


def _sections(inputs: Inputs) -> Iterator[Section]:
    host = inputs.host.collected
    together = report.run(consistency.CHECKS, host, inputs)
    yield Section("files", "files", together)
    found = report.run(checks_of(host_package), host, inputs.host)
    yield Section("host", "host", found)
    checks = checks_of(guest_package)
    domains: list[Domain | None]
    try:
        domains = [guest.domain for guest in inputs.guests]
    except NotReadError:
        domains = [None for _ in inputs.collected]
    for domain, collected in zip(domains, inputs.collected, strict=True):
        subject = GuestSubject(collected, inputs.vm_class)
        inside = report.run(checks, collected, subject)
        if domain is None:
            yield Section("guest", collected.hostname, inside)
            continue
        inside = settling.settled(inside, found, domain)
        yield Section("guest", domain.uuid, inside)


def _of_checks(inputs: Inputs, sections: Sequence[Section]) -> Iterator[Shortfall]:
    for section in sections:
        for result in section.report.results:
            yield from _of_result(inputs, section, result)


def _of_result(
    inputs: Inputs, section: Section, result: CheckFindings
) -> Iterator[Shortfall]:
    evidence = EVIDENCE[result.code]
    where = "files" if section.kind == "files" else section.report.hostname
    for one in result.findings:
        if one.level is Level.FAILURE:
            text = f"expected {one.expected}; found {one.observed}"
            yield Shortfall(
                *(Certification.REFUSED, one.code, where, one.subject, text, one.remedy)
            )
    if not evidence.needed(inputs.vm_class):
        return
    told = False
    for one in result.findings:
        if one.level is Level.UNKNOWN and one.cause not in evidence.unless:
            told = True
            text = one.observed + (f" ({one.source})" if one.source else "")
            yield Shortfall(
                *(
                    Certification.NOT_PROVEN,
                    one.code,
                    where,
                    one.subject,
                    text,
                    one.remedy,
                )
            )
    proved = [one for one in result.findings if one.level is not Level.UNKNOWN]
    if evidence.proof == "once" and not proved and not told:
        text = f"nothing was seen, and it is needed: {evidence.why}"
        yield Shortfall(Certification.NOT_PROVEN, result.code, where, "", text)
    if evidence.proof == "each VM":
        yield from _of_each_vm(inputs, where, result)


def _of_each_vm(
    inputs: Inputs, where: str, result: CheckFindings
) -> Iterator[Shortfall]:
    """Find VMs that a check left out, or reported only as acceptable."""
    evidence = EVIDENCE[result.code]
    try:
        names = {d.name for d in inputs.domains}
        names |= {g.domain.name for g in inputs.guests if g.domain}
    except NotReadError:
        # certify.every_vm says so.
        return
    for name in sorted(names):
        own = [
            one
            for one in result.findings
            if one.subject == name or one.subject.startswith(f"{name}:")
        ]
        # An unknown that is not allowed is a reason by itself.
        if all(
            one.level is Level.UNKNOWN and one.cause in evidence.unless for one in own
        ):
            text = f"nothing was seen of it, and it is needed: {evidence.why}"
            yield Shortfall(Certification.NOT_PROVEN, result.code, where, name, text)


def _of_comparisons(comparisons: Iterable[Comparison]) -> Iterator[Shortfall]:
    for row in comparisons:
        if not row.primary:
            continue
        subject = str(row.group)
        if row.verdict is Compared.FAIL:
            yield Shortfall(
                Certification.REFUSED, COMPARED, row.who, subject, row.reason
            )
        elif row.verdict is Compared.INCONCLUSIVE:
            yield Shortfall(
                Certification.NOT_PROVEN, COMPARED, row.who, subject, row.reason
            )
        for doubt in row.doubts:
            yield Shortfall(Certification.NOT_PROVEN, COMPARED, row.who, subject, doubt)

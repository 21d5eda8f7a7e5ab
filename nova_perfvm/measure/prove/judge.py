# SPDX-License-Identifier: Apache-2.0
"""Whether a flavor is proven, and why not: all checks, and the comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from nova_perfvm.findings import (
    CANNOT_TELL,
    CheckFindings,
    Finding,
    Level,
    exit_code,
    worst,
)
from nova_perfvm.measure.checks import guest as guest_package
from nova_perfvm.measure.checks import host as host_package
from nova_perfvm.measure.checks import report
from nova_perfvm.measure.checks.check import Cause, checks_in, checks_of
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.report import CheckReport
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.prove import conditions, consistency, promised_iops
from nova_perfvm.measure.prove.inputs import Inputs
from nova_perfvm.measure.prove.promise import ENDPOINTS, EVIDENCE
from nova_perfvm.measure.report.answer import MEASURED
from nova_perfvm.measure.statistics.compare import (
    CannotCompareError,
    Comparison,
    compare,
)
from nova_perfvm.measure.statistics.verdict import OF_PROOF
from nova_perfvm.printable import number_of

# Of the files together.
CHECKS: Final = checks_in(consistency, promised_iops, conditions)
COMPARED: Final = "proof.compared"
# Warnings about VMs that may come later, and about sizes of flavors.
_OF_NO_ENDPOINT: Final = frozenset({"hypervisor.cpu_sets", "hypervisor.node_shape"})
_OF_ENDPOINT: Final = {
    "disk": frozenset({"guest.disk_queues", "guest.disk_scheduler"}),
    "network": frozenset(
        f"{kind}.{name}"
        for kind in ("hypervisor", "guest")
        for name in ("nic_node", "nic_settings", "nic_losses", "xps", "rps")
    ),
}
_WAITED: Final = "hypervisor.vcpu_wait"


class Section(NamedTuple):
    """What the checks of one machine, or of the files together, found.

    :ivar kind: host, guest, or files
    """

    kind: str
    report: CheckReport

    @property
    def name(self) -> str:
        """The machine of the findings, or ``files``."""
        return "files" if self.kind == "files" else self.report.hostname


@dataclass(frozen=True)
class Judged:
    """The findings and comparisons of a proof, and the verdict.

    :ivar reasons: findings against the proof, worst first; ``source`` names the host,
        the VM or the files of the finding
    :ivar no_proof: reasons why the run is a measurement only; empty for a proof
    """

    inputs: Inputs
    sections: tuple[Section, ...]
    comparisons: tuple[Comparison, ...]
    reasons: tuple[Finding, ...]
    no_proof: tuple[str, ...] = ()

    @property
    def level(self) -> Level:
        """OK: proven; unknown: not proven; failure: refuted; if it is a proof."""
        return worst(self.reasons)

    @property
    def proven(self) -> bool:
        """Whether it is a proof, and all holds."""
        return not self.no_proof and self.level is Level.OK

    @property
    def verdict(self) -> str:
        """PROVEN, NOT PROVEN or REFUTED, with conditions; or why it is no proof."""
        if self.no_proof:
            return f"{MEASURED}: {self.no_proof[0]}"
        many = number_of(len(self.conditions), "condition")
        with_them = f" with {many}" if self.proven and self.conditions else ""
        return f"{OF_PROOF[self.level]}{with_them}"

    @property
    def exit_status(self) -> int:
        """What a command exits with: 3 for a measurement."""
        return CANNOT_TELL if self.no_proof else exit_code(self.level, strict=True)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Warnings of checks and comparisons."""
        found = [one for one, _ in self._warnings()]
        return tuple(dict.fromkeys(found))

    @property
    def conditions(self) -> tuple[Finding, ...]:
        """The warnings about resources that an endpoint measures."""
        found = [one for one, is_condition in self._warnings() if is_condition]
        return tuple(dict.fromkeys(found))

    def _warnings(self) -> Iterator[tuple[Finding, bool]]:
        """Yield each warning, and whether it speaks of what an endpoint measures."""
        needed = [e.name for e in ENDPOINTS if e.needed(self.inputs.vm_class)]
        beside = _OF_NO_ENDPOINT.union(
            *(
                codes
                for kind, codes in _OF_ENDPOINT.items()
                if not any(name.startswith(kind) for name in needed)
            )
        )
        for section in self.sections:
            for one in section.report.findings:
                if one.level is Level.WARNING:
                    subject = f"{section.report.hostname}: {one.subject}"
                    yield one._replace(subject=subject), one.code not in beside
        for row in self.comparisons:
            if row.level is Level.FAILURE and not row.primary:
                text = f"{row.group}, of {row.who}: {row.reason}; no endpoint"
                yield Finding(COMPARED, Level.WARNING, "", text), False
            for text in row.remarks:
                yield Finding(COMPARED, Level.WARNING, "", text), row.primary
        if self.inputs.media_differ:
            text = "disk: host and VMs are on different media: no ratio"
            yield Finding(COMPARED, Level.WARNING, "", text), True


def judge(inputs: Inputs, no_proof: Iterable[str] = ()) -> Judged:
    """Run all checks and the comparison, and draw the verdict."""
    sections = tuple(_sections(inputs))
    reasons = [
        reason._replace(source=section.name, expected="")
        for section in sections
        for result in section.report.results
        for reason in _of_result(inputs, result)
    ]
    comparisons: list[Comparison] = []
    measured = inputs.samples.measurements
    if inputs.media_differ:
        measured = tuple(m for m in measured if not m.metric.startswith("disk."))
    try:
        comparisons = compare(measured, is_primary=inputs.is_primary)
    except CannotCompareError as exc:
        unknown = Finding(COMPARED, Level.UNKNOWN, "", str(exc), source="measurements")
        reasons.append(unknown)
    reasons += _of_comparisons(comparisons)
    reasons.sort(key=lambda one: one.level, reverse=True)
    return Judged(inputs, sections, tuple(comparisons), tuple(reasons), tuple(no_proof))


def _sections(inputs: Inputs) -> Iterator[Section]:
    host = inputs.host.collected
    together = report.run(CHECKS, host, inputs)
    yield Section("files", together)
    found = report.run(checks_of(host_package), host, inputs.host)
    yield Section("host", found)
    checks = checks_of(guest_package)
    for guest in inputs.guests:
        collected, domain = guest.collected, guest.domain
        inside = report.run(checks, collected, GuestSubject(collected, inputs.vm_class))
        if domain is not None:
            inside = _with_steal(inside, found, domain)
        yield Section("guest", inside)


def _with_steal(guest: CheckReport, host: CheckReport, domain: Domain) -> CheckReport:
    """Return a guest's report in which its host tells whether time was stolen.

    On a host that isolates VMs well the guest's counter never moves; that its vCPUs
    did not wait says the same.
    """
    name = domain.name
    waited = [f for f in host.findings if (f.code, f.subject) == (_WAITED, name)]
    if not waited or worst(waited) is not Level.OK:
        return guest
    proof = waited[0]
    results = []
    for result in guest.results:
        findings = [
            proof._replace(
                code=one.code,
                subject=one.subject,
                observed=f"{one.observed}; {proof.code}: {proof.observed}",
                source=f"{one.source}; on the host {proof.source}",
            )
            if one.cause == Cause.NEVER_STOLEN
            else one
            for one in result.findings
        ]
        results.append(result._replace(findings=tuple(findings)))
    return replace(guest, results=tuple(results))


def _of_result(inputs: Inputs, result: CheckFindings) -> Iterator[Finding]:
    """Yield a check's findings against the proof, and what the check failed to see."""
    evidence = EVIDENCE[result.code]
    needed = evidence.needed(inputs.vm_class)
    told = False
    for one in result.findings:
        words = one.observed
        if one.expected:
            words = f"{one.expected}: found {words}"
        if one.level is Level.FAILURE:
            yield one._replace(observed=words)
        elif needed and one.level is Level.UNKNOWN and not _is_excused(one):
            told = True
            source = f" ({one.source})" if one.source else ""
            yield one._replace(observed=f"{words}{source}")
    if not needed:
        return
    unseen: Iterable[str] = ()
    if evidence.proof == "each VM":
        # An unknown finding without an excuse is a reason by itself.
        seen = {
            one.subject
            for one in result.findings
            if _is_seen(one) or not _is_excused(one)
        }
        unseen = [
            name
            for name in _vms(inputs)
            if not any(s == name or s.startswith(f"{name}:") for s in seen)
        ]
    elif evidence.proof == "once" and not told:
        proved = any(map(_is_seen, result.findings))
        unseen = () if proved else [""]
    for name in unseen:
        text = f"nothing was seen of it, and it is needed: {evidence.why}"
        yield Finding(result.code, Level.UNKNOWN, name, text)


def _is_seen(one: Finding) -> bool:
    """Return whether a check judged something, or the machine has nothing to judge."""
    return one.level is not Level.UNKNOWN or one.cause == Cause.NOTHING_TO_JUDGE


def _is_excused(unknown: Finding) -> bool:
    """Return whether a check says that its unknown leaves nothing to prove."""
    return bool(unknown.cause) and unknown.cause != Cause.NEVER_STOLEN


def _vms(inputs: Inputs) -> list[str]:
    """Return the names of the judged VMs; empty if the host's VMs are unknown."""
    try:
        found = [*inputs.domains, *(g.domain for g in inputs.guests if g.domain)]
    except NotReadError:
        return []
    return sorted({domain.name for domain in found})


def _of_comparisons(comparisons: Iterable[Comparison]) -> Iterator[Finding]:
    """Yield why primary comparisons do not pass, and their doubts as unknown."""
    for row in comparisons:
        if not row.primary:
            continue
        reasons = [(row.level, row.reason), *((Level.UNKNOWN, d) for d in row.doubts)]
        for level, reason in reasons:
            if level is not Level.OK:
                subject = str(row.group)
                yield Finding(COMPARED, level, subject, reason, source=row.who)

# SPDX-License-Identifier: Apache-2.0
"""All checks in order, as oslo.upgradecheck has it: the worst result decides."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from nova_perfvm.diagnose.audit import (
    builds,
    claims,
    contract,
    hosts,
    placement,
    progress,
    servers,
    settings,
    units,
    usage,
)
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import ACCEPTABLE, SEVERITIES, Finding, Severity

Check = Callable[[Subject], Iterable[Finding]]


@dataclass(frozen=True)
class AuditResult:
    """What one check found, worst first."""

    title: str
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity | None:
        """The worst one; None if nothing was found."""
        return self.findings[0].severity if self.findings else None


@dataclass(frozen=True)
class Report:
    """What an audit found.

    :ivar taken_at: when the cloud was looked at, ISO 8601, UTC
    :ivar policy_digest: of the policy that it was compared with
    """

    results: tuple[AuditResult, ...]
    taken_at: str
    policy_digest: str
    hosts: int
    servers: int

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, worst first, then in the order of the checks."""
        found = [finding for result in self.results for finding in result.findings]
        return tuple(sorted(found, key=_badness))

    def count(self, severity: Severity) -> int:
        """Count the findings of a severity."""
        return sum(finding.severity is severity for finding in self.findings)

    def by_code(self) -> dict[str, int]:
        """Count the findings of each code that there is, also those with none.

        What the policy accepts is counted apart.
        """
        return self._counted(accepted=False)

    def accepted_by_code(self) -> dict[str, int]:
        """Count what the policy accepts, of each code that it can be said of."""
        found = self._counted(accepted=True)
        return {c: n for c, n in found.items() if SEVERITIES[c] in ACCEPTABLE}

    def _counted(self, *, accepted: bool) -> dict[str, int]:
        found = Counter(f.code for f in self.findings if f.accepted is accepted)
        return {code: found[code] for code in SEVERITIES}

    def exit_code(self, *, strict: bool = False) -> int:
        """Return 0 for a clean cloud, 1 for warnings, 2 for what is critical.

        :param strict: take what is unknown for a warning
        """
        worst = max((f.severity.exit_code for f in self.findings), default=0)
        return worst or int(strict and self.count(Severity.UNKNOWN) > 0)


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("Servers beside each other", servers.check),
    ("Servers are of their class", claims.check_servers),
    ("Servers hold what their class takes", contract.check),
    ("Servers have today's flavors", claims.check_changed),
    ("Flavors are the policy's", claims.check_flavors),
    ("Images agree with the classes", claims.check_images),
    ("Keys are spelled right", claims.check_spelling),
    ("Hosts offer what the policy says", hosts.check),
    ("Elastic hosts are exclusive", units.check),
    ("Usage is within inventory", usage.check),
    ("Allocations are the servers'", placement.check),
    ("Providers belong to hosts", placement.check_orphans),
    ("Nova gets on with its work", progress.check),
    ("Builds came to an end", builds.check),
    ("Placement grants what it has", settings.check_retries),
    ("All was seen", settings.check_gaps),
)


def run(subject: Subject) -> Report:
    """Run all checks."""
    return Report(
        results=tuple(
            AuditResult(title, tuple(sorted(_judged(subject, check), key=_badness)))
            for title, check in CHECKS
        ),
        taken_at=subject.snapshot.taken_at,
        policy_digest=subject.policy.digest,
        hosts=len(subject.snapshot.hosts),
        servers=sum(server.known for server in subject.snapshot.servers),
    )


def _judged(subject: Subject, check: Check) -> Iterator[Finding]:
    """Return what a check finds, and as a note what the policy accepts of it."""
    return (f.judged_with(subject.policy.accept) for f in check(subject))


def _badness(finding: Finding) -> int:
    return -list(Severity).index(finding.severity)

# SPDX-License-Identifier: Apache-2.0
"""All checks in order, and which command runs which of them."""

import enum
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from nova_perfvm.diagnose.audit import (
    builds,
    claims,
    contract,
    hosts,
    placement,
    policy,
    progress,
    servers,
    settings,
    units,
    usage,
)
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import (
    ACCEPTABLE,
    AUDIT_CODES,
    LEVELS,
    CheckFindings,
    Finding,
    Report,
)


class Selection(enum.Flag):
    """The command that runs a check.

    :cvar AUDIT: what slipped past
    :cvar PREFLIGHT: what would break when hosts are enrolled or the filter enforces
    :cvar POLICY: whether a cloud is as a policy says (``policy check``)
    """

    AUDIT = enum.auto()
    PREFLIGHT = enum.auto()
    POLICY = enum.auto()


class Check(NamedTuple):
    """One question that is asked of a cloud.

    :ivar title: what holds if nothing is found
    """

    title: str
    selections: Selection
    find: Callable[[Subject], Iterable[Finding]]


@dataclass(frozen=True)
class AuditReport(Report):
    """What an audit found.

    :ivar policy_digest: of the policy that the cloud was compared with
    """

    policy_digest: str
    hosts: int
    servers: int

    def by_code(self) -> dict[str, int]:
        """Count the findings of each code that there is, also those with none.

        What the policy accepts is counted apart.
        """
        return self._counted(accepted=False)

    def accepted_by_code(self) -> dict[str, int]:
        """Count what the policy accepts, of each code that it can be said of."""
        found = self._counted(accepted=True)
        return {c: n for c, n in found.items() if LEVELS[c] in ACCEPTABLE}

    def _counted(self, *, accepted: bool) -> dict[str, int]:
        found = Counter(f.code for f in self.findings if f.accepted is accepted)
        return {code: found[code] for code in AUDIT_CODES}


_AUDIT: Final = Selection.AUDIT
_PREFLIGHT: Final = Selection.PREFLIGHT
_POLICY: Final = Selection.POLICY
CHECKS: Final = (
    Check("Policy", _PREFLIGHT | _POLICY, policy.check_policy),
    Check("Flavors", _POLICY, policy.check_sync),
    Check("Flavors go on finding hosts", _PREFLIGHT, policy.check_refused),
    Check("Servers beside each other", _AUDIT, servers.check),
    Check("Servers are of their class", _AUDIT, claims.check_servers),
    Check("Servers hold what their class takes", _AUDIT, contract.check),
    Check("Servers have today's flavors", _AUDIT, claims.check_changed),
    Check("Flavors are the policy's", _AUDIT, claims.check_flavors),
    Check("Images agree with the classes", _AUDIT, claims.check_images),
    Check("Keys are spelled right", _AUDIT, claims.check_spelling),
    Check("Classes of aggregates", _AUDIT | _POLICY, hosts.check_aggregates),
    Check("Some host is judged", _POLICY, hosts.check_judged),
    Check("Hosts with slots have their label", _AUDIT | _PREFLIGHT, hosts.check_labels),
    Check("General VMs keep off slots", _POLICY, hosts.check_isolation),
    Check("Hosts offer what the policy says", _AUDIT | _POLICY, hosts.check_offers),
    Check("Placement knows the hosts", _POLICY, hosts.check_known),
    Check("Filters", _POLICY, settings.check_filters),
    Check("Isolated aggregates are filtered", _PREFLIGHT, settings.check_isolation),
    Check("Pinned VMs may use VCPU", _PREFLIGHT, settings.check_fallback),
    Check("Placement grants what it has", _AUDIT | _PREFLIGHT, settings.check_retries),
    Check(
        "Hosts are isolated and enrolled", _AUDIT | _PREFLIGHT, units.check_membership
    ),
    Check(
        "Hosts are enrolled for this policy",
        _AUDIT | _PREFLIGHT | _POLICY,
        units.check_enrolment,
    ),
    Check("Child providers", _AUDIT | _PREFLIGHT, units.check_children),
    Check("VMs on these hosts carry units", _AUDIT | _PREFLIGHT, units.check_residents),
    Check("Embedded flavors", _AUDIT | _PREFLIGHT, units.check_flavors),
    Check(
        "Embedded flavors are of this policy",
        _AUDIT | _PREFLIGHT,
        units.check_left_behind,
    ),
    Check("Usage is within inventory", _AUDIT | _PREFLIGHT, usage.check),
    Check("Allocations are the servers'", _AUDIT, placement.check),
    Check("Providers belong to hosts", _AUDIT, placement.check_orphans),
    Check("Nova gets on with its work", _AUDIT, progress.check),
    Check("Builds came to an end", _AUDIT, builds.check),
    Check("All was seen", _AUDIT, settings.check_gaps),
)


def selected(selection: Selection) -> tuple[Check, ...]:
    """Return the checks of a command, in their order."""
    return tuple(check for check in CHECKS if selection in check.selections)


def run_selection(selection: Selection, subject: Subject) -> tuple[CheckFindings, ...]:
    """Run the checks of a command: as notes, what the policy accepts."""
    accept = subject.policy.accept
    return tuple(
        CheckFindings(
            check.title,
            tuple(
                sorted(
                    (found.judged_with(accept) for found in check.find(subject)),
                    key=lambda finding: finding.level,
                    reverse=True,
                )
            ),
        )
        for check in selected(selection)
    )


def run(subject: Subject) -> AuditReport:
    """Audit a cloud."""
    return AuditReport(
        results=run_selection(Selection.AUDIT, subject),
        taken_at=subject.snapshot.taken_at,
        policy_digest=subject.policy.digest,
        hosts=len(subject.snapshot.hosts),
        servers=sum(server.known for server in subject.snapshot.servers),
    )

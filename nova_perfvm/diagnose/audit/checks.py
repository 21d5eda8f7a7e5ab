# SPDX-License-Identifier: Apache-2.0
"""All checks in their order, and the commands that run each."""

import enum
import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from nova_perfvm.diagnose.audit import (
    claims,
    contract,
    drift,
    hosts,
    hypervisors,
    images,
    nova_bugs,
    offers,
    placement,
    policy,
    progress,
    provider_files,
    servers,
    settings,
    units,
    volumes,
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
from nova_perfvm.placement.schemes import scheme_of


class Selection(enum.Flag):
    """The command that runs a check.

    :cvar AUDIT: violations that got past the filter
    :cvar PREFLIGHT: what would break when hosts are enrolled or the filter enforces
    :cvar POLICY: differences between the cloud and the policy (``policy check``)
    """

    AUDIT = enum.auto()
    PREFLIGHT = enum.auto()
    POLICY = enum.auto()


class Need(NamedTuple):
    """The data without which a check cannot run.

    :ivar words: names the data
    :ivar met: returns whether the subject has the data
    """

    words: str
    met: Callable[[Subject], bool]


_COLLECTED: Final = Need("--collected", lambda subject: bool(subject.collected))
_STEERS: Final = Need(
    "NUMA nodes in Placement", lambda subject: scheme_of(subject.policy).steers
)
_CINDER: Final = Need(
    "a Cinder", lambda subject: subject.snapshot.volume_types is not None
)


class CloudCheck(NamedTuple):
    """One check of a cloud.

    :ivar title: the statement that holds if nothing is found
    :ivar need: the data without which the check is skipped; None if it needs none
    """

    title: str
    selections: Selection
    find: Callable[[Subject], Iterable[Finding]]
    need: Need | None = None

    def can_look(self, subject: Subject) -> bool:
        """Return whether the subject has the data that the check needs."""
        return self.need is None or self.need.met(subject)


@dataclass(frozen=True)
class AuditReport(Report):
    """The findings of an audit.

    :ivar policy_digest: of the policy that the cloud was compared with
    """

    policy_digest: str
    hosts: int
    servers: int

    def by_code(self) -> dict[str, int]:
        """Count the findings of each known code, including codes with 0.

        Findings that the policy accepts are not counted here.
        """
        return self._counted(accepted=False)

    def accepted_by_code(self) -> dict[str, int]:
        """Count the accepted findings of each code that a policy may accept."""
        found = self._counted(accepted=True)
        return {c: n for c, n in found.items() if LEVELS[c] in ACCEPTABLE}

    def _counted(self, *, accepted: bool) -> dict[str, int]:
        found = Counter(f.code for f in self.findings if f.accepted is accepted)
        return {code: found[code] for code in AUDIT_CODES}


_AUDIT: Final = Selection.AUDIT
_PREFLIGHT: Final = Selection.PREFLIGHT
_POLICY: Final = Selection.POLICY
_BOTH: Final = _AUDIT | _PREFLIGHT
_ROWS: Final = (
    ("Policy", _PREFLIGHT | _POLICY, policy.check_policy),
    ("Flavors", _POLICY, policy.check_sync),
    ("Flavors go on finding hosts", _PREFLIGHT, policy.check_refused),
    ("Servers beside each other", _AUDIT, servers.check),
    ("Servers are of their class", _AUDIT, claims.check_servers),
    ("Servers hold what their class takes", _AUDIT, contract.check),
    ("Servers have today's flavors", _AUDIT, claims.check_changed),
    ("Flavors are the policy's", _AUDIT, claims.check_flavors),
    ("Images agree with the classes", _BOTH, images.check_images),
    ("Classes have their volume types", _BOTH | _POLICY, volumes.check_types, _CINDER),
    ("Root volumes are of their class's type", _AUDIT, volumes.check_roots, _CINDER),
    ("Keys are spelled right", _AUDIT, claims.check_spelling),
    ("Classes of aggregates", _AUDIT | _POLICY, hosts.check_aggregates),
    ("Some host is judged", _POLICY, hosts.check_judged),
    ("Hosts with slots have their label", _BOTH, hosts.check_labels),
    ("General VMs keep off slots", _POLICY, hosts.check_isolation),
    ("Hosts offer what the policy says", _AUDIT | _POLICY, offers.check),
    ("Placement has what hosts' files say", _AUDIT, provider_files.check, _COLLECTED),
    ("Placement knows the hosts", _PREFLIGHT | _POLICY, hosts.check_known),
    ("Filters", _POLICY, settings.check_filters),
    ("The policy is enforced", _PREFLIGHT | _POLICY, settings.check_enforced),
    ("Elastic hosts have their options", _PREFLIGHT, settings.check_elastic),
    ("Placement grants what it has", _BOTH, settings.check_retries),
    ("Elastic hosts are as enrolled", _BOTH | _POLICY, units.check_hosts),
    ("VMs on these hosts carry units", _BOTH, units.check_residents),
    (
        "Nova and Placement have VMs on the same NUMA nodes",
        _AUDIT,
        drift.check,
        _STEERS,
    ),
    ("Embedded flavors", _BOTH, units.check_flavors),
    ("Usage is within inventory", _BOTH, placement.check_usage),
    ("Allocations are the servers'", _AUDIT, placement.check),
    ("Providers belong to hosts", _AUDIT, placement.check_orphans),
    ("Nova, libvirt and the kernel agree", _AUDIT, hypervisors.check, _COLLECTED),
    ("Nova gets on with its work", _AUDIT, progress.check),
    ("Builds came to an end", _AUDIT, progress.check_builds),
    ("No known bug of Nova hits a VM", _AUDIT, nova_bugs.check),
    ("No cell is down", _PREFLIGHT, settings.check_cells),
    ("All was seen", _AUDIT, settings.check_gaps),
)
CHECKS: Final = tuple(itertools.starmap(CloudCheck, _ROWS))


def selected(selection: Selection) -> tuple[CloudCheck, ...]:
    """Return the checks of a command, in their order."""
    return tuple(check for check in CHECKS if selection in check.selections)


def run(subject: Subject, selection: Selection = Selection.AUDIT) -> AuditReport:
    """Audit a cloud, or run the checks of another command.

    Findings that the policy accepts are marked.
    """
    accept = subject.policy.accept
    results = (
        CheckFindings(
            check.title,
            tuple(found.judged_with(accept) for found in check.find(subject)),
        )
        for check in selected(selection)
        if check.can_look(subject)
    )
    return AuditReport(
        results=tuple(results),
        taken_at=subject.snapshot.taken_at,
        policy_digest=subject.policy.digest,
        hosts=len(subject.snapshot.hosts),
        servers=sum(server.known for server in subject.snapshot.servers),
    )

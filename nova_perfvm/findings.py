# SPDX-License-Identifier: Apache-2.0
"""Findings of checks: their codes and levels, reports, and exit statuses."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Self

# Remark on a finding that the policy accepts.
ACCEPTED: Final = "accepted in the policy"

# Exit status of a command that could not check anything.
CANNOT_TELL: Final = 3


class Level(enum.Enum):
    """Severity of a finding; a broken guarantee is a failure."""

    OK = "ok"
    NOTE = "note"
    UNKNOWN = "unknown"
    WARNING = "warning"
    FAILURE = "failure"

    def __lt__(self, other: Level) -> bool:
        """Return whether the other level is worse."""
        order = list(Level)
        return order.index(self) < order.index(other)

    def __str__(self) -> str:
        """Return the level's name in messages."""
        return self.value


# Levels that a policy may accept.
ACCEPTABLE: Final = frozenset({Level.WARNING, Level.UNKNOWN})


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level of the findings; OK for no findings."""
    return max((finding.level for finding in findings), default=Level.OK)


def exit_code(level: Level, *, strict: bool = False) -> int:
    """Return the exit status for the worst finding's level: 0, 1 or 2.

    :param strict: whether unknown findings count as warnings
    """
    codes = {Level.UNKNOWN: int(strict), Level.WARNING: 1, Level.FAILURE: 2}
    return codes.get(level, 0)


class Finding(NamedTuple):
    """A check's verdict on one subject.

    :ivar code: dotted and stable, such as ``audit.pins_overlap``
    :ivar subject: name of the host, provider, server...
    :ivar observed: figures and names; for level UNKNOWN, why the check could not tell
    :ivar expected: the expected value, unless ``observed`` has it
    :ivar source: the file or command with the observation, where that matters
    :ivar remedy: commands, a line each; the operator replaces words in capitals
    :ivar accepted: whether the policy accepts the finding
    :ivar cause: keyword for the reason of level UNKNOWN, if other code needs it
    """

    code: str
    level: Level
    subject: str
    observed: str
    expected: str = ""
    source: str = ""
    remedy: str = ""
    accepted: bool = False
    cause: str = ""

    @classmethod
    def of(
        cls,
        code: str,
        subject: str,
        observed: str,
        remedy: str = "",
        *,
        expected: str = "",
        source: str = "",
    ) -> Self:
        """Return a finding with the level of its code."""
        return cls(code, LEVELS[code], subject, observed, expected, source, remedy)

    def __str__(self) -> str:
        """Return ``code subject: observed``."""
        return f"{self.code} {self.subject}: {self.observed}"

    def judged_with(self, accept: Collection[str]) -> Self:
        """Return the finding, as a note if the policy accepts it.

        Failures cannot be accepted.

        :param accept: the codes that the policy accepts
        """
        if self.code not in accept or self.level not in ACCEPTABLE:
            return self
        observed = f"{self.observed} ({ACCEPTED})"
        return self._replace(level=Level.NOTE, observed=observed, accepted=True)


class CheckFindings(NamedTuple):
    """The findings of one check."""

    title: str
    findings: tuple[Finding, ...]

    @property
    def level(self) -> Level:
        """The worst level of the findings."""
        return worst(self.findings)

    @property
    def code(self) -> str:
        """The code of the first finding; empty without findings."""
        return self.findings[0].code if self.findings else ""


@dataclass(frozen=True)
class Report:
    """The findings of a run, in the order of the checks.

    :ivar taken_at: time of the observation, ISO 8601, UTC
    """

    # The levels in the summary of counts.
    counted: ClassVar = (Level.FAILURE, Level.WARNING, Level.UNKNOWN, Level.NOTE)

    results: tuple[CheckFindings, ...]
    taken_at: str

    @property
    def name(self) -> str:
        """The command that makes the report."""
        return "perfvm audit"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, worst first, then in the order of the checks."""
        found = [finding for result in self.results for finding in result.findings]
        return tuple(sorted(found, key=lambda finding: finding.level, reverse=True))

    def count(self, level: Level) -> int:
        """Count the findings of a level."""
        return sum(finding.level is level for finding in self.findings)

    def exit_code(self, *, strict: bool = False) -> int:
        """Return the exit status: 2 with failures, 1 with warnings, else 0.

        :param strict: whether unknown findings count as warnings
        """
        return exit_code(worst(self.findings), strict=strict)

    @property
    def counts(self) -> str:
        """Numbers of findings by level, such as ``1 failure, 2 warning``."""
        return ", ".join(f"{self.count(level)} {level}" for level in self.counted)


# The level of each code; a check may report a code at another level.
LEVELS: Final[dict[str, Level]] = {}

# Remedy for lost allocations of servers.
HEAL: Final = "openstack perfvm audit --heal"


def _code(name: str, level: Level = Level.WARNING) -> str:
    LEVELS[name] = level
    return name


# Codes are stable and never reused, as alerts depend on them.
# doc/source/admin/audit.rst has the meaning and the remedy of each code.
TOO_MANY_ON_HOST: Final = _code("audit.too_many_on_host", Level.FAILURE)
TOO_MANY_ON_CELL: Final = _code("audit.too_many_on_cell", Level.FAILURE)
SLOT_STRANDED: Final = _code("audit.slot_stranded", Level.FAILURE)
PINS_OVERLAP: Final = _code("audit.pins_overlap", Level.FAILURE)
CLASSES_MIXED: Final = _code("audit.classes_mixed", Level.FAILURE)
NOT_IN_ONE_CELL: Final = _code("audit.not_in_one_cell", Level.FAILURE)
NOT_PINNED: Final = _code("audit.not_pinned", Level.FAILURE)
OVER_INVENTORY: Final = _code("audit.usage_exceeds_inventory", Level.FAILURE)
UNITS_LACKING: Final = _code("audit.units_lacking", Level.FAILURE)
CELL_DIFFERS: Final = _code("audit.cell_differs", Level.FAILURE)
HOST_NOT_ISOLATED: Final = _code("audit.host_not_isolated", Level.FAILURE)

# On hosts from which a collected file is given.
PINS_DIFFER: Final = _code("audit.pins_differ", Level.FAILURE)
DOMAIN_LEFT_BEHIND: Final = _code("audit.domain_left_behind", Level.FAILURE)
DOMAIN_MISSING: Final = _code("audit.domain_missing")
PROVIDER_FILES_DIFFER: Final = _code("audit.provider_files_differ", Level.FAILURE)
PROVIDER_FILES_REFUSED: Final = _code("audit.provider_files_refused", Level.FAILURE)
NOT_COMPARED: Final = _code("audit.not_compared", Level.UNKNOWN)

NOT_CLAIMED: Final = _code("audit.not_claimed", Level.FAILURE)
CLAIMED_TOO_MUCH: Final = _code("audit.claimed_too_much")
CLASS_UNKNOWN: Final = _code("audit.class_unknown")
FORMER_SIZE: Final = _code("audit.former_size", Level.NOTE)
FLAVOR_CHANGED: Final = _code("audit.flavor_changed")
FLAVOR_DIFFERS: Final = _code("audit.flavor_differs")
IMAGE_CONFLICT: Final = _code("audit.image_conflict")
NEAR_MISS: Final = _code("audit.near_miss")
VOLUME_TYPE_MISSING: Final = _code("audit.volume_type_missing")
VOLUME_TYPE_DIFFERS: Final = _code("audit.volume_type_differs")
INVENTORY_DIFFERS: Final = _code("audit.inventory_differs")
TRAIT_DIFFERS: Final = _code("audit.trait_differs")
LABEL_UNKNOWN: Final = _code("audit.label_unknown")
LABEL_MISSING: Final = _code("audit.label_missing")
HOST_UNREADABLE: Final = _code("audit.host_unreadable")
LEAKED_ALLOCATION: Final = _code("audit.leaked_allocation")
ALLOCATION_MISSING: Final = _code("audit.allocation_missing")
ALLOCATION_ELSEWHERE: Final = _code("audit.allocation_elsewhere")
ORPHANED_CHILD: Final = _code("audit.orphaned_child")
ORPHANED_PROVIDER: Final = _code("audit.orphaned_provider")
CHILDREN_DIFFER: Final = _code("audit.children_differ", Level.FAILURE)
FLAVOR_WITHOUT_UNITS: Final = _code("audit.flavor_without_units")
FLAVOR_LEFT_BEHIND: Final = _code("audit.flavor_left_behind")
STUCK: Final = _code("audit.stuck")
BUILD_CUT_OFF: Final = _code("audit.build_cut_off")
RETRY_COUNT: Final = _code("audit.retry_count", Level.FAILURE)
CELL_DOWN: Final = _code("audit.cell_down")
NOVA_BUG: Final = _code("audit.nova_bug")
NOVA_BUG_POSSIBLE: Final = _code("audit.nova_bug_possible", Level.UNKNOWN)

RETRY_COUNT_UNKNOWN: Final = _code("audit.retry_count_unknown", Level.UNKNOWN)
CELLS_UNKNOWN: Final = _code("audit.cells_unknown", Level.UNKNOWN)
NOT_SEEN: Final = _code("audit.not_seen", Level.UNKNOWN)

TENANT_IMAGE: Final = _code("audit.tenant_image", Level.NOTE)

# For running servers that break a rule; the rule names the audit code.
CONTRACT_DIFFERS: Final = _code("audit.contract_differs")
IMAGE_TRAIT: Final = _code("audit.image_trait")
CLASSLESS_PINNED: Final = _code("audit.classless_pinned")
WRONG_SIZE: Final = _code("audit.wrong_size")
NO_MULTIQUEUE: Final = _code("audit.no_multiqueue")
NOT_OF_CLASS: Final = _code("audit.not_of_class")
WRONG_HOST: Final = _code("audit.wrong_host")
HOST_RESERVED: Final = _code("audit.host_reserved")
HOST_NOT_MANAGED: Final = _code("audit.host_not_managed")

# Costs of a valid policy.
NO_CPU_FOR_HOST: Final = _code("policy.no_cpu_for_host", Level.NOTE)
EMULATOR_THREADS_FLOAT: Final = _code("policy.emulator_threads_float", Level.NOTE)
RESTS_ON_FALLBACK: Final = _code("policy.rests_on_fallback", Level.NOTE)

# Differences between a cloud and a policy; see doc/source/reference/audit.rst.
FLAVORS_REFUSED: Final = _code("policy.flavors_refused", Level.FAILURE)
FLAVORS_DIFFER: Final = _code("policy.flavors_differ")
NO_HOST_JUDGED: Final = _code("policy.no_host_judged", Level.FAILURE)
GENERAL_ON_SLOTS: Final = _code("policy.general_on_slots", Level.FAILURE)
HOST_UNKNOWN: Final = _code("policy.host_unknown")

# Findings of preflight alone.
NOT_UNITS: Final = _code("preflight.not_units", Level.FAILURE)
TO_BACKFILL: Final = _code("preflight.to_backfill")
FLAVORS_TO_REFUSE: Final = _code("preflight.flavors_to_refuse")

# Options of Nova.
FILTER_MISSING: Final = _code("options.filter_missing", Level.FAILURE)
FILTERS_UNKNOWN: Final = _code("options.filters_unknown", Level.UNKNOWN)
FILTER_ORDER: Final = _code("options.filter_order")
JUDGED_TWICE: Final = _code("options.judged_twice")
NOT_STEERED: Final = _code("options.not_steered", Level.FAILURE)
CHEAPER_FILTER: Final = _code("options.cheaper_filter", Level.NOTE)
COSTLY_FILTER: Final = _code("options.costly_filter")
FALLBACK_QUERY: Final = _code("options.fallback_query")
FALLBACK_UNKNOWN: Final = _code("options.fallback_query_unknown", Level.UNKNOWN)
ISOLATION: Final = _code("options.isolated_aggregates", Level.FAILURE)
NUMA_PACKING: Final = _code("options.numa_packing")
ISOLATION_UNKNOWN: Final = _code("options.isolated_aggregates_unknown", Level.UNKNOWN)
FALLBACK_GONE: Final = _code("options.fallback_query_gone", Level.FAILURE)
PIN_SET: Final = _code("options.pin_set")
FILTERS_UNAVAILABLE: Final = _code("options.filters_unavailable", Level.FAILURE)
MODE_OBSERVE: Final = _code("options.mode_observe")
NOT_ENFORCED: Final = _code("options.not_enforced", Level.FAILURE)
ENFORCED_UNKNOWN: Final = _code("options.enforced_unknown", Level.UNKNOWN)

# Weaknesses of Nova itself.
HINTS_TAKEN: Final = _code("nova.hints_taken", Level.FAILURE)

# Codes of the audit; each code has a metric.
AUDIT_CODES: Final = tuple(code for code in LEVELS if code.startswith("audit."))

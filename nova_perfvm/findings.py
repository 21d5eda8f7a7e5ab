# SPDX-License-Identifier: Apache-2.0
"""What is found against a policy, and how bad each kind of it is."""

import enum
from collections.abc import Collection
from typing import Final, NamedTuple, Self

# What is said beside what a policy accepts.
ACCEPTED: Final = "accepted in the policy"


class Severity(enum.Enum):
    """From what no operator has to end to what breaks a guarantee."""

    NOTE = "note"
    UNKNOWN = "unknown"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def exit_code(self) -> int:
        """What a run exits with if this is the worst: 0, 1 or 2."""
        return {Severity.WARNING: 1, Severity.CRITICAL: 2}.get(self, 0)


# What an operator may live with; what is critical breaks a guarantee.
ACCEPTABLE: Final = frozenset({Severity.WARNING, Severity.UNKNOWN})


class Finding(NamedTuple):
    """One violation.

    :ivar code: dotted and stable, such as ``audit.pins_overlap``
    :ivar subject: the host, provider, server... that it is about
    :ivar evidence: the figures and names behind it
    :ivar remedy: commands, one a line; what to put in for words in capitals is
        for the operator to say
    :ivar accepted: the policy says that it is to stay
    """

    code: str
    subject: str
    evidence: str
    remedy: str = ""
    accepted: bool = False

    def __str__(self) -> str:
        """Return ``code subject: evidence``."""
        return f"{self.code} {self.subject}: {self.evidence}"

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return Severity.NOTE if self.accepted else SEVERITIES[self.code]

    def judged_with(self, accept: Collection[str]) -> Self:
        """Return it as a note if it is accepted and breaks no guarantee.

        :param accept: the codes that a policy accepts
        """
        if self.code not in accept or self.severity not in ACCEPTABLE:
            return self
        return self._replace(evidence=f"{self.evidence} ({ACCEPTED})", accepted=True)


# Of what the audit finds.
SEVERITIES: Final[dict[str, Severity]] = {}
# Of what policy check, preflight and the upgrade check find besides; the mildest,
# where a code is worse under another policy.
CHECK_SEVERITIES: Final[dict[str, Severity]] = {}

# The remedy for what servers have lost of their allocations.
HEAL: Final = "openstack perfvm audit --heal"


def _code(name: str, severity: Severity = Severity.WARNING) -> str:
    table = SEVERITIES if name.startswith("audit.") else CHECK_SEVERITIES
    table[name] = severity
    return name


# Codes are stable and never reused: alerts are written against them.  What each
# means and what to do is in doc/source/admin/audit.rst.
TOO_MANY_ON_HOST: Final = _code("audit.too_many_on_host", Severity.CRITICAL)
TOO_MANY_ON_CELL: Final = _code("audit.too_many_on_cell", Severity.CRITICAL)
SLOT_STRANDED: Final = _code("audit.slot_stranded", Severity.CRITICAL)
PINS_OVERLAP: Final = _code("audit.pins_overlap", Severity.CRITICAL)
CLASSES_MIXED: Final = _code("audit.classes_mixed", Severity.CRITICAL)
NOT_IN_ONE_CELL: Final = _code("audit.not_in_one_cell", Severity.CRITICAL)
NOT_PINNED: Final = _code("audit.not_pinned", Severity.CRITICAL)
OVER_INVENTORY: Final = _code("audit.usage_exceeds_inventory", Severity.CRITICAL)
UNITS_LACKING: Final = _code("audit.units_lacking", Severity.CRITICAL)
HOST_NOT_ISOLATED: Final = _code("audit.host_not_isolated", Severity.CRITICAL)

NOT_CLAIMED: Final = _code("audit.not_claimed", Severity.CRITICAL)
CLAIMED_TOO_MUCH: Final = _code("audit.claimed_too_much")
CLASS_UNKNOWN: Final = _code("audit.class_unknown")
FORMER_SIZE: Final = _code("audit.former_size", Severity.NOTE)
FLAVOR_CHANGED: Final = _code("audit.flavor_changed")
FLAVOR_DIFFERS: Final = _code("audit.flavor_differs")
IMAGE_CONFLICT: Final = _code("audit.image_conflict")
NEAR_MISS: Final = _code("audit.near_miss")
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
CHILDREN_DIFFER: Final = _code("audit.children_differ")
FLAVOR_WITHOUT_UNITS: Final = _code("audit.flavor_without_units")
FLAVOR_LEFT_BEHIND: Final = _code("audit.flavor_left_behind")
STUCK: Final = _code("audit.stuck")
BUILD_CUT_OFF: Final = _code("audit.build_cut_off")
RETRY_COUNT: Final = _code("audit.retry_count")
CELL_DOWN: Final = _code("audit.cell_down")

RETRY_COUNT_UNKNOWN: Final = _code("audit.retry_count_unknown", Severity.UNKNOWN)
CELLS_UNKNOWN: Final = _code("audit.cells_unknown", Severity.UNKNOWN)
NOT_SEEN: Final = _code("audit.not_seen", Severity.UNKNOWN)

TENANT_IMAGE: Final = _code("audit.tenant_image", Severity.NOTE)

# Of servers that run against a rule, which names its code.
CONTRACT_DIFFERS: Final = _code("audit.contract_differs")
IMAGE_TRAIT: Final = _code("audit.image_trait")
CLASSLESS_PINNED: Final = _code("audit.classless_pinned")
WRONG_SIZE: Final = _code("audit.wrong_size")
NO_MULTIQUEUE: Final = _code("audit.no_multiqueue")
NOT_OF_CLASS: Final = _code("audit.not_of_class")
WRONG_HOST: Final = _code("audit.wrong_host")
HOST_RESERVED: Final = _code("audit.host_reserved")
HOST_NOT_MANAGED: Final = _code("audit.host_not_managed")

# What is inherent in what a policy chooses.
NO_CPU_FOR_HOST: Final = _code("policy.no_cpu_for_host", Severity.NOTE)
THREADS_NOT_CORES: Final = _code("policy.threads_not_cores", Severity.NOTE)
EMULATOR_THREADS_FLOAT: Final = _code("policy.emulator_threads_float", Severity.NOTE)
RESTS_ON_FALLBACK: Final = _code("policy.rests_on_fallback", Severity.NOTE)

# What of a cloud is not as a policy says; see doc/source/admin/policy.rst.
FLAVORS_REFUSED: Final = _code("policy.flavors_refused", Severity.CRITICAL)
FLAVORS_DIFFER: Final = _code("policy.flavors_differ")
NO_HOST_JUDGED: Final = _code("policy.no_host_judged", Severity.CRITICAL)
GENERAL_ON_SLOTS: Final = _code("policy.general_on_slots", Severity.CRITICAL)
HOST_UNKNOWN: Final = _code("policy.host_unknown")

# What preflight alone finds.
NOT_UNITS: Final = _code("preflight.not_units", Severity.CRITICAL)
TO_BACKFILL: Final = _code("preflight.to_backfill")
FLAVORS_TO_REFUSE: Final = _code("preflight.flavors_to_refuse")

# Options of Nova.
FILTER_MISSING: Final = _code("options.filter_missing", Severity.CRITICAL)
FILTERS_UNKNOWN: Final = _code("options.filters_unknown", Severity.UNKNOWN)
FILTER_ORDER: Final = _code("options.filter_order")
JUDGED_TWICE: Final = _code("options.judged_twice")
CHEAPER_FILTER: Final = _code("options.cheaper_filter", Severity.NOTE)
COSTLY_FILTER: Final = _code("options.costly_filter")
FALLBACK_QUERY: Final = _code("options.fallback_query")
FALLBACK_UNKNOWN: Final = _code("options.fallback_query_unknown", Severity.UNKNOWN)
ISOLATION: Final = _code("options.isolated_aggregates", Severity.CRITICAL)
ISOLATION_UNKNOWN: Final = _code(
    "options.isolated_aggregates_unknown", Severity.UNKNOWN
)
PIN_SET: Final = _code("options.pin_set")

# SPDX-License-Identifier: Apache-2.0
"""A violation, and how bad each kind of it is."""

import enum
from itertools import chain
from typing import Final, NamedTuple

from nova_perfvm.rules import REFUSALS


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


class Finding(NamedTuple):
    """One violation.

    :ivar code: dotted and stable, such as ``audit.pins_overlap``
    :ivar subject: the host, provider, server... that it is about
    :ivar evidence: the figures and names behind it
    :ivar remedy: commands, one a line; what to put in for words in capitals is
        for the operator to say
    """

    code: str
    subject: str
    evidence: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return ``code subject: evidence``."""
        return f"{self.code} {self.subject}: {self.evidence}"

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return SEVERITIES[self.code]


# Codes are stable and never reused: alerts are written against them.  What each
# means and what to do is in doc/source/admin/audit.rst.  Those of servers that run
# against a rule are in the rule's file (nova_perfvm.rules).
TOO_MANY_ON_HOST: Final = "audit.too_many_on_host"
TOO_MANY_ON_CELL: Final = "audit.too_many_on_cell"
PINS_OVERLAP: Final = "audit.pins_overlap"
CLASSES_MIXED: Final = "audit.classes_mixed"
NOT_IN_ONE_CELL: Final = "audit.not_in_one_cell"
NOT_PINNED: Final = "audit.not_pinned"
OVER_INVENTORY: Final = "audit.usage_exceeds_inventory"
UNITS_LACKING: Final = "audit.units_lacking"
HOST_NOT_ISOLATED: Final = "audit.host_not_isolated"

NOT_CLAIMED: Final = "audit.not_claimed"
CLASS_UNKNOWN: Final = "audit.class_unknown"
FORMER_SIZE: Final = "audit.former_size"
FLAVOR_CHANGED: Final = "audit.flavor_changed"
FLAVOR_DIFFERS: Final = "audit.flavor_differs"
IMAGE_CONFLICT: Final = "audit.image_conflict"
NEAR_MISS: Final = "audit.near_miss"
INVENTORY_DIFFERS: Final = "audit.inventory_differs"
TRAIT_DIFFERS: Final = "audit.trait_differs"
LABEL_UNKNOWN: Final = "audit.label_unknown"
LEAKED_ALLOCATION: Final = "audit.leaked_allocation"
ALLOCATION_MISSING: Final = "audit.allocation_missing"
ALLOCATION_ELSEWHERE: Final = "audit.allocation_elsewhere"
ORPHANED_CHILD: Final = "audit.orphaned_child"
ORPHANED_PROVIDER: Final = "audit.orphaned_provider"
CHILDREN_DIFFER: Final = "audit.children_differ"
FLAVOR_WITHOUT_UNITS: Final = "audit.flavor_without_units"
FLAVOR_LEFT_BEHIND: Final = "audit.flavor_left_behind"
STUCK: Final = "audit.stuck"
BUILD_CUT_OFF: Final = "audit.build_cut_off"
RETRY_COUNT: Final = "audit.retry_count"
CELL_DOWN: Final = "audit.cell_down"

RETRY_COUNT_UNKNOWN: Final = "audit.retry_count_unknown"
CELLS_UNKNOWN: Final = "audit.cells_unknown"
NOT_SEEN: Final = "audit.not_seen"

TENANT_IMAGE: Final = "audit.tenant_image"

_CRITICAL: Final = (
    TOO_MANY_ON_HOST,
    TOO_MANY_ON_CELL,
    PINS_OVERLAP,
    CLASSES_MIXED,
    NOT_IN_ONE_CELL,
    NOT_PINNED,
    OVER_INVENTORY,
    NOT_CLAIMED,
    UNITS_LACKING,
    HOST_NOT_ISOLATED,
)
_UNKNOWN: Final = (RETRY_COUNT_UNKNOWN, CELLS_UNKNOWN, NOT_SEEN)
_NOTES: Final = (FORMER_SIZE, TENANT_IMAGE)
SEVERITIES: Final[dict[str, Severity]] = {
    value: Severity.CRITICAL
    if value in _CRITICAL
    else Severity.UNKNOWN
    if value in _UNKNOWN
    else Severity.NOTE
    if value in _NOTES
    else Severity.WARNING
    for value in chain(
        list(globals().values()), (rule.audit for rule in REFUSALS.values())
    )
    if isinstance(value, str) and value.startswith("audit.")
}

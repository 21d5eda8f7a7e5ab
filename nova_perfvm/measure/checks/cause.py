# SPDX-License-Identifier: Apache-2.0
"""Why a check could not judge, where that leaves nothing to prove."""

import enum
from typing import Final


class Cause(enum.StrEnum):
    """A stable word for the reason; other reasons have none.

    An unknown with one does not keep a flavor from being proven; one of
    NEVER_STOLEN does, unless the host shows that no vCPU waited.
    """

    # There is nothing to judge.
    ANY_NUMBER = "any_number"
    HARDWARE_DECIDES = "hardware_decides"
    NO_CPU = "no_cpu"
    NO_HUGE_PAGES = "no_huge_pages"
    NO_MULTIQUEUE = "no_multiqueue"
    NO_WHOLE_CORES = "no_whole_cores"
    ONE_CPU = "one_cpu"
    ONE_QUEUE = "one_queue"
    # Facts are missing so far.
    CLASS_UNKNOWN = "class_unknown"
    FLAVORS_UNKNOWN = "flavors_unknown"
    NEVER_STOLEN = "never_stolen"
    NOVA_SETS_UNKNOWN = "nova_sets_unknown"
    OTHERS_MAY_COME = "others_may_come"
    POWERED_DOWN = "powered_down"
    TOO_FEW_INTERRUPTS = "too_few_interrupts"
    VMS_OWN_ALL = "vms_own_all"

    @property
    def nothing_to_judge(self) -> bool:
        """Whether the machine has nothing for the check to judge."""
        return self in _NOTHING


_NOTHING: Final = frozenset(
    (
        *(Cause.ANY_NUMBER, Cause.HARDWARE_DECIDES, Cause.NO_CPU, Cause.NO_HUGE_PAGES),
        *(Cause.NO_MULTIQUEUE, Cause.NO_WHOLE_CORES, Cause.ONE_CPU, Cause.ONE_QUEUE),
    )
)

# SPDX-License-Identifier: Apache-2.0
"""What a check says: whether a rule holds, by what evidence."""

import enum
from collections.abc import Iterable
from typing import NamedTuple


class Status(enum.Enum):
    """From what no operator has to look at to what breaks the promise."""

    PASS = "pass"  # noqa: S105
    SKIP = "skip"
    WARN = "warn"
    FAIL = "fail"

    @property
    def exit_code(self) -> int:
        """What a run exits with if this is the worst: 0, 1 or 2."""
        return {Status.WARN: 1, Status.FAIL: 2}.get(self, 0)


class Outcome(NamedTuple):
    """What a check found about one thing.

    :ivar code: the check's: dotted and stable, such as ``guest.nic_queues``
    :ivar subject: the NIC, domain, NUMA node... that it is about
    :ivar expected: by the rule
    :ivar observed: the figures; of a SKIP, the reason
    :ivar source: the file or command that it was read in; none of a SKIP only
    :ivar remedy: what to do, empty if there is nothing to
    """

    code: str
    subject: str
    status: Status
    expected: str
    observed: str
    source: str
    remedy: str = ""


def worst(outcomes: Iterable[Outcome]) -> Status:
    """Return the worst of what checks found."""
    order = list(Status)
    statuses = (outcome.status for outcome in outcomes)
    return max(statuses, key=order.index, default=Status.SKIP)

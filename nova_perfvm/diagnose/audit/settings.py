# SPDX-License-Identifier: Apache-2.0
"""What no API shows: Placement's retries, and what could not be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm.diagnose import preflight
from nova_perfvm.diagnose.audit import finding as codes
from nova_perfvm.diagnose.audit.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.diagnose.audit.subject import Subject


def check_retries(subject: Subject) -> Iterator[Finding]:
    """Judge placement.conf on its database."""
    view = preflight.CloudView(
        placement_settings=subject.placement_settings,
        placement_database=subject.placement_database,
    )
    result = preflight.check_retries(subject.policy, view)
    unknown = result.code is preflight.Code.UNKNOWN
    remedy = result.remedy
    if subject.placement_settings is None:
        remedy = "openstack perfvm audit --placement-conf FILE"
    for detail in result.details:
        yield Finding(
            codes.RETRY_COUNT_UNKNOWN if unknown else codes.RETRY_COUNT,
            "placement.conf",
            detail,
            remedy,
        )


def check_gaps(subject: Subject) -> Iterator[Finding]:
    """List what was not there to be judged."""
    for gap in subject.snapshot.gaps:
        what, _, why = gap.partition(": ")
        # Servers are missing where Nova cannot ask a cell's database.
        cells = what == "servers"
        remedy = "nova-manage cell_v2 list_cells" if cells else "openstack catalog list"
        yield Finding(codes.NOT_SEEN, what, why, remedy)

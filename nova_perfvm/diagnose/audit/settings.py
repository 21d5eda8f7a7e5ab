# SPDX-License-Identifier: Apache-2.0
"""What no API shows: Placement's retries, and what could not be seen."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import preflight
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import Finding

# What shows why Nova cannot ask a cell's database.
_FIND_OUT: Final = dict.fromkeys(
    ("cells", "hypervisors"), "nova-manage cell_v2 list_cells"
)


def check_retries(subject: Subject) -> Iterator[Finding]:
    """Judge placement.conf on its database."""
    view = preflight.CloudView(
        placement_settings=subject.placement_settings,
        placement_database=subject.placement_database,
    )
    result = preflight.check_retries(subject.policy, view)
    remedy = result.remedy
    if subject.placement_settings is None:
        remedy = "openstack perfvm audit --placement-conf FILE"
    for detail in result.details:
        yield Finding(result.finding, "placement.conf", detail, remedy)


def check_gaps(subject: Subject) -> Iterator[Finding]:
    """List what was not there to be judged."""
    for gap in subject.snapshot.gaps:
        what, _, why = gap.partition(": ")
        remedy = _FIND_OUT.get(what, "openstack catalog list")
        code = codes.CELL_DOWN if what == "cells" else codes.NOT_SEEN
        yield Finding(code, what, why, remedy)

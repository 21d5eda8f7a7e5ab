# SPDX-License-Identifier: Apache-2.0
"""Whether Placement can grant more than it has.

Its retries run inside the transaction of the attempt that failed.  What they see
there depends on the isolation level; each row below was measured
(doc/source/admin/overgranting.rst).
"""

from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.facts import placement_database as levels
from nova_perfvm.facts.placement_database import PlacementDatabase
from nova_perfvm.findings import Finding
from nova_perfvm.generate.options import RETRIES

_ONCE: Final = (
    "crudini --set /etc/placement/placement.conf "
    f"{' '.join((*RETRIES.key, *RETRIES.values))}  # and restart {RETRIES.service}"
)
_LEVEL: Final = (
    'mariadb -e "SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED"'
    "  # and restart Placement's API"
)


def judge(value: str | None, database: PlacementDatabase | None) -> Finding | None:
    """Judge the number of retries on a database; None if it is right.

    :param value: what placement.conf says, None if it says nothing
    :param database: None if nobody looked
    """
    once = value in RETRIES.values
    level = database.isolation_level if database else ""
    where = f"{level}, {database}"
    if not level:
        why = database.unread if database else "nobody looked"
        where = f"its database is not known: {why}"
    # A retry on an old snapshot ends with an error that undoes it all.  At READ
    # COMMITTED there is no snapshot to conflict with, and READ UNCOMMITTED reads
    # claims that are taken back, with one try, too.
    safe = level == levels.REPEATABLE_READ and database and database.snapshot_isolation
    remedies = [] if once or safe else [_ONCE]
    if level == levels.READ_UNCOMMITTED:
        remedies.append(_LEVEL)
    if not remedies:
        return None
    return Finding.of(
        codes.RETRY_COUNT,
        "placement.conf",
        f"{RETRIES.stated(value)}: where claims meet, Placement grants more than it "
        f"has at times, or ends them with status 500 ({where})",
        "\n".join(remedies),
    )

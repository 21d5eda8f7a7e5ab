# SPDX-License-Identifier: Apache-2.0
"""Judge whether Placement may grant more than its inventories have.

Placement retries inside the transaction of the failed attempt.  Which data a retry sees
depends on the isolation level; each case below was measured
(doc/source/contributor/upstream.rst).
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
    """Judge the number of retries together with the database; None if they are right.

    :param value: the option in placement.conf; None if it is not set
    :param database: None if it was not read
    """
    once = value in RETRIES.values
    level = database.isolation_level if database else ""
    where = f"{level}, {database}"
    if not level:
        why = database.unread if database else "it was not read"
        where = f"its database is not known: {why}"
    # REPEATABLE READ with snapshot isolation: a retry on an old snapshot fails, and its
    # transaction is rolled back.  READ COMMITTED: retries read current data.  READ
    # UNCOMMITTED reads claims that are rolled back later, even without retries.
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

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

_A: Final = "cause A: a retry does not see the claims that it met"
_B: Final = "cause B: a retry takes the rows of the failed attempt for earlier usage"
_CAUSES: Final = {
    levels.REPEATABLE_READ: _A,
    levels.READ_COMMITTED: _B,
    levels.READ_UNCOMMITTED: _B,
}


def judge(value: str | None, database: PlacementDatabase | None) -> Finding | None:
    """Judge the number of retries on a database; None if it is right.

    :param value: what placement.conf says, None if it says nothing
    :param database: None if nobody looked
    """
    said = RETRIES.stated(value)
    once = value in RETRIES.values
    if database is None or database.unread:
        why = "nobody looked" if database is None else database.unread
        found = _bad(
            f"{said}: Placement grants more than it has at times, on most databases "
            f"(causes A and B); how this one isolates transactions is not known: {why}"
        )
        return None if once else found
    level = database.isolation_level
    # PostgreSQL knows the name, and gives READ COMMITTED.
    if level == levels.READ_UNCOMMITTED and database.server != "PostgreSQL":
        return _bad(
            f"at {level} Placement grants more than it has at times, whatever "
            f"{RETRIES} is, as it reads claims that are taken back ({database})",
            _LEVEL if once else f"{_ONCE}\n{_LEVEL}",
        )
    if once or _conflicts_are_errors(database):
        return None
    cause = _cause(database)
    if cause is None:
        return _bad(
            f"{said}: at {level} Placement has never been seen to grant too "
            f"much, but claims that meet end with status 500 ({database})",
            code=codes.RETRY_COUNT_UNKNOWN,
        )
    return _bad(
        f"{said}: at {level} Placement grants more than it has at times ({cause}; "
        f"{database})"
    )


def _bad(words: str, remedy: str = _ONCE, code: str = codes.RETRY_COUNT) -> Finding:
    return Finding.of(code, "placement.conf", words, remedy)


def _conflicts_are_errors(database: PlacementDatabase) -> bool:
    """Whether a retry on an old snapshot ends with an error that undoes it all.

    At READ COMMITTED there is no snapshot to conflict with.
    """
    return (
        database.isolation_level == levels.REPEATABLE_READ
        and database.snapshot_isolation is True
    )


def _cause(database: PlacementDatabase) -> str | None:
    # PostgreSQL's REPEATABLE READ is what MariaDB calls snapshot isolation, but there
    # oslo.db takes a conflict for no deadlock, and nothing is tried again.
    if database.server == "PostgreSQL" and database.isolation_level not in {
        levels.READ_COMMITTED,
        levels.READ_UNCOMMITTED,
    }:
        return None
    return _CAUSES.get(database.isolation_level)

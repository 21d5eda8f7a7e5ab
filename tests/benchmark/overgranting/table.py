# SPDX-License-Identifier: Apache-2.0
"""The settings that are tried, a row each, and what is printed of them."""

import dataclasses

from tests.benchmark.overgranting.processes import DONE, REFUSED

HEAD = (
    f"{'isolation level':18}{'snapshot isolation':20}{'retries':>7}"
    f"{'rounds over':>13}{'most used':>11}{'granted':>9}{'refused':>9}{'failed':>8}"
)


@dataclasses.dataclass(frozen=True)
class Row:
    """One setting of the database and of Placement.

    ``snapshot`` is innodb_snapshot_isolation; None where MariaDB has none.
    """

    level: str
    snapshot: bool | None
    retries: int


def describe(row):
    """Return a row's setting in a line."""
    snapshot = "snapshot isolation, " if row.snapshot else ""
    return f"{row.level}, {snapshot}{row.retries} retries"


def line(row, tally):
    """Return a row of the table."""
    snapshot = {None: "unknown to it", False: "OFF", True: "ON"}[row.snapshot]
    granted, refused = (tally.statuses.count(status) for status in (DONE, REFUSED))
    failed = len(tally.statuses) - granted - refused
    return (
        f"{row.level:18}{snapshot:20}{row.retries:7}"
        f"{f'{tally.over}/{len(tally.used)}':>13}{max(tally.used):11}"
        f"{granted:9}{refused:9}{failed:8}"
    )


def rows(levels, snapshots, retries):
    """Return the settings to try."""
    return [
        Row(level, snapshot, number)
        for level in levels
        for snapshot in snapshots
        for number in retries
    ]

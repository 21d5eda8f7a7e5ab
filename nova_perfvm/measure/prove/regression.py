# SPDX-License-Identifier: Apache-2.0
"""Find what held in an earlier record and does not hold any more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from scipy import stats

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.prove.record import Document
from nova_perfvm.measure.report.answer import ratio
from nova_perfvm.measure.statistics.compare import ComparedGroup
from nova_perfvm.measure.statistics.intervals import Estimate
from nova_perfvm.measure.statistics.verdict import OF_RATIO

CODE: Final = "certify.regression"
# Of all ratios together: each is held against that divided by their number
# (Bonferroni), or a record of forty would be worse than itself every second time.
CHANCE: Final = 0.05


def find(before: Document, now: Document) -> tuple[list[Finding], list[str]]:
    """Compare a record with an earlier one.

    :returns: what is worse; and what has changed, or could not be compared
    :raises PerfVMError: when that is of another flavor
    """
    was, promised = before["promised"], now["promised"]
    if was["flavor"] != promised["flavor"]:
        raise PerfVMError(
            f"--previous: it is of flavor {was['flavor']}, and this one of "
            f"{promised['flavor']}: name a record of the same flavor"
        )
    remarks = [
        f"{label}: {old} before, {new} now"
        for label, old, new in (
            ("host", before["host"]["hostname"], now["host"]["hostname"]),
            ("policy (sha256)", was["policy_sha256"], promised["policy_sha256"]),
            ("target", was["target"], promised["target"]),
        )
        if old != new
    ]
    worse = [*_checks(before, now), *_ratios(before, now, remarks)]
    return worse, remarks


def _checks(before: Document, now: Document) -> Iterator[Finding]:
    """Look for checks that passed and no longer do, of whichever machine."""
    old, new = _levels(before), _levels(now)
    for (kind, code), level in old.items():
        found = new.get((kind, code), Level.UNKNOWN)
        if level is Level.OK and found is not Level.OK:
            bad = Level.UNKNOWN if found is Level.UNKNOWN else Level.FAILURE
            text = f"it passed in the record of {before['made_at']}, and is {found} now"
            yield Finding(CODE, bad, code, text, source=kind)


def _levels(record: Document) -> dict[tuple[str, str], Level]:
    """Return the worst level of each check: {(kind of machine, code): it}."""
    found: dict[tuple[str, str], Level] = {}
    for section in record["checks"]:
        for result in section["results"]:
            check = section["kind"], result["code"]
            found[check] = max(found.get(check, Level.OK), Level(result["level"]))
    return found


def _ratios(before: Document, now: Document, remarks: list[str]) -> Iterator[Finding]:
    """Look for ratios that are worse by more than chance, or gone."""
    old, new = _rows(before), _rows(now)
    common = old.keys() & new.keys()
    for (who, group), row in old.items():
        found = new.get((who, group))
        if found is None and row["verdict"] == OF_RATIO[Level.OK]:
            text = f"it passed in the record of {before['made_at']}, and is gone now"
            yield Finding(CODE, Level.UNKNOWN, str(group), text, source=who)
        earlier, later = _judged(row), _judged(found)
        if earlier is None or later is None:
            continue
        chance = _by_chance(earlier, later, row["better"])
        if chance is None:
            remarks.append(f"{who}: {group}: too few rounds to compare")
        elif chance < CHANCE / len(common):
            text = (
                f"{ratio(earlier)} in the record of {before['made_at']}, "
                f"{ratio(later)} now: worse, and by chance so with a probability "
                f"of {chance:.2g}"
            )
            yield Finding(CODE, Level.FAILURE, str(group), text, source=who)


def _rows(record: Document) -> dict[tuple[str, ComparedGroup], Document]:
    """Return the comparisons of VMs, but for those beside busy neighbours."""
    return {
        (row["who"], ComparedGroup(*map(row.get, ComparedGroup._fields))): row
        for row in record["comparisons"]
        if not row["loaded_neighbours"]
    }


def _judged(row: Document | None) -> Estimate | None:
    """Return the ratio that the target is for."""
    found = row and row["vs_share" if row["against"] == "share" else "vs_host"]
    return Estimate(**found) if found else None


def _by_chance(earlier: Estimate, later: Estimate, better: str) -> float | None:
    """Return how probable so much worse a ratio is if nothing has changed.

    Welch's test of the logarithms; None if a spread is not known.
    """
    sign = 1 if better == "higher" else -1
    means = [sign * math.log(one.ratio) for one in (earlier, later)]
    if earlier.spread is None or later.spread is None:
        return None
    if not earlier.spread and not later.spread:
        return 0.0 if means[1] < means[0] else 1.0
    found = stats.ttest_ind_from_stats(
        *(means[0], earlier.spread, earlier.effective),
        *(means[1], later.spread, later.effective),
        equal_var=False,
        alternative="greater",
    )
    return float(found.pvalue)

# SPDX-License-Identifier: Apache-2.0
"""Find what held in an earlier record and does not hold any more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from scipy import stats

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.findings import Level
from nova_perfvm.measure.prove.judge import Certification, Judged, Shortfall
from nova_perfvm.measure.prove.record import Document
from nova_perfvm.measure.report.answer import ratio
from nova_perfvm.measure.statistics.compare import ComparedGroup
from nova_perfvm.measure.statistics.intervals import Estimate
from nova_perfvm.measure.statistics.verdict import Verdict as Compared

CODE: Final = "certify.regression"
# Of all ratios together: each is held against that divided by their number
# (Bonferroni), or a record of forty would be worse than itself every second time.
CHANCE: Final = 0.05


class Regressions(NamedTuple):
    """What was found against an earlier record.

    :ivar reasons: what is worse
    :ivar remarks: what has changed, and what could not be compared
    """

    reasons: tuple[Shortfall, ...]
    remarks: tuple[str, ...]


_Run = tuple[str, ComparedGroup]


def find(before: Document, judged: Judged, now: Document) -> Regressions:
    """Compare a new record with an earlier one.

    :param now: the new record
    :raises PerfVMError: when the earlier one is of another flavor
    """
    flavor = before["promised"]["flavor"]
    if flavor != judged.inputs.flavor.name:
        raise PerfVMError(
            f"--previous: it is of flavor {flavor}, and this one of "
            f"{judged.inputs.flavor.name}: name a record of the same flavor"
        )
    remarks: list[str] = []
    for label, old, new in (
        ("host", before["host"]["hostname"], now["host"]["hostname"]),
        (
            "policy (sha256)",
            before["promised"]["policy_sha256"],
            now["promised"]["policy_sha256"],
        ),
        ("target", before["promised"]["target"], now["promised"]["target"]),
    ):
        if old != new:
            remarks.append(f"{label}: {old} before, {new} now")
    reasons = [*_checks(before, now), *_ratios(before, now, remarks)]
    return Regressions(tuple(reasons), tuple(remarks))


def _checks(before: Document, now: Document) -> Iterator[Shortfall]:
    """Look for checks that passed and no longer do, of whichever machine."""
    old, new = _levels(before), _levels(now)
    for (kind, code), level in old.items():
        there = new.get((kind, code))
        if level is not Level.OK or there is Level.OK:
            continue
        words = f"is {there.value}" if there else "is not there"
        yield Shortfall(
            Certification.NOT_PROVEN
            if there in {None, Level.UNKNOWN}
            else Certification.REFUSED,
            *(CODE, kind, code),
            f"it passed in the record of {before['made_at']}, and {words} now",
        )


def _levels(record: Document) -> dict[tuple[str, str], Level]:
    """Return the worst level of each check, by the kind of machine and its code."""
    found: dict[tuple[str, str], Level] = {}
    for section in record["checks"]:
        for result in section["results"]:
            place = (section["kind"], result["code"])
            found[place] = max(found.get(place, Level.OK), Level(result["level"]))
    return found


def _ratios(before: Document, now: Document, remarks: list[str]) -> Iterator[Shortfall]:
    """Look for ratios that are worse by more than chance."""
    old, new = _runs(before), _runs(now)
    common = old.keys() & new.keys()
    for run, row in old.items():
        if run not in common and row["verdict"] == Compared.PASS.value:
            yield Shortfall(
                Certification.NOT_PROVEN,
                CODE,
                run[0],
                str(run[1]),
                f"it passed in the record of {before['made_at']}, and is not there now",
            )
    for run in sorted(common):
        earlier, later = (_judged(rows[run]) for rows in (old, new))
        if earlier is None or later is None:
            continue
        chance = _by_chance(earlier, later, new[run]["better"])
        if chance is None:
            remarks.append(f"{run[0]}: {run[1]}: too few rounds to compare")
        elif chance < CHANCE / len(common):
            yield Shortfall(
                Certification.REFUSED,
                CODE,
                run[0],
                str(run[1]),
                f"{ratio(earlier)} in the record of {before['made_at']}, "
                f"{ratio(later)} now: worse, and by chance so with a probability of "
                f"{chance:.2g}",
            )


def _runs(record: Document) -> dict[_Run, Document]:
    return {
        (row["who"], ComparedGroup(*(row[name] for name in ComparedGroup._fields))): row
        for row in record["comparisons"]
        if not row["loaded_neighbours"]
    }


def _judged(row: Document) -> Estimate | None:
    found = row["vs_share" if row["against"] == "share" else "vs_host"]
    return found and Estimate(**found)


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

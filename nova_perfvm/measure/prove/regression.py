# SPDX-License-Identifier: Apache-2.0
"""Find what held in an earlier record and does not hold any more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from scipy import stats

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.prove.judge import Judged
from nova_perfvm.measure.prove.record import Document
from nova_perfvm.measure.report.answer import ratio
from nova_perfvm.measure.statistics.compare import ComparedGroup
from nova_perfvm.measure.statistics.intervals import Estimate
from nova_perfvm.measure.statistics.verdict import OF_RATIO

CODE: Final = "certify.regression"
# Of all ratios together: each is held against that divided by their number
# (Bonferroni), or a record of forty would be worse than itself every second time.
CHANCE: Final = 0.05


def find(before: Document, judged: Judged) -> tuple[list[Finding], list[str]]:
    """Compare what is judged now with an earlier record.

    :returns: what is worse; and what has changed, or could not be compared
    :raises PerfVMError: when that is of another flavor
    """
    inputs, promised = judged.inputs, before["promised"]
    if promised["flavor"] != inputs.flavor.name:
        raise PerfVMError(
            f"--previous: it is of flavor {promised['flavor']}, and this one of "
            f"{inputs.flavor.name}: name a record of the same flavor"
        )
    remarks = [
        f"{label}: {old} before, {new} now"
        for label, old, new in (
            ("host", before["host"]["hostname"], inputs.host.collected.hostname),
            ("policy (sha256)", promised["policy_sha256"], inputs.policy.digest),
            ("target", promised["target"], judged.target),
        )
        if old != new
    ]
    worse = [*_checks(before, judged), *_ratios(before, judged, remarks)]
    return worse, remarks


def _checks(before: Document, judged: Judged) -> Iterator[Finding]:
    """Look for checks that passed and no longer do, of whichever machine."""
    # {(kind of machine, code): the worst level}.
    old: dict[tuple[str, str], Level] = {}
    new: dict[tuple[str, str], Level] = {}
    for section in before["checks"]:
        for result in section["results"]:
            check = section["kind"], result["code"]
            old[check] = max(old.get(check, Level.OK), Level(result["level"]))
    for kind, _, report in judged.sections:
        for result in report.results:
            check = kind, result.code
            new[check] = max(new.get(check, Level.OK), result.level)
    for (kind, code), level in old.items():
        now = new.get((kind, code), Level.UNKNOWN)
        if level is Level.OK and now is not Level.OK:
            bad = Level.UNKNOWN if now is Level.UNKNOWN else Level.FAILURE
            text = f"it passed in the record of {before['made_at']}, and is {now} now"
            yield Finding(CODE, bad, code, text, source=kind)


def _ratios(before: Document, judged: Judged, remarks: list[str]) -> Iterator[Finding]:
    """Look for ratios that are worse by more than chance, or gone."""
    new = {
        (row.who, row.group): row
        for row in judged.comparisons
        if not row.loaded_neighbours
    }
    old = {
        (row["who"], ComparedGroup(*map(row.get, ComparedGroup._fields))): row
        for row in before["comparisons"]
        if not row["loaded_neighbours"]
    }
    common = old.keys() & new.keys()
    for (who, group), row in old.items():
        now = new.get((who, group))
        was = row["vs_share" if row["against"] == "share" else "vs_host"]
        if now is None and row["verdict"] == OF_RATIO[Level.OK]:
            text = f"it passed in the record of {before['made_at']}, and is gone now"
            yield Finding(CODE, Level.UNKNOWN, str(group), text, source=who)
        if now is None or now.judged is None or was is None:
            continue
        earlier = Estimate(**was)
        chance = _by_chance(earlier, now.judged, row["better"])
        if chance is None:
            remarks.append(f"{who}: {group}: too few rounds to compare")
        elif chance < CHANCE / len(common):
            text = (
                f"{ratio(earlier)} in the record of {before['made_at']}, "
                f"{ratio(now.judged)} now: worse, and by chance so with a probability "
                f"of {chance:.2g}"
            )
            yield Finding(CODE, Level.FAILURE, str(group), text, source=who)


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

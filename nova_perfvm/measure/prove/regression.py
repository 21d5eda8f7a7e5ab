# SPDX-License-Identifier: Apache-2.0
"""Find what held in an earlier record and does not hold any more."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from scipy import stats

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.findings import Level
from nova_perfvm.measure.prove.judge import Certification, Judged, Shortfall
from nova_perfvm.measure.prove.record import Document
from nova_perfvm.measure.statistics.verdict import Verdict as Compared
from nova_perfvm.printable import number_of

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


# (kind, where, code, subject), and (who, metric, threads, at once).
_Place = tuple[str, str, str, str]
_Run = tuple[str, str, float, float]


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
    """Look for what passed and no longer does.

    Of machines that are in both records each thing that a check looked at; of
    others only the check as a whole, as they have other CPUs and NICs.
    """
    old, new = _levels(before), _levels(now)
    machines = {(kind, where) for kind, where, _, _ in new}
    if before["host"]["hostname"] != now["host"]["hostname"]:
        machines -= {("host", "host"), ("files", "files")}
    of_others = {place for place in old if place[:2] not in machines}
    whole_old, whole_new = _by_check(old, of_others), _by_check(new, new)
    for place, level in old.items():
        if place not in of_others and level is Level.OK:
            yield from _changed(before, place, new.get(place))
    for (kind, code), level in whole_old.items():
        if level is Level.OK:
            yield from _changed(
                before, (kind, kind, code, ""), whole_new.get((kind, code))
            )


def _by_check(
    levels: Mapping[_Place, Level], places: Collection[_Place]
) -> dict[tuple[str, str], Level]:
    """Return the worst level of each check of some places."""
    found: dict[tuple[str, str], Level] = {}
    for place in places:
        kind, _, code, _ = place
        level = levels[place]
        worse = max(level, found.get((kind, code), level))
        found[kind, code] = worse
    return found


def _changed(
    before: Document, place: _Place, level: Level | None
) -> Iterator[Shortfall]:
    """Say that something that passed no longer does, unless it does."""
    _, where, code, subject = place
    if level is Level.OK:
        return
    words = f"is {level.value}" if level else "is not there"
    yield Shortfall(
        Certification.NOT_PROVEN
        if level in {None, Level.UNKNOWN}
        else Certification.REFUSED,
        CODE,
        where,
        f"{code}, {subject}" if subject else code,
        f"it passed in the record of {before['made_at']}, and {words} now",
    )


def _levels(record: Mapping[str, Any]) -> dict[_Place, Level]:
    """Return the worst level of each thing that was looked at."""
    found: dict[_Place, Level] = {}
    for section in record["checks"]:
        for result in section["results"]:
            for one in result["findings"]:
                place = (
                    *(section["kind"], section["where"]),
                    *(result["code"], one["subject"]),
                )
                level = Level(one["level"])
                worse = max(level, found.get(place, level))
                found[place] = worse
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
                _named(run),
                f"it passed in the record of {before['made_at']}, and is not there now",
            )
    for run in sorted(common):
        earlier, later = (_judged(rows[run]) for rows in (old, new))
        if earlier is None or later is None:
            continue
        chance = _by_chance(earlier, later, new[run]["better"])
        if chance is None:
            remarks.append(f"{run[0]}: {_named(run)}: too few rounds to compare")
        elif chance < CHANCE / len(common):
            yield Shortfall(
                Certification.REFUSED,
                CODE,
                run[0],
                _named(run),
                f"{_shown(earlier)} in the record of {before['made_at']}, "
                f"{_shown(later)} now: worse, and by chance so with a probability of "
                f"{chance:.2g}",
            )


def _runs(record: Document) -> dict[_Run, Document]:
    return {
        (row["who"], row["metric"], row["threads"], row["at_once"]): row
        for row in record["comparisons"]
    }


def _named(run: _Run) -> str:
    _, metric, threads, at_once = run
    return f"{metric}, {number_of(int(threads), 'thread')}, {at_once:g} at once"


def _judged(row: Document) -> Document | None:
    found: Document | None = row["vs_share" if row["against"] == "share" else "vs_host"]
    return found


def _shown(estimate: Document) -> str:
    low, high = estimate.get("low"), estimate.get("high")
    if low is None or high is None:
        return f"{estimate['ratio']:.3f}"
    return f"{estimate['ratio']:.3f} ({low:.3f}-{high:.3f})"


def _by_chance(earlier: Document, later: Document, better: str) -> float | None:
    """Return how probable so much worse a ratio is if nothing has changed.

    Welch's test of the logarithms; None if a spread is not known.
    """
    sign = 1 if better == "higher" else -1
    means = [sign * math.log(one["ratio"]) for one in (earlier, later)]
    spreads = [one.get("spread") for one in (earlier, later)]
    if None in spreads:
        return None
    if not any(spreads):
        return 0.0 if means[1] < means[0] else 1.0
    found = stats.ttest_ind_from_stats(
        *(means[0], spreads[0], earlier["effective"]),
        *(means[1], spreads[1], later["effective"]),
        equal_var=False,
        alternative="greater",
    )
    return float(found.pvalue)

# SPDX-License-Identifier: Apache-2.0
"""What a file of :mod:`nova_perfvm.measure.checks` declares: one check.

A file of the packages ``host`` and ``guest`` has one, called ``CHECK`` (or
several, in a tuple ``CHECKS``, where they read the same); it is found there.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, NamedTuple

from nova_perfvm.measure.checks import not_read
from nova_perfvm.measure.collected import NotReadError
from nova_perfvm.measure.outcome import Outcome, Status


class Observation(NamedTuple):
    """What a check's function yields; see :class:`Outcome`."""

    status: Status
    subject: str
    expected: str
    observed: str
    source: str
    remedy: str = ""


class Check(NamedTuple):
    """One rule about a machine.

    :ivar order: place among the checks
    :ivar code: dotted, stable, never reused
    :ivar title: what has to hold, in one sentence
    :ivar find: yields what it found of a subject; it may raise
        :class:`NotReadError` where what it needs was not read
    """

    order: int
    code: str
    title: str
    find: Callable[[Any], Iterable[Observation]]

    def outcomes(self, subject: Any) -> list[Outcome]:
        """Return what it found; a SKIP with the reason where it could not look."""
        found: list[Observation] = []
        try:
            found.extend(self.find(subject))
        except NotReadError as exc:
            found.append(skipped("", exc.reason, exc.place))
        if not found:
            found.append(skipped("", "there is nothing that it is about"))
        return [Outcome(self.code, *self._proved(finding)) for finding in found]

    def _proved(self, finding: Observation) -> tuple[Any, ...]:
        """Look that nothing passes without evidence."""
        subject, source = finding.subject, finding.source
        if finding.status is not Status.SKIP and not (source and finding.observed):
            message = f"{self.code} of {subject!r} names no evidence"
            raise AssertionError(message)
        _, _, *rest = finding
        return (subject, finding.status, *rest)


def passed(subject: str, expected: str, observed: str, source: str) -> Observation:
    """Return that a rule holds."""
    return Observation(Status.PASS, subject, expected, observed, source)


def warned(
    subject: str, expected: str, observed: str, source: str, remedy: str
) -> Observation:
    """Return that a rule does not hold, which costs performance at times."""
    return Observation(Status.WARN, subject, expected, observed, source, remedy)


def failed(
    subject: str, expected: str, observed: str, source: str, remedy: str
) -> Observation:
    """Return that a rule does not hold, which breaks the promise."""
    return Observation(Status.FAIL, subject, expected, observed, source, remedy)


def skipped(subject: str, reason: str, source: str = "") -> Observation:
    """Return that nobody can tell, why, and what lets it be told."""
    return Observation(
        Status.SKIP, subject, "", reason, source, not_read.remedy(reason)
    )


def judged(
    subject: str,
    expected: str,
    observed: str,
    source: str,
    *,
    holds: bool,
    remedy: str,
    otherwise: Status = Status.FAIL,
) -> Observation:
    """Return that a rule holds, or what is to be done."""
    if holds:
        return passed(subject, expected, observed, source)
    return Observation(otherwise, subject, expected, observed, source, remedy)


def checks_of(package: ModuleType) -> tuple[Check, ...]:
    """Return the checks of the files of a package, in their order."""
    found: list[Check] = []
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        found.extend(getattr(module, "CHECKS", None) or (module.CHECK,))
    return tuple(sorted(found, key=lambda check: check.order))

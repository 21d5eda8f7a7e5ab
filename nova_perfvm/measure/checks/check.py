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

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks import not_read
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.collect.collected import NotReadError


class Check(NamedTuple):
    """One rule about a machine.

    :ivar order: place among the checks
    :ivar code: dotted, stable, never reused
    :ivar title: what has to hold, in one sentence
    :ivar find: yields what it found of a subject, without the code; it may raise
        :class:`NotReadError` where what it needs was not read
    """

    order: int
    code: str
    title: str
    find: Callable[[Any], Iterable[Finding]]

    def findings(self, subject: Any) -> list[Finding]:
        """Return what it found; what is unknown, with the reason, if it cannot look."""
        found: list[Finding] = []
        try:
            found.extend(self.find(subject))
        except NotReadError as exc:
            found.append(skipped("", exc.reason, exc.place))
        if not found:
            found.append(skipped("", "there is nothing that it is about"))
        return [self._proved(finding) for finding in found]

    def _proved(self, finding: Finding) -> Finding:
        """Return a finding with the check's code; nothing holds without evidence."""
        proved = finding.source and finding.observed
        if finding.level is not Level.UNKNOWN and not proved:
            message = f"{self.code} of {finding.subject!r} names no evidence"
            raise AssertionError(message)
        return finding._replace(code=self.code)


def passed(subject: str, expected: str, observed: str, source: str) -> Finding:
    """Return that a rule holds."""
    return Finding("", Level.OK, subject, observed, expected, source)


def warned(
    subject: str, expected: str, observed: str, source: str, remedy: str
) -> Finding:
    """Return that a rule does not hold, which costs performance at times."""
    return Finding("", Level.WARNING, subject, observed, expected, source, remedy)


def failed(
    subject: str, expected: str, observed: str, source: str, remedy: str
) -> Finding:
    """Return that a rule does not hold, which breaks the promise."""
    return Finding("", Level.FAILURE, subject, observed, expected, source, remedy)


def skipped(
    subject: str, reason: str, source: str = "", *, cause: Cause | str = ""
) -> Finding:
    """Return that nobody can tell, why, and what lets it be told.

    :param cause: where a rule asks for it
    """
    remedy = not_read.remedy(reason)
    level = Level.UNKNOWN
    return Finding("", level, subject, reason, "", source, remedy, cause=cause)


def judged(
    subject: str,
    expected: str,
    observed: str,
    source: str,
    *,
    holds: bool,
    remedy: str,
    otherwise: Level = Level.FAILURE,
) -> Finding:
    """Return that a rule holds, or what is to be done."""
    if holds:
        return passed(subject, expected, observed, source)
    return Finding("", otherwise, subject, observed, expected, source, remedy)


def checks_of(package: ModuleType) -> tuple[Check, ...]:
    """Return the checks of the files of a package, in their order."""
    found: list[Check] = []
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        found.extend(getattr(module, "CHECKS", None) or (module.CHECK,))
    return tuple(sorted(found, key=lambda check: check.order))

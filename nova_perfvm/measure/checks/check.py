# SPDX-License-Identifier: Apache-2.0
"""What a file of :mod:`nova_perfvm.measure.checks` declares: checks.

Files of the packages ``host`` and ``guest`` declare them by decorators of what looks,
whose docstring is the check's title; they are found there.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks import not_read
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.collect.collected import NotReadError

Findings = Iterator[Finding]


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
        found = [*tried("", self.find, subject)]
        found = found or [skipped("", "there is nothing that it is about")]
        for one in found:
            # Nothing holds without evidence.
            if one.level is not Level.UNKNOWN and not (one.source and one.observed):
                raise AssertionError(f"{self.code} of {one.subject!r} has no evidence")
        return [one._replace(code=self.code) for one in found]


Find = Callable[[Any], Iterable[Finding]]


def check(order: int, code: str) -> Callable[[Find], Check]:
    """Make a check of a function that yields its findings."""
    return lambda find: Check(order, code, title_of(find), find)


def title_of(look: Callable[..., Any]) -> str:
    """Return the first line of its docstring: what has to hold."""
    return (look.__doc__ or "").partition("\n")[0].rstrip(".")


def tried(subject: str, look: Callable[..., Iterable[Finding]], *of: Any) -> Findings:
    """Yield what a look finds, then what was not read, if that ended it."""
    try:
        yield from look(*of)
    except NotReadError as exc:
        yield skipped(subject, exc.reason, exc.place)


def skipped(
    subject: str, reason: str, source: str = "", *, cause: Cause | str = ""
) -> Finding:
    """Return that nobody can tell, why, and what lets it be told.

    :param cause: where a rule asks for it
    """
    found = Finding("", Level.UNKNOWN, subject, reason, "", source)
    return found._replace(remedy=not_read.remedy(reason), cause=cause)


def checks_of(package: ModuleType) -> tuple[Check, ...]:
    """Return the checks of the files of a package, in their order."""
    names = pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    return checks_in(*(importlib.import_module(info.name) for info in names))


def checks_in(*modules: ModuleType) -> tuple[Check, ...]:
    """Return the checks of modules, in their order."""
    values = (value for module in modules for value in vars(module).values())
    found = [value for value in values if isinstance(value, Check)]
    return tuple(sorted(found, key=lambda check: check.order))

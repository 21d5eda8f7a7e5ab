# SPDX-License-Identifier: Apache-2.0
"""Declare checks and collect them from the packages ``host`` and ``guest``.

A decorator makes a function a check; the function's docstring is the check's title.
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
    :ivar find: yields the findings for a subject, without the code; may raise
        :class:`NotReadError` when a file or command was not read
    """

    order: int
    code: str
    title: str
    find: Callable[[Any], Iterable[Finding]]

    def findings(self, subject: Any) -> list[Finding]:
        """Return the findings for a subject: at least one, each with the code."""
        found = [*tried("", self.find, subject)]
        found = found or [skipped("", "the machine has nothing to check here")]
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
    """Return the first line of a function's docstring, without the full stop."""
    return (look.__doc__ or "").partition("\n")[0].rstrip(".")


def tried(subject: str, look: Callable[..., Iterable[Finding]], *of: Any) -> Findings:
    """Yield the findings of a look; NotReadError becomes an unknown finding."""
    try:
        yield from look(*of)
    except NotReadError as exc:
        yield skipped(subject, exc.reason, exc.place)


def skipped(
    subject: str, reason: str, source: str = "", *, cause: Cause | str = ""
) -> Finding:
    """Return an unknown finding with its reason, and a remedy for that reason.

    :param cause: stable word for the reason, where rules depend on the reason
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

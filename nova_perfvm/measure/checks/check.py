# SPDX-License-Identifier: Apache-2.0
"""Declare checks and collect them from the packages ``host`` and ``guest``.

A decorator makes a function a check; the function's docstring is the check's title.
Most functions are looks, which yield pairs of a level and a text: the decorators join
the pairs to one finding for each level, and the title is the finding's `expected`.
"""

import enum
import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, Final, NamedTuple

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks import not_read
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.domains import Domain


class Cause(enum.StrEnum):
    """Why an unknown finding does not keep a flavor from being proven.

    NEVER_STOLEN does keep it from that, unless the host shows that no vCPU waited.
    """

    NOTHING_TO_JUDGE = "nothing_to_judge"
    FACTS_MISSING = "facts_missing"
    NEVER_STOLEN = "never_stolen"


Find = Callable[[Any], Iterable[Finding]]
Findings = Iterator[Finding]
# What a look yields: (level, figures or fault); (cause, reason of an unknown); or an
# unread file or command.
Seen = Iterator[tuple[Level | Cause, str] | NotReadError]
Look = Callable[..., Seen]
_MOST_SHOWN: Final = 4


class Check(NamedTuple):
    """One rule about a machine.

    :ivar order: place among the checks
    :ivar code: dotted, stable, never reused
    :ivar title: the rule, in one sentence
    :ivar find: yields the findings for a subject, without the code; may raise
        :class:`NotReadError` when a file or command was not read
    """

    order: int
    code: str
    title: str
    find: Find

    def findings(self, subject: Any) -> list[Finding]:
        """Return the findings for a subject: at least one, each with the code."""
        found = [*tried("", self.find, subject)]
        found = found or [skipped("", "the machine has nothing to check here")]
        for one in found:
            # Nothing holds without evidence.
            if one.level is not Level.UNKNOWN and not (one.source and one.observed):
                raise AssertionError(f"{self.code} of {one.subject!r} has no evidence")
        return [one._replace(code=self.code) for one in found]


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


def skipped(subject: str, reason: str, source: str = "", cause: str = "") -> Finding:
    """Return an unknown finding with its reason, and a remedy for that reason."""
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


def each_of(looks: Iterable[Look], *of: Any) -> Seen:
    """Yield the results of looks; an unread file ends its own look only."""
    for look in looks:
        try:
            yield from look(*of)
        except NotReadError as exc:
            yield exc


def findings_of(
    subject: str,
    seen: Seen,
    expected: str,
    source: str,
    remedy: str,
    *,
    unseen: str = "",
) -> Findings:
    """Yield one finding for each level of a look's results about a subject.

    The worst level comes first.  OK results make a finding only if no other level and
    no unread file came; each cause and unread file makes an unknown finding.

    :param unseen: text of the OK finding if the look yields nothing; empty for none
    """
    by_level: dict[Level, list[str]] = defaultdict(list)
    unknown, holds = [], True
    # each_of turns the NotReadError that ends the look into a last result.
    for one in each_of((lambda: seen,)):
        if isinstance(one, NotReadError):
            holds = False
            unknown.append(skipped(subject, one.reason, one.place))
            continue
        level, text = one
        if isinstance(level, Cause):
            unseen = ""
            unknown.append(skipped(subject, text, source, level))
        else:
            by_level[level].append(text)
    figures = by_level.pop(Level.OK, [unseen] if unseen else [])
    if figures and holds and not by_level:
        yield Finding("", Level.OK, subject, "; ".join(figures), expected, source)
    for level in sorted(by_level, reverse=True):
        texts = by_level[level]
        shown = "; ".join(texts[:_MOST_SHOWN])
        more = f"; and {len(texts) - _MOST_SHOWN} more" if texts[_MOST_SHOWN:] else ""
        yield Finding("", level, subject, shown + more, expected, source, remedy)
    yield from unknown


def _check(
    order: int, code: str, title: str, find: Callable[[Any, Look, str], Findings]
) -> Callable[[Look], Check]:
    """Make a check of a look.

    :param title: the first line of the look's docstring if empty
    :param find: yields the findings of (machine, look, title)
    """

    def made(look: Look) -> Check:
        expected = title or title_of(look)
        return Check(order, code, expected, lambda of: find(of, look, expected))

    return made


def check_of(
    order: int, code: str, *, source: str, remedy: str, title: str = ""
) -> Callable[[Look], Check]:
    """Make a check of a look at the whole machine.

    :param title: the check's title; the first line of the docstring by default
    """
    about = {"guest": "guest", "proof": "files"}
    subject = about.get(code.partition(".")[0], "host")

    def find(machine: Any, look: Look, expected: str) -> Findings:
        return findings_of(subject, look(machine), expected, source, remedy)

    return _check(order, code, title, find)


def check_each(
    order: int,
    code: str,
    things: Callable[[Any], Iterable[Any]],
    *,
    source: str,
    remedy: str,
) -> Callable[[Look], Check]:
    """Make a check of a look at each thing of a machine, such as its NICs.

    :param source: the files or commands read; in source and remedy ``{}`` stands for
        the thing's name, ``{one.X}`` for its attribute X, ``{of.X}`` for the machine's
    """

    def find(machine: Any, look: Look, expected: str) -> Findings:
        for one in things(machine):
            texts = (t.format(one.name, one=one, of=machine) for t in (source, remedy))
            yield from findings_of(one.name, look(machine, one), expected, *texts)

    return _check(order, code, "", find)


def vm_check(
    order: int,
    code: str,
    *,
    source: str,
    remedy: str,
    title: str = "",
    vms: Callable[[HostSubject], Iterable[Domain]] = lambda host: host.pinned,
) -> Callable[[Look], Check]:
    """Make a check of a look at each VM.

    A look that yields nothing makes an OK finding.

    :param source: files or commands read beside the domain's XML
    :param remedy: what to do; ``{}`` stands for the VM's UUID
    :param title: the check's title; the first line of the docstring by default
    :param vms: selects the VMs; pinned ones by default
    """

    def find(host: HostSubject, look: Look, expected: str) -> Findings:
        for domain in vms(host):
            yield from findings_of(
                domain.name,
                look(host, domain),
                expected,
                f"{domain.source}; {source}",
                remedy.format(domain.uuid),
                unseen="nothing is otherwise",
            )
        for uuid, exc in host.unread_domains.items():
            yield skipped(uuid, exc.reason, exc.place)

    return _check(order, code, title, find)

# SPDX-License-Identifier: Apache-2.0
"""Make checks of looks: functions that yield (level, text) pairs.

The decorators join the pairs to one finding for each level; the check's title is the
finding's `expected`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, Findings, skipped, title_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.domains import Domain

# What a look yields: (level, figures or fault); (UNKNOWN, reason, cause); or an unread
# file or command.
Seen = Iterator[tuple[Level, str] | tuple[Level, str, Cause] | NotReadError]
_MOST_SHOWN: Final = 4


def each_of(looks: Iterable[Callable[..., Seen]], *of: Any) -> Seen:
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
    """Yield the findings about one subject, from the results of its look.

    :param unseen: text of the OK finding if the look yields nothing; empty for no
        finding then
    """
    by_level: dict[Level, list[str]] = defaultdict(list)
    unknown, holds = [], True
    # each_of turns the NotReadError that ends the look into a last result.
    for one in each_of((lambda: seen,)):
        if isinstance(one, NotReadError):
            holds = False
            unknown.append(skipped(subject, one.reason, one.place))
            continue
        level, text, *cause = one
        if cause:
            unseen = ""
            unknown.append(skipped(subject, text, source, cause=cause[0]))
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


def check_of(
    order: int, code: str, *, source: str, remedy: str, title: str = ""
) -> Callable[[Callable[[Any], Seen]], Check]:
    """Make a check of a look at the whole machine.

    :param title: the check's title; the first line of the docstring by default
    """
    about = {"guest": "guest", "proof": "files"}
    subject = about.get(code.partition(".")[0], "host")

    def made(look: Callable[[Any], Seen]) -> Check:
        expected = title or title_of(look)

        def find(machine: Any) -> Findings:
            return findings_of(subject, look(machine), expected, source, remedy)

        return Check(order, code, expected, find)

    return made


def check_each(
    order: int,
    code: str,
    things: Callable[[Any], Iterable[Any]],
    *,
    source: str,
    remedy: str,
) -> Callable[[Callable[[Any, Any], Seen]], Check]:
    """Make a check of a look at each thing of a machine, such as its NICs.

    :param source: the files or commands read; in source and remedy ``{}`` stands for
        the thing's name, ``{one.X}`` for its attribute X, ``{of.X}`` for the machine's
    """

    def made(look: Callable[[Any, Any], Seen]) -> Check:
        expected = title_of(look)

        def find(machine: Any) -> Findings:
            for one in things(machine):
                texts = (
                    text.format(one.name, one=one, of=machine)
                    for text in (source, remedy)
                )
                yield from findings_of(one.name, look(machine, one), expected, *texts)

        return Check(order, code, expected, find)

    return made


def vm_check(
    order: int,
    code: str,
    *,
    source: str,
    remedy: str,
    title: str = "",
    vms: Callable[[HostSubject], Iterable[Domain]] = lambda host: host.pinned,
) -> Callable[[Callable[[HostSubject, Domain], Seen]], Check]:
    """Make a check of a look at each VM.

    A look that yields nothing makes an OK finding.

    :param source: files or commands read beside the domain's XML
    :param remedy: what to do; ``{}`` stands for the VM's UUID
    :param title: the check's title; the first line of the docstring by default
    :param vms: selects the VMs; pinned ones by default
    """

    def made(look: Callable[[HostSubject, Domain], Seen]) -> Check:
        expected = title or title_of(look)

        def find(host: HostSubject) -> Findings:
            for domain in vms(host):
                yield from findings_of(
                    domain.name,
                    look(host, domain),
                    expected,
                    f"{domain.source}; {source}",
                    remedy.format(domain.uuid),
                    unseen="nothing is otherwise",
                )
            for uuid, exc in zip(host.unread_domains, host.unread(), strict=True):
                yield skipped(uuid, exc.reason, exc.place)

        return Check(order, code, expected, find)

    return made

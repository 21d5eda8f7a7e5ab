# SPDX-License-Identifier: Apache-2.0
"""Judge VMs by what is wrong with them, each flaw at a level of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import passed, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.domains import Domain

# How bad a flaw is, and what it is.
Flaw = tuple[Level, str]
_ORDER: Final = (Level.FAILURE, Level.WARNING, Level.UNKNOWN, Level.NOTE)
_MOST_SHOWN: Final = 4


def of_flaws(
    flaws: Callable[[HostSubject, Domain], Iterator[Flaw]],
    expected: str,
    source: str,
    remedy: str,
) -> Callable[[HostSubject], Iterator[Finding]]:
    """Return a check's function that looks for flaws of each VM that owns its CPUs.

    :param flaws: yields them; what it cannot read makes the VM unknown, whatever it
        has found until then
    :param source: where it looks, beside the domain's XML
    :param remedy: what to do before the VM is started anew
    """

    def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
        name, where = domain.name, f"{domain.source}; {source}"
        found: list[Flaw] = []
        try:
            found.extend(flaws(subject, domain))
        except NotReadError as exc:
            yield skipped(name, exc.reason, exc.place)
        else:
            if not found:
                yield passed(name, expected, "nothing is otherwise", where)
        cure = f"{remedy}; then openstack server reboot --hard {domain.uuid}"
        for level in _ORDER:
            texts = [text for of, text in found if of is level]
            if texts:
                shown = "; ".join(texts[:_MOST_SHOWN])
                yield Finding("", level, name, shown, expected, where, cure)

    return of_pinned(look)

# SPDX-License-Identifier: Apache-2.0
"""How rules about the files of a certificate are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import judged, skipped
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.prove.inputs import RUN, Guest, Inputs

Look = Callable[[Inputs, Guest, Domain], Iterator[Finding]]


def shown(
    subject: str,
    expected: str,
    observed: str,
    source: str = RUN,
    *,
    holds: bool,
    remedy: str = "",
) -> Finding:
    """Return that a rule holds, or that it is not proven."""
    words = (subject, expected, observed, source)
    return judged(*words, holds=holds, otherwise=Level.UNKNOWN, remedy=remedy)


def equal(
    subject: str, expected: str, observed: str, source: str, remedy: str
) -> Finding:
    """Return that two texts are the same, or that they break the promise."""
    words = (subject, expected, observed, source)
    return judged(*words, holds=expected == observed, remedy=remedy)


def of_guests(look: Look) -> Callable[[Inputs], Iterator[Finding]]:
    """Return a check's function that looks at each guest that is a VM of the host."""

    def find(inputs: Inputs) -> Iterator[Finding]:
        for guest in inputs.guests:
            try:
                if guest.domain is not None:
                    yield from look(inputs, guest, guest.domain)
            except NotReadError as exc:
                yield skipped(guest.name, exc.reason, exc.place)

    return find

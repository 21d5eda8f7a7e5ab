# SPDX-License-Identifier: Apache-2.0
"""The demo's tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from nova_perfvm import cpuset
from tests.demo.story import BootOutcome

_LINE = "{:12}  {:16}  {:10}  {:9}  {:9}  {:11}  {}"
_COLUMNS = ("VM", "class", "flavor", "host", "NUMA node", "pinned CPUs", "queues")


def write(
    stream: TextIO, outcomes: list[BootOutcome], problems: list[str], seconds: float
) -> None:
    """Write the VMs that run, those refused with the reasons, and the verdict."""
    running = [_row(outcome) for outcome in outcomes if outcome.booted]
    lines = [_LINE.format(*row) for row in (_COLUMNS, *running)]
    lines.append("")
    for outcome in outcomes:
        if not outcome.booted:
            lines += [*_refusal(outcome), ""]
    if problems:
        lines.append("NOT as the policy says:")
        lines += [f"  {problem}" for problem in problems]
    else:
        lines.append(f"Everything is as the policy says ({seconds:.0f} s).")
    stream.write("\n".join(lines) + "\n")


def _row(outcome: BootOutcome) -> tuple[str, ...]:
    guest, server = outcome.guest, outcome.server
    queues = {1 if found is None else found for found in guest.queues}
    return (
        server.name,
        outcome.wanted_class,
        server.flavor,
        server.host or "-",
        cpuset.format_cpus(guest.host_nodes) or "-",
        cpuset.format_cpus(guest.pins) or "-",
        ",".join(str(count) for count in sorted(queues)),
    )


def _refusal(outcome: BootOutcome) -> Iterator[str]:
    server = outcome.server
    yield (
        f"{server.name} refused (flavor {server.flavor}, class {outcome.wanted_class})"
    )
    for host, reasons in outcome.reasons.items():
        for reason in reasons:
            yield f"  {host}: {reason}"

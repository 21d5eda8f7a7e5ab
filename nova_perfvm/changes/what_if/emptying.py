# SPDX-License-Identifier: Apache-2.0
"""Find hosts of a cloud to empty, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.changes.what_if.suppose import Supposed, suppose
from nova_perfvm.diagnose.verdicts import SchedulerSettings
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

# Called with a text, the number of hosts done and the number of all hosts.
Progress = Callable[[str, int, int], None]


def silent(_what: str, _done: int, _total: int) -> None:
    """Show no progress."""


class Emptied(NamedTuple):
    """A host, and the migrations of its servers to hosts that stay.

    :ivar notes: how densely the servers share CPUs afterwards; of the last host also
        the number of all migrations
    """

    host: str
    moves: tuple[Move, ...]
    notes: tuple[str, ...] = ()


def emptied(
    policy: Policy,
    snapshot: Snapshot,
    settings: SchedulerSettings,
    progress: Progress = silent,
    hosts: Sequence[str] | None = None,
    max_ratio: float | None = None,
) -> tuple[Emptied, ...]:
    """Return the hosts that can be emptied in turn, with the migrations of each.

    :param hosts: names of the hosts to try, in order; None for all whose nova-compute
        runs, first the hosts with the least memory in use: their servers move fastest
    :param max_ratio: see :class:`.suppose.Supposed`
    """
    found: list[Emptied] = []
    start = snapshot
    names = hosts
    if names is None:
        # An empty host that is down takes no VM.
        down = {host.host for host in snapshot.hosts if not host.up}
        names = [name for name in least_used(snapshot) if name not in down]
    for done, name in enumerate(names):
        progress("hosts", done, len(names))
        # Building the solver's program takes a second in a cloud of 1,000 hosts.
        changes = Supposed(removes=(name,), max_ratio=max_ratio, time_limit_s=0)
        after = suppose(policy, snapshot, changes, settings)
        if after.staying:
            changes = Supposed(removes=(name,), max_ratio=max_ratio)
            after = suppose(policy, snapshot, changes, settings)
        if not after.staying:
            snapshot = after.snapshot
            found.append(Emptied(name, tuple(after.moves), tuple(after.notes)))
    if found:
        together = _together(policy, start, settings, found, max_ratio)
        found[-1] = found[-1]._replace(notes=(*found[-1].notes, together))
    return tuple(found)


def _together(
    policy: Policy,
    snapshot: Snapshot,
    settings: SchedulerSettings,
    found: Sequence[Emptied],
    max_ratio: float | None,
) -> str:
    """Return the number of migrations in words, and how there are fewer.

    A drain sends servers to hosts that are emptied later, unless these are disabled.
    """
    moves = sum(len(one.moves) for one in found)
    words = f"{number_of(moves, 'migration')} in all"
    names = tuple(one.host for one in found)
    if moves == sum(server.host in names for server in snapshot.servers):
        return words
    changes = Supposed(removes=names, max_ratio=max_ratio, time_limit_s=0)
    after = suppose(policy, snapshot, changes, settings)
    if after.staying or len(after.moves) >= moves:
        return words
    return (
        f"{words}; {len(after.moves)} if all these hosts are disabled before the first "
        "is drained (openstack compute service set --disable HOST nova-compute)"
    )


def least_used(snapshot: Snapshot) -> list[str]:
    """Return the names of all hosts, those with the least memory in use first."""
    used_mb: Counter[str] = Counter()
    for server in snapshot.servers:
        if server.host is not None:
            used_mb[server.host] += server.memory_mb
    names = (host.host for host in snapshot.hosts)
    return sorted(names, key=lambda name: (used_mb[name], name))


def in_words(snapshot: Snapshot, found: Sequence[Emptied]) -> str:
    """Return the number and the names of the emptied hosts as a sentence."""
    order = ", ".join(one.host for one in found)
    count = f"of your {len(snapshot.hosts)} hosts {len(found)} can be emptied"
    return f"{count} in this order: {order}" if found else count

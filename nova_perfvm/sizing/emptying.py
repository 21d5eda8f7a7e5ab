# SPDX-License-Identifier: Apache-2.0
"""Find hosts of a cloud to empty, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.changes.what_if.suppose import Supposed, suppose
from nova_perfvm.diagnose.verdicts import SchedulerSettings
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.policy import HostShape, Policy


class Emptied(NamedTuple):
    """A host, and the migrations of its servers to hosts that stay."""

    host: str
    moves: tuple[Move, ...]


def emptied(
    policy: Policy,
    snapshot: Snapshot,
    settings: SchedulerSettings,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> tuple[Emptied, ...]:
    """Return the hosts that can be emptied, in this order.

    Hosts with the least memory in use come first: their servers move the fastest.

    :param progress: called with a text, the hosts done and all hosts
    """
    used_mb: Counter[str] = Counter()
    for server in snapshot.servers:
        if server.host is not None:
            used_mb[server.host] += server.memory_mb
    found = []
    hosts = sorted((used_mb[host.host], host.host) for host in snapshot.hosts)
    for done, (_, name) in enumerate(hosts):
        progress("hosts", done, len(hosts))
        after = suppose(policy, snapshot, Supposed(removes=(name,)), settings)
        if not after.staying:
            snapshot = after.snapshot
            found.append(Emptied(name, tuple(after.moves)))
    return tuple(found)


def in_words(snapshot: Snapshot, found: Sequence[Emptied]) -> str:
    """Return the number and the names of the emptied hosts as a sentence."""
    order = ", ".join(one.host for one in found)
    count = f"of your {len(snapshot.hosts)} hosts {len(found)} can be emptied"
    return f"{count} in this order: {order}" if found else count


def model_of(snapshot: Snapshot) -> tuple[HostShape, int]:
    """Return the most common shape of hosts, and the least GiB of a host of the shape.

    :raises PerfVMError: when no host shows its NUMA nodes
    """
    shapes = Counter(host.shape for host in snapshot.hosts if host.shape)
    if not shapes:
        raise PerfVMError(
            "no host shows its NUMA nodes: name --host-shape, --memory-gb"
        )
    ((shape, _),) = shapes.most_common(1)
    return shape, min(
        host.memory_mb // 1024 for host in snapshot.hosts if host.shape == shape
    )

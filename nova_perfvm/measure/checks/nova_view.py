# SPDX-License-Identifier: Apache-2.0
"""What Nova and Placement say of one host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.hypervisor import hosts_called
from nova_perfvm.facts.snapshot import (
    INVENTORY_FILE,
    NOVA_DATABASE,
    ComputeHost,
    Provider,
    Server,
    Snapshot,
)


@dataclass(frozen=True)
class NovaView:
    """One host as Nova and Placement have it.

    :ivar servers: {UUID: server} of those on the host
    :ivar provider: its resource provider, None if that could not be seen
    :ivar source: where and when that was read
    """

    host: ComputeHost
    servers: Mapping[str, Server] = field(default_factory=dict)
    provider: Provider | None = None
    source: str = ""

    @property
    def cells_are_known(self) -> bool:
        """Whether somebody has told its CPUs, and they are not guessed."""
        return self.host.cells_source in {NOVA_DATABASE, INVENTORY_FILE}


def of_host(snapshot: Snapshot, hostname: str) -> NovaView:
    """Return what a snapshot says of a host.

    :param hostname: the host's own, its service's or its hypervisor's, with or
        without a domain
    :raises PerfVMError: when it has no such host, or several
    """
    alike = hosts_called(snapshot.hosts, hostname)
    if len(alike) != 1:
        found = ", ".join(sorted(host.host for host in snapshot.hosts)) or "none"
        message = (
            f"the snapshot has {'no' if not alike else 'more than one'} host "
            f"{hostname!r}: name the one that it is with --host NAME, of {found}"
        )
        raise PerfVMError(message)
    (host,) = alike
    servers = snapshot.servers_by_host.get(host.host, ())
    return NovaView(
        host,
        {server.id: server for server in servers},
        snapshot.provider_by_uuid.get(host.provider),
        f"snapshot of {snapshot.taken_at}",
    )

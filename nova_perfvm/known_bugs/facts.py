# SPDX-License-Identifier: Apache-2.0
"""What is known of a cloud that tells whom a bug hits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nova_perfvm.facts.hypervisor import Hypervisor, RunningVM
from nova_perfvm.facts.snapshot import ComputeHost, Server, Snapshot
from nova_perfvm.known_bugs import releases
from nova_perfvm.known_bugs.releases import Release


class Hit(NamedTuple):
    """A host, or a server on it, that a bug hits.

    :ivar server: None for the host
    :ivar why: what tells it
    :ivar certain: whether nothing else can be the reason
    """

    host: str
    server: Server | None
    why: str
    certain: bool


@dataclass(frozen=True)
class CloudFacts:
    """A cloud, as the rules that tell a bug see it.

    :ivar collected: what was collected on hosts, by the service's name
    :ivar target: the release that all hosts will have; None for what they have
    """

    snapshot: Snapshot
    collected: Mapping[str, Hypervisor] = field(default_factory=dict)
    target: Release | None = None

    def present(self, host: ComputeHost) -> Release | None:
        """Return the release of a host; None where nothing tells it.

        That is what its service says in Nova's database, or else the API's.
        """
        return releases.of_service(host.service_version) or releases.of_microversion(
            self.snapshot.microversion
        )

    def judged(self, host: ComputeHost) -> Release | None:
        """Return the release whose bugs are looked for on a host."""
        return self.target or self.present(host)

    def servers(self, host: ComputeHost, *, pinned: bool = True) -> Iterator[Server]:
        """Yield the servers on a host that own CPUs, or those that own none."""
        for server in self.snapshot.servers_by_host.get(host.host, ()):
            if server.known and server.owns_cpus is pinned:
                yield server

    def runs(self, host: ComputeHost, server: Server) -> RunningVM | None:
        """Return a VM as it was seen on its host, unless it has changed since."""
        seen = self.collected.get(host.host)
        if seen is None or server.updated[:19] > seen.taken_at[:19]:
            return None
        return seen.vms.get(server.id)

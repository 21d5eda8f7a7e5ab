# SPDX-License-Identifier: Apache-2.0
"""The facts of a cloud from which rules find the servers that a bug hits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from nova_perfvm.facts.hypervisor import Hypervisor, RunningVM
from nova_perfvm.facts.snapshot import ComputeHost, Server, Snapshot
from nova_perfvm.known_bugs import releases
from nova_perfvm.known_bugs.releases import Release


class Hit(NamedTuple):
    """A host, or a server on the host, that a bug hits.

    :ivar server: the server; None for the host itself
    :ivar why: the evidence, in words
    :ivar certain: whether the evidence proves that the bug hits
    """

    host: str
    server: Server | None
    why: str
    certain: bool


@dataclass(frozen=True)
class CloudFacts:
    """A cloud's facts for the rules.

    :ivar collected: files of ``host collect``, by the host of the compute service
    :ivar target: judge all hosts by this release; None for their present releases
    """

    snapshot: Snapshot
    collected: Mapping[str, Hypervisor] = field(default_factory=dict)
    target: Release | None = None

    @cached_property
    def shared_sets(self) -> Mapping[str, frozenset[int]]:
        """The shared CPUs of each host that has shared CPUs and known NUMA nodes."""
        sets = {
            host.host: frozenset[int]().union(*(cell.cpuset for cell in host.cells))
            for host in self.snapshot.hosts
            if host.cells_told
        }
        return {host: shared for host, shared in sets.items() if shared}

    @cached_property
    def different_sets(self) -> frozenset[frozenset[int]]:
        """The different sets of shared CPUs that hosts have."""
        return frozenset(self.shared_sets.values())

    def present(self, host: ComputeHost) -> Release | None:
        """Return the Nova release of a host; None if unknown.

        It follows from the service version in Nova's database, or else from the newest
        microversion of nova-api.
        """
        return releases.of_service(host.service_version) or releases.of_microversion(
            self.snapshot.microversion
        )

    def judged(self, host: ComputeHost) -> Release | None:
        """Return the release by which to judge a host; None if unknown."""
        return self.target or self.present(host)

    def servers(self, host: ComputeHost, *, pinned: bool = True) -> Iterator[Server]:
        """Yield the pinned servers on a host, or the others."""
        for server in self.snapshot.servers_by_host.get(host.host, ()):
            if server.known and server.owns_cpus is pinned:
                yield server

    def runs(self, host: ComputeHost, server: Server) -> RunningVM | None:
        """Return a server's collected VM; None if the server has changed since."""
        seen = self.collected.get(host.host)
        if seen is None or server.updated[:19] > seen.taken_at[:19]:
            return None
        return seen.vms.get(server.id)

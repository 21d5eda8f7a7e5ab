# SPDX-License-Identifier: Apache-2.0
"""The sizes of a cloud's pinned VMs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from nova_perfvm import constants as const
from nova_perfvm.facts.placement_request import whole_number
from nova_perfvm.facts.snapshot import Flavor, Server, Snapshot

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class PinnedSize:
    """The servers and flavors with one number of vCPUs that own their CPUs.

    :ivar servers: servers of the size that are on a host
    :ivar flavors: today's flavors of the size
    """

    vcpus: int
    servers: tuple[Server, ...] = ()
    flavors: tuple[Flavor, ...] = ()

    @property
    def cpus(self) -> int:
        """The number of CPUs that the servers own together."""
        return self.vcpus * len(self.servers)

    @property
    def hosts(self) -> int:
        return len({server.host for server in self.servers})

    @property
    def flavor_names(self) -> tuple[str, ...]:
        """The names of the servers' flavors and of today's flavors, each once."""
        names = [s.flavor for s in self.servers] + [f.name for f in self.flavors]
        return tuple(dict.fromkeys(sorted(filter(None, names))))

    @property
    def extra_specs(self) -> Iterator[Mapping[str, str]]:
        """Yield the extra specs of each server; without servers, of each flavor."""
        for one in self.servers or self.flavors:
            yield one.extra_specs

    @property
    def cells(self) -> int:
        """The NUMA nodes of most servers, or else of most extra specs; 1 if unknown."""
        seen = [len(server.cells) for server in self.servers if server.cells]
        said = [
            number
            for specs in self.extra_specs
            if (number := whole_number(specs.get(const.NUMA_NODES, "")))
        ]
        return most_common(seen or said) or 1

    def said(self, key: str) -> str | None:
        """Return the most common value of an extra spec; None if most have none."""
        return most_common(specs.get(key) for specs in self.extra_specs)


def pinned_sizes(snapshot: Snapshot) -> tuple[PinnedSize, ...]:
    """Return all sizes of pinned servers and flavors, the largest first."""
    servers: dict[int, list[Server]] = {}
    flavors: dict[int, list[Flavor]] = {}
    for server in snapshot.servers:
        if server.host is not None and server.owns_cpus:
            servers.setdefault(server.vcpus, []).append(server)
    for flavor in snapshot.flavors:
        if flavor.extra_specs.get(const.CPU_POLICY) == "dedicated":
            flavors.setdefault(flavor.vcpus, []).append(flavor)
    return tuple(
        PinnedSize(vcpus, tuple(servers.get(vcpus, ())), tuple(flavors.get(vcpus, ())))
        for vcpus in sorted(servers.keys() | flavors.keys(), reverse=True)
    )


def most_common(values: Iterable[_Item]) -> _Item | None:
    """Return the most common value, the first of equals; None without values."""
    found = Counter(values).most_common(1)
    return found[0][0] if found else None

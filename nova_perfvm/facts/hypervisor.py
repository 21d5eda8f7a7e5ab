# SPDX-License-Identifier: Apache-2.0
"""A host as its kernel, libvirt and its files show it, not as Nova has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import ComputeHost, Server, Snapshot


class Unread(NamedTuple):
    """What was not read on a host.

    :ivar place: the file or command
    :ivar remedy: what lets it be read; empty where the reason names no cause
    """

    place: str
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return place and reason."""
        return f"{self.place}: {self.reason}"


class ProviderEntry(NamedTuple):
    """What provider config files add to one provider.

    :ivar totals: {resource class: total}
    """

    totals: Mapping[str, int]
    traits: frozenset[str]


class ProviderFiles(NamedTuple):
    """What nova-compute's provider config files add to what Placement has.

    :ivar entries: by the provider's name or UUID; ``$COMPUTE_NODE`` is the entry of a
        compute node that no other names
    :ivar source: the files
    :ivar refused: why nova-compute does not start with them; empty if it does
    """

    entries: Mapping[str, ProviderEntry]
    source: str
    refused: str = ""


@dataclass(frozen=True)
class RunningVM:
    """A VM that runs on a host.

    :ivar domain: what libvirt calls it
    :ivar server: as Nova would show it, by libvirt's XML; without cells
    :ivar pinned: whether it owns CPUs, or should
    :ivar pins: {vCPU: CPU} of the vCPUs that libvirt lets run on one
    :ivar cpus: all CPUs that libvirt names for it; None: it may use any
    :ivar nodes: the NUMA nodes that its memory is bound to
    :ivar source: the command that told it
    :ivar threads: {vCPU: CPU} as the kernel runs them, -1 for several CPUs
    :ivar threads_source: the files that told that
    :ivar dirty_rate: what QEMU has calculated last, in MiB per second, and the seconds
        that it took; None if nothing was calculated
    :ivar tuned: names of the elements that ``cputune`` of its XML has
    """

    domain: str
    server: Server
    pinned: bool
    pins: Mapping[int, int]
    cpus: frozenset[int] | None
    nodes: frozenset[int]
    source: str
    threads: Mapping[int, int] | Unread
    threads_source: str = ""
    tuned: frozenset[str] = frozenset()
    dirty_rate: tuple[float, float] | None = None


@dataclass(frozen=True)
class Hypervisor:
    """What was collected on a host.

    :ivar taken_at: when, ISO 8601, UTC, by the clock of who collected
    :ivar host: with all CPUs that run in either set
    :ivar sets: CPUs that VMs may own, and those that they share, as Nova was told;
        None where that is not known
    :ivar vms: {UUID: VM} of those that run
    :ivar unread_vms: {UUID: why nobody can tell more of it}
    :ivar unlisted: why it is not known which VMs there are, if so
    :ivar source: the file that it is in
    :ivar options: {(section, option): value} of its nova.conf; None if not collected
    :ivar offline: CPUs that it has and that do not run
    """

    hostname: str
    taken_at: str
    host: ComputeHost | Unread
    sets: tuple[frozenset[int], frozenset[int]] | None
    vms: Mapping[str, RunningVM]
    unread_vms: Mapping[str, Unread]
    files: ProviderFiles | Unread
    unlisted: Unread | None = None
    source: str = ""
    options: Mapping[tuple[str, str], str] | None = None
    offline: frozenset[int] = frozenset()

    def dedicated(self) -> ComputeHost:
        """Return the host with the CPUs that VMs may own; all, where nobody told sets.

        :raises PerfVMError: when its NUMA nodes were not collected
        """
        if isinstance(self.host, Unread):
            remedy = f": {self.host.remedy}" if self.host.remedy else ""
            raise PerfVMError(f"{self.source}: {self.host}{remedy}")
        return self.host.divided(*(self.sets or (self.host.cpus,)))


def hosts_called(hosts: Iterable[ComputeHost], hostname: str) -> list[ComputeHost]:
    """Return the hosts that have a name: just so, or else but for the domain."""
    among = [(host, {host.host, host.node}) for host in hosts]
    short = hostname.partition(".")[0]
    return [host for host, names in among if hostname in names] or [
        host
        for host, names in among
        if short in {name.partition(".")[0] for name in names}
    ]


def of_host(snapshot: Snapshot, hostname: str) -> Snapshot:
    """Return a snapshot with one of its hosts alone.

    :param hostname: the host's own, its service's or its hypervisor's, with or
        without a domain
    :raises PerfVMError: when it has no such host, or several
    """
    alike = hosts_called(snapshot.hosts, hostname)
    if len(alike) != 1:
        found = ", ".join(sorted(host.host for host in snapshot.hosts)) or "none"
        raise PerfVMError(
            f"the snapshot has {'no' if not alike else 'more than one'} host "
            f"{hostname!r}: name the one that it is with --host NAME, of {found}"
        )
    return replace(snapshot, hosts=tuple(alike))


def by_host(
    hosts: Iterable[ComputeHost], collected: Iterable[Hypervisor]
) -> tuple[dict[str, Hypervisor], list[Hypervisor]]:
    """Return what was collected on each host, by its service, and on no such host.

    :raises PerfVMError: when a file can be of several hosts, or two are of one
    """
    among = tuple(hosts)
    found: dict[str, Hypervisor] = {}
    others = []
    for seen in collected:
        names = [host.host for host in hosts_called(among, seen.hostname)]
        if len(names) > 1:
            raise PerfVMError(
                f"{seen.source}: {seen.hostname} can be each of {', '.join(names)}"
            )
        if not names:
            others.append(seen)
            continue
        (name,) = names
        if name in found:
            raise PerfVMError(
                f"{seen.source}: there is another file of {name}: give the newer"
            )
        found[name] = seen
    return found, others

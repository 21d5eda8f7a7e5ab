# SPDX-License-Identifier: Apache-2.0
"""A host as its kernel, libvirt and its files show it, independently of Nova."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import ComputeHost, Server, Snapshot


class Unread(NamedTuple):
    """A file or command of a host that could not be read.

    :ivar place: the file or command
    :ivar remedy: how to make it readable; empty if the reason names no cause
    """

    place: str
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return ``place: reason``."""
        return f"{self.place}: {self.reason}"


class ProviderEntry(NamedTuple):
    """The inventories and traits that provider config files add to one provider.

    :ivar totals: {resource class: total}
    """

    totals: Mapping[str, int]
    traits: frozenset[str]


class ProviderFiles(NamedTuple):
    """The content of nova-compute's provider config files.

    :ivar entries: by the provider's name or UUID; ``$COMPUTE_NODE`` is the entry for a
        compute node without an entry of its own
    :ivar source: names of the files
    :ivar refused: why nova-compute does not start with the files; empty if it does
    """

    entries: Mapping[str, ProviderEntry]
    source: str
    refused: str = ""


@dataclass(frozen=True)
class RunningVM:
    """A VM that runs on a host.

    :ivar domain: libvirt's name of the VM
    :ivar server: the server as Nova would show it, made from libvirt's XML; without
        NUMA nodes
    :ivar pinned: whether the VM owns CPUs, or should
    :ivar pins: {vCPU: CPU} of the vCPUs that libvirt pins to a single CPU
    :ivar cpus: all CPUs that libvirt allows the VM; None for any
    :ivar nodes: NUMA nodes that the VM's memory is bound to
    :ivar source: the command that showed the XML
    :ivar threads: {vCPU: CPU} in the kernel, -1 for several CPUs
    :ivar threads_source: the files that showed ``threads``
    :ivar dirty_rate: QEMU's last calculated rate in MiB per second, and the duration of
        the calculation in seconds; None without a calculation
    :ivar tuned: names of the elements in ``cputune`` of the XML
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
    """The content of a file collected on a host.

    :ivar taken_at: time of collecting, ISO 8601, UTC, by the collecting machine's clock
    :ivar host: the host, with all online CPUs in both cpu sets
    :ivar sets: dedicated and shared CPUs by nova.conf; None if unknown
    :ivar vms: {UUID: running VM}
    :ivar unread_vms: {UUID: why the VM's details could not be read}
    :ivar unlisted: why the list of VMs is missing; None if it is there
    :ivar source: name of the collected file
    :ivar options: {(section, option): value} of the host's nova.conf; None if not
        collected
    :ivar offline: CPUs that are offline
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
        """Return the host with the CPUs of ``sets``; if None, with all CPUs dedicated.

        :raises PerfVMError: the host's NUMA nodes were not collected
        """
        if isinstance(self.host, Unread):
            remedy = f": {self.host.remedy}" if self.host.remedy else ""
            raise PerfVMError(f"{self.source}: {self.host}{remedy}")
        return self.host.divided(*(self.sets or (self.host.cpus,)))


def hosts_called(hosts: Iterable[ComputeHost], hostname: str) -> list[ComputeHost]:
    """Return the hosts with a name; without an exact match, compare without domains."""
    among = [(host, {host.host, host.node}) for host in hosts]
    short = hostname.partition(".")[0]
    return [host for host, names in among if hostname in names] or [
        host
        for host, names in among
        if short in {name.partition(".")[0] for name in names}
    ]


def of_host(snapshot: Snapshot, hostname: str) -> Snapshot:
    """Return the snapshot without its other hosts; their servers and providers stay.

    :param hostname: name of the host, its service or its hypervisor, with or without a
        domain
    :raises PerfVMError: the snapshot has no such host, or several
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
    """Return {service name: collected file}, and the files of unknown hosts.

    :raises PerfVMError: a file may be of several hosts, or two files are of one host
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

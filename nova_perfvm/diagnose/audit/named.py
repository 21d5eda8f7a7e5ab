# SPDX-License-Identifier: Apache-2.0
"""Compare servers that an operator names with the data collected on their hosts.

:mod:`~nova_perfvm.diagnose.audit.hypervisors` has the comparison; this module gives an
answer for each named server, even if there is nothing to compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.diagnose.audit import hypervisors
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.hypervisor import Hypervisor, by_host
from nova_perfvm.facts.snapshot import ComputeHost, Server, ServerCell, Snapshot
from nova_perfvm.findings import Finding


def asked(
    servers: tuple[Server, ...], taken_at: str, host: str | None = None
) -> Snapshot:
    """Return a snapshot of the named servers only.

    :param servers: with their topologies
    :param host: the host whose pinned servers are all asked for; None if servers are
        named
    """
    nodes = {s.host: s.node or s.host for s in servers if s.host is not None}
    if host is not None:
        nodes.setdefault(host, host)
    hosts = tuple(ComputeHost(name, node, "", "") for name, node in nodes.items())
    return Snapshot(taken_at, hosts=hosts, servers=servers)


def check(
    nova: Snapshot, collected: Iterable[Hypervisor], host: str | None = None
) -> Iterator[Finding]:
    """Compare servers with the data collected on hosts.

    :param nova: the named servers, see :func:`asked`
    :param host: see :func:`asked`
    :raises PerfVMError: when a file was collected on a host of none of the servers
    """
    seen, others = by_host(nova.hosts, collected)
    for other in others:
        if nova.hosts and not other.vms.keys() & nova.server_by_id.keys():
            raise PerfVMError(
                f"{other.source} was collected on {other.hostname}, and "
                f"{_where(nova, host)}: collect there"
            )
        yield from hypervisors.elsewhere(nova, other, "")
    for name, there in seen.items():
        yield from hypervisors.elsewhere(nova, there, name)
    for server in nova.servers:
        there_too = seen.get(server.host or "")
        if host is None or hypervisors.owns_cpus(there_too, server):
            yield _answer(nova, there_too, server)
    if host is None:
        return
    if host in seen:
        yield from hypervisors.strangers(nova, seen[host])
    if not any(hypervisors.owns_cpus(None, server) for server in nova.servers):
        reason = "Nova has no pinned server on this host"
        yield hypervisors.unknown(host, reason, hypervisors.told_by(nova))


def _where(nova: Snapshot, host: str | None) -> str:
    if host is not None:
        return f"the servers asked for are on {host}"
    return ", ".join(f"{s.name} is on {s.host or 'no host'}" for s in nova.servers)


def _answer(nova: Snapshot, seen: Hypervisor | None, server: Server) -> Finding:
    name, source = str(server), hypervisors.told_by(nova)
    if not server.known:
        reason = "Nova cannot reach the server's cell, and does not show its host"
        return hypervisors.unknown(server.id, reason, source)
    if server.host is None:
        fault = f" ({server.fault})" if server.fault else ""
        reason = f"the server is on no host: {server.status}{fault}{_busy(server)}"
        return hypervisors.unknown(name, reason, source)
    if seen is not None:
        return hypervisors.of_server(nova, seen, server)
    if not server.pinned_cpus:
        hidden = hypervisors.owns_cpus(None, server)
        reason = hypervisors.PINS_HIDDEN if hidden else hypervisors.NOT_PINNED
        return hypervisors.unknown(name, reason, source)
    has = ", ".join(_shown(cell) for cell in server.cells or () if cell.cpu_pinning)
    path = quote(f"{server.host}.json")
    return hypervisors.unknown(
        name,
        f"Nova has {has}{_busy(server)}; libvirt and the kernel were not asked, as "
        f"no file is given that was collected on {server.host}",
        source,
        f"on {server.host}: nova-perfvm host collect --output {path}; "
        f"then add --collected {path}",
    )._replace(expected=hypervisors.AGREEMENT)


def _busy(server: Server) -> str:
    return f", and is busy with it: {server.task}" if server.task else ""


def _shown(cell: ServerCell) -> str:
    """Describe the CPUs of a server on one NUMA node, each vCPU with its CPU."""
    pairs = " ".join(f"{v}:{c}" for v, c in sorted(cell.cpu_pinning.items()))
    return (
        f"vCPUs {format_cpus(cell.cpu_pinning)} on CPUs "
        f"{format_cpus(cell.cpu_pinning.values())} of NUMA node {cell.host_node} "
        f"({pairs})"
    )

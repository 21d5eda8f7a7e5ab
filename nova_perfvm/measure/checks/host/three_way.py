# SPDX-License-Identifier: Apache-2.0
"""Nova, libvirt and the kernel agree on where each pinned VM runs.

Nova gives other VMs what it believes to be free; libvirt binds what its XML says;
the kernel runs threads where it was told last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import Check, failed, judged, skipped, warned
from nova_perfvm.measure.checks.host_subject import HostSubject, unread
from nova_perfvm.measure.checks.nova_view import NovaView
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import domains as observed
from nova_perfvm.measure.observed import processes
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import Role

AGREEMENT: Final = "each vCPU on the same CPU for Nova, libvirt and the kernel"
NOT_PINNED: Final = "it owns no CPUs, so there is nothing to compare"
_NO_PINS: Final = "it should own CPUs, and neither Nova nor libvirt gives it any"
_RUNS: Final = "ACTIVE"
# Of differences; the rest is a number.
_MOST_SHOWN: Final = 4


def find(subject: HostSubject) -> Iterator[Finding]:
    """Compare the three for each VM, and look for VMs that only one knows."""
    if subject.nova is None:
        reason = "what Nova says is not known: add --snapshot"
        yield skipped("", reason)
        return
    nova = subject.nova
    for server in nova.servers.values():
        runs = domain_of(subject, server) is not None or (
            server.status == _RUNS and server.id not in subject.unread_domains
        )
        if runs and owns_cpus(subject, server):
            yield of_server(subject, nova, server)
    yield from strangers(subject, nova)


def strangers(subject: HostSubject, nova: NovaView) -> Iterator[Finding]:
    """Look for pinned VMs that run without Nova, and say which were not read."""
    for domain in subject.pinned:
        if domain.uuid not in nova.servers:
            yield failed(
                domain.name,
                "a server that Nova has on this host",
                "Nova has none of that UUID here, so it gives its CPUs to others",
                f"{domain.source}; {nova.source}",
                f"openstack server show {domain.uuid}: if it is on another host, or "
                "deleted, a domain was left behind: shut it down; if it moved since, "
                "look at both once more",
            )
    yield from unread(subject)


def of_server(subject: HostSubject, nova: NovaView, server: Server) -> Finding:
    """Compare the three for a server that Nova has on the host.

    :raises NotReadError: when it is not known which domains there are
    """
    domain = domain_of(subject, server)
    name = domain.name if domain else str(server)
    if server.task is not None:
        reason = f"Nova is busy with it: {server.task}"
        return skipped(name, reason, nova.source)
    if server.id in subject.unread_domains:
        reason = subject.unread_domains[server.id]
        return skipped(name, reason, observed.dumpxml(server.id))
    if domain is None and server.status != _RUNS:
        return skipped(name, f"it does not run: {server.status}", nova.source)
    if not owns_cpus(subject, server):
        return skipped(name, NOT_PINNED, nova.source)
    if domain is None:
        return _absent(subject, nova, server)
    return _compared(subject, domain, server, nova)


def domain_of(subject: HostSubject, server: Server) -> Domain | None:
    """Return the domain of a server, None if it does not run on the host.

    :raises NotReadError: when it is not known which domains there are
    """
    return next((d for d in subject.domains if d.uuid == server.id), None)


def owns_cpus(subject: HostSubject, server: Server) -> bool:
    """Return whether a server owns CPUs by Nova, or should by libvirt.

    :raises NotReadError: when it is not known which domains there are
    """
    domain = domain_of(subject, server)
    return bool(server.pinned_cpus) or (
        domain is not None and subject.is_pinned(domain)
    )


def changed_since(collected: Collected, server: Server) -> str:
    """Return that Nova has changed a server since its host was looked at, if so.

    Who looked at the host did so by another clock.
    """
    if not server.updated:
        return ""
    updated = datetime.fromisoformat(server.updated)
    if updated <= datetime.fromisoformat(collected.taken_at):
        return ""
    return (
        f"Nova has changed it at {server.updated}, and {collected.hostname} was "
        f"looked at before, at {collected.taken_at}"
    )


def _stale(
    subject: HostSubject, server: Server, name: str, saw: str, source: str
) -> Finding | None:
    """Return that what was seen may be from before Nova changed a server, if so."""
    changed = changed_since(subject.collected, server)
    if not changed:
        return None
    return skipped(name, f"{saw}: {changed}: collect there once more", source)


def _absent(subject: HostSubject, nova: NovaView, server: Server) -> Finding:
    """Return that a server runs for Nova only."""
    saw = "libvirt runs none of that UUID"
    source = f"{nova.source}; {observed.LIST}"
    return _stale(subject, server, server.id, saw, source) or warned(
        server.id,
        "a domain that runs",
        saw,
        source,
        f"openstack server show {server.id}: see why Nova takes it for running "
        "here; if it moved since, look at both once more",
    )


def _compared(
    subject: HostSubject, domain: Domain, server: Server, nova: NovaView
) -> Finding:
    if server.cells is None:
        reason = "Nova did not tell its NUMA topology"
        return skipped(domain.name, reason, nova.source)
    believed = server.pins
    sources = [nova.source, domain.source]
    differs = _differences("Nova", believed, "libvirt", domain.pins)
    if not believed and not domain.pins:
        differs.append(_NO_PINS)
    nodes = {cell.host_node for cell in server.cells} - {None}
    bound = domain.memory.nodes if domain.memory else frozenset()
    if nodes and bound != nodes:
        where = format_cpus(node for node in nodes if node is not None)
        differs.append(
            f"memory: Nova node {where}, libvirt {format_cpus(bound) or 'anywhere'}"
        )
    reason = ""
    try:
        runs, path = _kernel(subject, domain)
        sources.append(path)
        differs += _differences("libvirt", domain.pins, "the kernel", runs)
    except NotReadError as exc:
        reason = f"Nova and libvirt agree; the kernel was not asked: {exc.reason}"
        sources.append(exc.place)
    if reason and not differs:
        return skipped(domain.name, reason, sources[-1])
    saw, source = _some_of(differs), "; ".join(sources)
    if saw and (stale := _stale(subject, server, domain.name, saw, source)):
        return stale
    return judged(
        domain.name,
        AGREEMENT,
        saw or f"all agree on {len(believed)} vCPUs",
        source,
        holds=not saw,
        remedy=f"openstack server reboot --hard {domain.uuid}, which writes the XML by "
        "what Nova believes; if that CPU belongs to another VM by now, openstack "
        f"server migrate {domain.uuid} instead",
    )


def _some_of(differs: list[str]) -> str:
    more = len(differs) - _MOST_SHOWN
    shown = "; ".join(differs[:_MOST_SHOWN])
    return f"{shown}; and {more} more" if more > 0 else shown


def _kernel(subject: HostSubject, domain: Domain) -> tuple[dict[int, int], str]:
    """Return {vCPU: CPU} as the kernel runs them; those with several have -1."""
    process = subject.process_of(domain)
    tasks = process.of(Role.VCPU)
    if len(tasks) < domain.vcpus:
        reason = f"{len(tasks)} of {domain.vcpus} threads of vCPUs are seen"
        raise NotReadError(f"{process.path}/task", reason)
    allowed = {
        task.number: processes.allowed_cpus(subject.collected, task.path)
        for task in tasks
    }
    runs = {v: min(cpus) if len(cpus) == 1 else -1 for v, cpus in allowed.items()}
    return runs, f"{process.path}/task/*/status"


def _differences(
    one: str, first: Mapping[int, int], other: str, second: Mapping[int, int]
) -> list[str]:
    def shown(cpu: int | None) -> str:
        return "none" if cpu is None else "several" if cpu < 0 else f"CPU {cpu}"

    return [
        f"vCPU {vcpu}: {one} {shown(first.get(vcpu))}, "
        f"{other} {shown(second.get(vcpu))}"
        for vcpu in sorted({*first, *second})
        if first.get(vcpu) != second.get(vcpu)
    ]


CHECK = Check(
    120, "hypervisor.three_way", "Nova, libvirt and the kernel agree on each VM", find
)

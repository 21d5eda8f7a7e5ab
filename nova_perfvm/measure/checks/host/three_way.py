# SPDX-License-Identifier: Apache-2.0
"""Nova, libvirt and the kernel agree on where each pinned VM runs.

Nova gives other VMs what it believes to be free; libvirt binds what its XML says;
the kernel runs threads where it was told last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.measure.checks.check import (
    Check,
    Finding,
    failed,
    judged,
    skipped,
    warned,
)
from nova_perfvm.measure.checks.host_subject import HostSubject, unread
from nova_perfvm.measure.checks.nova_view import NovaView
from nova_perfvm.measure.collected import NotReadError
from nova_perfvm.measure.observed import domains as observed
from nova_perfvm.measure.observed import processes
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import Role

_RUNS = "ACTIVE"


def find(subject: HostSubject) -> Iterator[Finding]:
    """Compare the three for each VM, and look for VMs that only one knows."""
    if subject.nova is None:
        reason = "what Nova says is not known: add --snapshot"
        yield skipped("", reason)
        return
    nova = subject.nova
    for domain in subject.pinned:
        server = nova.servers.get(domain.uuid)
        if server is None:
            yield failed(
                domain.name,
                "a server that Nova has on this host",
                "Nova has none of that UUID here, so it gives its CPUs to others",
                f"{domain.source}; {nova.source}",
                f"openstack server show {domain.uuid}: if it is on another host, or "
                "deleted, a domain was left behind: shut it down; if it moved since, "
                "take another snapshot",
            )
        elif server.task is not None:
            reason = f"Nova is busy with it: {server.task}"
            yield skipped(domain.name, reason, nova.source)
        else:
            yield _compared(subject, domain, server, nova)
    yield from unread(subject)
    yield from _absent(subject, nova)


def _absent(subject: HostSubject, nova: NovaView) -> Iterator[Finding]:
    """Look for servers that run for Nova only."""
    here = {domain.uuid for domain in subject.domains} | subject.unread_domains.keys()
    for server in nova.servers.values():
        if server.pinned_cpus and server.status == _RUNS and server.id not in here:
            yield warned(
                server.id,
                "a domain that runs",
                "libvirt runs none of that UUID",
                f"{nova.source}; {observed.LIST}",
                f"openstack server show {server.id}: see why Nova takes it for running "
                "here; if it moved since the snapshot was taken, take another",
            )


def _compared(
    subject: HostSubject, domain: Domain, server: Server, nova: NovaView
) -> Finding:
    if server.cells is None:
        reason = "the snapshot does not tell its NUMA topology"
        return skipped(domain.name, reason, nova.source)
    believed = {v: c for cell in server.cells for v, c in cell.cpu_pinning.items()}
    sources = [nova.source, domain.source]
    differs = _differences("Nova", believed, "libvirt", domain.pins)
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
    return judged(
        domain.name,
        "each vCPU on the same CPU for Nova, libvirt and the kernel",
        "; ".join(differs[:4]) or f"all agree on {len(believed)} vCPUs",
        "; ".join(sources),
        holds=not differs and bool(believed),
        remedy=f"openstack server reboot --hard {domain.uuid}, which writes the XML by "
        "what Nova believes; if that CPU belongs to another VM by now, openstack "
        f"server migrate {domain.uuid} instead",
    )


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

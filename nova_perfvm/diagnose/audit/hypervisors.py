# SPDX-License-Identifier: Apache-2.0
"""Check that Nova, libvirt and the kernel agree on the CPUs of each pinned VM.

Nova gives CPUs that it believes to be free to other VMs; libvirt pins by the domain's
XML; the kernel runs each thread on the CPUs that were last set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from shlex import quote
from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.cpuset import format_cpus
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.facts.hypervisor import Hypervisor, RunningVM, Unread
from nova_perfvm.facts.snapshot import Server, Snapshot, time_of
from nova_perfvm.findings import Finding, Level

AGREEMENT: Final = "each vCPU on the same CPU for Nova, libvirt and the kernel"
NOT_PINNED: Final = "the VM owns no CPUs: nothing to compare"
PINS_HIDDEN: Final = "Nova did not show the server's NUMA topology"
_NO_PINS: Final = "it should own CPUs, and neither Nova nor libvirt gives it any"
_RUNS: Final = "ACTIVE"
# The most differences that a finding names; further ones are counted.
_MOST_SHOWN: Final = 4


def check(subject: Subject) -> Iterator[Finding]:
    """Compare Nova, libvirt and the kernel for each VM.

    VMs that only Nova or only libvirt knows are found, too.
    """
    nova = subject.snapshot
    for host, seen in subject.hypervisors.items():
        if seen.unlisted:
            yield unread(host, seen.unlisted)
            continue
        for server in nova.servers_by_host.get(host, ()):
            runs = server.id in seen.vms or (
                server.status == _RUNS and server.id not in seen.unread_vms
            )
            if runs and owns_cpus(seen, server):
                found = of_server(nova, seen, server)
                if found.level is not Level.OK:
                    yield found
        yield from elsewhere(nova, seen, host)
        yield from strangers(nova, seen)


def strangers(nova: Snapshot, seen: Hypervisor) -> Iterator[Finding]:
    """Yield findings for pinned VMs that Nova does not know, and for unread VMs."""
    for uuid, vm in seen.vms.items():
        if vm.pinned and uuid not in nova.server_by_id:
            yield Finding.of(
                codes.DOMAIN_LEFT_BEHIND,
                vm.domain,
                "Nova has no server of that UUID here, and gives its CPUs to others",
                f"openstack server show {uuid}: if it is on another host, or deleted, "
                "a domain was left behind: shut it down; if it moved since, look at "
                "both once more",
                expected="a server that Nova has on this host",
                source=f"{vm.source}; {told_by(nova)}",
            )
    for uuid, why in seen.unread_vms.items():
        yield unread(uuid, why)


def elsewhere(nova: Snapshot, seen: Hypervisor, host: str) -> Iterator[Finding]:
    """Yield findings for servers that run on this host, but on another host for Nova.

    :param host: the name of the compute service; empty if unknown
    """
    for uuid, vm in seen.vms.items():
        server = nova.server_by_id.get(uuid)
        if server is None or server.host == host:
            continue
        # A server that migrates may run on two hosts.
        if not server.known or server.task is not None:
            continue
        where = f"on {server.host}" if server.host else f"on no host ({server.status})"
        ran = f"libvirt ran it on {seen.hostname}, and Nova has it {where}"
        source = f"{told_by(nova)}; {vm.source}"
        if changed := _changed_since(seen, server):
            reason = f"{ran}: it may have moved, as {changed}: collect once more"
            yield unknown(str(server), reason, source)
            continue
        yield Finding.of(
            codes.DOMAIN_LEFT_BEHIND,
            str(server),
            ran,
            f"if it has moved since {seen.taken_at}, collect once more; else a domain "
            f"was left behind on {seen.hostname}: shut it down there: virsh destroy "
            f"{quote(vm.domain)}",
            expected=f"to run {where}, where Nova has it",
            source=source,
        )


def of_server(nova: Snapshot, seen: Hypervisor, server: Server) -> Finding:
    """Compare Nova, libvirt and the kernel for a server that Nova has on the host."""
    vm, source = seen.vms.get(server.id), told_by(nova)
    why = seen.unlisted or seen.unread_vms.get(server.id)
    if why and server.task is None:
        return unread(str(server), why)
    if reason := _nothing_to_compare(seen, server):
        return unknown(str(server), reason, source)
    if vm is not None:
        return _compared(seen, vm, server, source)
    saw = "libvirt runs no domain of that UUID"
    return _stale(seen, server, saw, source) or Finding.of(
        codes.DOMAIN_MISSING,
        str(server),
        saw,
        f"openstack server show {server.id}: see why Nova takes it for running here; "
        "if it moved since, look at both once more",
        expected="a domain that runs",
        source=source,
    )


def _nothing_to_compare(seen: Hypervisor, server: Server) -> str:
    if server.task is not None:
        return f"Nova is busy with it: {server.task}"
    if server.id not in seen.vms and server.status != _RUNS:
        return f"it does not run: {server.status}"
    if not owns_cpus(seen, server):
        return NOT_PINNED
    if server.id in seen.vms and server.cells is None:
        return PINS_HIDDEN
    return ""


def told_by(nova: Snapshot) -> str:
    """Return the source of the servers' hosts, with its time."""
    return f"Nova's API at {nova.taken_at}"


def owns_cpus(seen: Hypervisor | None, server: Server) -> bool:
    """Return whether a server owns CPUs by Nova's pins, its domain or its flavor.

    :param seen: the data collected on the server's host, if any
    """
    vm = seen.vms.get(server.id) if seen else None
    by_nova = bool(server.pinned_cpus) or server.owns_cpus
    return by_nova or (vm is not None and vm.pinned)


def unknown(subject: str, reason: str, source: str, remedy: str = "") -> Finding:
    """Return a finding that a comparison is impossible, with the reason."""
    return Finding.of(codes.NOT_COMPARED, subject, reason, remedy, source=source)


def unread(subject: str, what: Unread) -> Finding:
    """Return a finding that a comparison is impossible, because data was not read."""
    return unknown(subject, what.reason, what.place, what.remedy)


def _changed_since(seen: Hypervisor, server: Server) -> str:
    """Describe Nova's change of a server after its host was read; empty without one.

    The host's clock may differ from Nova's.
    """
    updated = time_of(server.updated)
    if updated is None or updated <= datetime.fromisoformat(seen.taken_at):
        return ""
    return (
        f"Nova has changed it at {server.updated}, and {seen.hostname} was "
        f"looked at before, at {seen.taken_at}"
    )


def _stale(seen: Hypervisor, server: Server, saw: str, source: str) -> Finding | None:
    """Return a finding that the data is older than Nova's last change; else None."""
    changed = _changed_since(seen, server)
    if not changed:
        return None
    return unknown(str(server), f"{saw}: {changed}: collect there once more", source)


def _compared(seen: Hypervisor, vm: RunningVM, server: Server, source: str) -> Finding:
    believed = server.pins
    differs = _differences("Nova", believed, "libvirt", vm.pins)
    if not believed and not vm.pins:
        differs.append(_NO_PINS)
    nodes = {cell.host_node for cell in server.cells or ()} - {None}
    if nodes and vm.nodes != nodes:
        where = format_cpus(node for node in nodes if node is not None)
        differs.append(
            f"memory: Nova node {where}, libvirt {format_cpus(vm.nodes) or 'anywhere'}"
        )
    if isinstance(vm.threads, Unread):
        place = vm.threads.place
        if not differs:
            return unread(
                str(server),
                vm.threads._replace(
                    reason="Nova and libvirt agree; the kernel was not asked: "
                    f"{vm.threads.reason}"
                ),
            )
    else:
        place = vm.threads_source
        differs += _differences("libvirt", vm.pins, "the kernel", vm.threads)
    saw, source = _some_of(differs), f"{source}; {vm.source}; {place}"
    if saw and (stale := _stale(seen, server, saw, source)):
        return stale
    found = Finding.of(
        codes.PINS_DIFFER,
        str(server),
        saw or f"all agree on {len(believed)} vCPUs",
        expected=AGREEMENT,
        source=source,
    )
    if not saw:
        return found._replace(level=Level.OK)
    return found._replace(
        remedy=f"openstack server reboot --hard {server.id}, which writes the XML by "
        "what Nova believes; if that CPU belongs to another VM by now, openstack "
        f"server migrate {server.id} instead",
    )


def _some_of(differs: list[str]) -> str:
    more = len(differs) - _MOST_SHOWN
    shown = "; ".join(differs[:_MOST_SHOWN])
    return f"{shown}; and {more} more" if more > 0 else shown


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

# SPDX-License-Identifier: Apache-2.0
"""Judge whether hosts have the inventories, traits and labels of the policy."""

from collections.abc import Iterator
from shlex import quote
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.diagnose.hosts import label_faults, offer_faults, slot_class
from nova_perfvm.facts.snapshot import ComputeHost, Provider
from nova_perfvm.findings import Finding
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.host import unreadable

_REPORT_ANEW: Final = (
    "systemctl restart nova-compute on the host, which reports anew; if it is newer "
    "than nova-scheduler, upgrade that first"
)


def check(subject: Subject) -> Iterator[Finding]:
    """Compare what each host offers with what the policy wants of it."""
    for fault in label_faults(subject.policy, subject.snapshot):
        commands = "\n".join(fault.commands)
        yield Finding(codes.LABEL_MISSING, fault.host, fault.words, commands)
    for host in subject.snapshot.hosts:
        yield from _labels(subject, host)
        error = unreadable.fault(subject.hosts[host.host])
        if error:
            yield Finding(
                codes.HOST_UNREADABLE,
                host.host,
                f"what Nova's database has of it cannot be read: {error}: nothing "
                "comes here",
                _REPORT_ANEW,
            )
            continue
        provider = subject.snapshot.provider_by_uuid.get(host.provider)
        if provider is None or not subject.managed(host.host):
            continue
        facts = subject.hosts[host.host]
        for offer in offer_faults(subject.policy, host, facts, provider):
            remedy = offer.remedy or _configure(subject, host, provider)
            yield Finding(offer.code, host.host, offer.words, remedy)


def _labels(subject: Subject, host: ComputeHost) -> Iterator[Finding]:
    unknown = subject.snapshot.labels(host.host) - subject.policy.by_name.keys()
    if unknown:
        yield Finding(
            codes.LABEL_UNKNOWN,
            host.host,
            f"an aggregate reserves it for {', '.join(sorted(unknown))}; the policy "
            f"has {', '.join(sorted(subject.policy.by_name))}: nothing comes here",
            f"openstack aggregate set --property {const.CLASS_KEY}=CLASS AGGREGATE",
        )


def _configure(subject: Subject, host: ComputeHost, provider: Provider) -> str:
    """Return the command that configures a host as it is, as far as that is known."""
    vm_class = slot_class(subject.policy, subject.hosts[host.host].labels)
    mode = "shared" if provider.mode == "open" else provider.mode
    words = [f"--topology {host.shape or 'SHAPE'} --mode {mode}"]
    if mode == "mixed":
        nodes = sum(not cell.pcpuset for cell in host.cells)
        if nodes != 1:
            words.append(f"--shared-nodes {nodes or 'N'}")
    if mode != "shared" and len(subject.policy.pinned_classes) > 1:
        words.append(f"--class {quote(vm_class.name) if vm_class else 'CLASS'}")
    kept = _cores_kept(host, vm_class)
    if kept != 0:
        words.append(f"--reserve {'CORES' if kept is None else kept}")
    memory_gb = provider.total("MEMORY_MB") // 1024
    words.append(f"--memory-gb {memory_gb or 'GB'}")
    return f"nova-perfvm host config {' '.join(words)} --policy POLICY"


def _cores_kept(host: ComputeHost, vm_class: VMClass | None) -> int | None:
    """Count the cores that each cell keeps for the host; None if nobody knows."""
    shape = host.shape
    if shape is None or host.division_assumed:
        return None
    found = set()
    for cell in host.cells:
        cpus, threads = len(cell.cpuset or cell.pcpuset), shape.threads
        if not cell.cpuset and cpus <= shape.cores:
            # One thread of each core, or all threads of fewer: the class says.
            if vm_class is None and threads > 1:
                return None
            if vm_class is not None and vm_class.smt == "cores":
                threads = 1
        cores, rest = divmod(cpus, threads)
        found.add(None if rest or cores > shape.cores else shape.cores - cores)
    return found.pop() if len(found) == 1 else None

# SPDX-License-Identifier: Apache-2.0
"""The CPUs of pinned VMs, of the others and of the host itself are kept apart."""

from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import (
    NO_POLICY,
    HostSubject,
    VMCPUSets,
    unread,
)
from nova_perfvm.measure.observed import topology
from nova_perfvm.printable import number_of

_CONFIGURE = "nova-perfvm host config; drain the host before its sets change"


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look at Nova's sets, or at what the VMs have."""
    sets = subject.cpu_sets
    if not sets.dedicated:
        return
    yield _disjoint(sets)
    yield _online(subject, sets)
    yield from _enough(subject, sets)
    yield _housekeeping(subject, sets)
    yield from unread(subject)


def _disjoint(sets: VMCPUSets) -> Finding:
    both = sets.dedicated & sets.shared
    return judged(
        "dedicated and shared",
        "no CPU is both",
        f"CPUs {format_cpus(both)} are both"
        if both
        else f"dedicated {format_cpus(sets.dedicated)}, "
        f"shared {format_cpus(sets.shared) or 'none'}",
        sets.source,
        holds=not both,
        remedy=f"give each CPU to one of cpu_dedicated_set and cpu_shared_set: "
        f"{_CONFIGURE}; then move the VMs that are on the wrong ones",
    )


def _online(subject: HostSubject, sets: VMCPUSets) -> Finding:
    online, asleep = subject.online, subject.powered_down
    absent = (sets.dedicated | sets.shared) - online.numbers - asleep
    source = f"{sets.source}; {online.source}"
    if asleep and not absent and sets.saves_power is None:
        reason = (
            f"CPUs {format_cpus(asleep)}, which no VM owns, do not run: Nova takes "
            "them offline with [libvirt]cpu_power_management; say so by --nova-conf"
        )
        return skipped("online", reason, source, cause=Cause.POWERED_DOWN)
    idle = f"; CPUs {format_cpus(asleep)} rest until a VM owns them" if asleep else ""
    return judged(
        "online",
        "each CPU of either set runs, or no VM owns it and Nova saves power",
        f"CPUs {format_cpus(absent)} do not run"
        if absent
        else f"all {len((sets.dedicated | sets.shared) - asleep)} run{idle}",
        source,
        holds=not absent,
        remedy="bring them online (echo 1 > /sys/devices/system/cpu/cpuN/online); a VM "
        "that ran on them was moved to other CPUs: openstack server reboot --hard; or "
        f"take them out of the sets: {_CONFIGURE}",
    )


def _enough(subject: HostSubject, sets: VMCPUSets) -> Iterator[Finding]:
    """Look whether each node that has dedicated CPUs has them for whole VMs."""
    name = "CPUs of each node"
    if subject.policy is None:
        yield skipped(name, NO_POLICY)
        return
    if not sets.whole:
        reason = "Nova's sets are not known: add --nova-conf or --snapshot"
        yield skipped(name, reason, sets.source, cause=Cause.NOVA_SETS_UNKNOWN)
        return
    if subject.powered_down:
        reason = f"CPUs {format_cpus(subject.powered_down)} are offline, whose node"
        reason += " nobody can tell"
        yield skipped(name, reason, sets.source, cause=Cause.POWERED_DOWN)
        return
    for node in subject.nodes:
        own = node.cpus & sets.dedicated
        for vm_class in subject.policy.pinned_classes if own else ():
            need = vm_class.cell_pcpus
            have = len(own)
            if vm_class.smt == "cores":
                have = len(topology.cores(subject.collected, own))
            rest = have % need if need else 0
            yield judged(
                f"node {node.number}, class {vm_class.name}",
                f"a multiple of {need} {vm_class.smt}" if need else "any number",
                f"{have}, room for {number_of(have // need, 'VM')}"
                if need
                else str(have),
                f"{sets.source}; {topology.SOURCE}",
                holds=have >= need and not rest,
                otherwise=Level.WARNING if have >= need else Level.FAILURE,
                remedy=f"{rest} of them are of no use to the class: leave them to the "
                f"host or to VMs that share ({_CONFIGURE})"
                if have >= need
                else f"no VM of the class fits that node: {_CONFIGURE}",
            )


def _housekeeping(subject: HostSubject, sets: VMCPUSets) -> Finding:
    left = subject.online.numbers - sets.dedicated
    source = f"{sets.source}; {subject.online.source}"
    if left and not sets.whole:
        reason = f"today CPUs {format_cpus(left)}, but other VMs may come to own them"
        return skipped(
            "the host's own CPUs", reason, source, cause=Cause.OTHERS_MAY_COME
        )
    return judged(
        "the host's own CPUs",
        "at least one that no VM owns",
        format_cpus(left) or "none",
        source,
        holds=bool(left),
        # Where a class takes whole nodes the policy accepts that.
        otherwise=Level.WARNING,
        remedy="everything that the host does, it does on a VM's CPU: keep a core of "
        "each node (nova-perfvm host config --reserve 1), which takes a class with "
        "fewer vCPUs",
    )


CHECK = Check(
    25, "hypervisor.cpu_sets", "VMs and host each have CPUs of their own", find
)

# SPDX-License-Identifier: Apache-2.0
"""The CPUs of pinned VMs, of the others and of the host itself are kept apart.

The kernel balances no tasks onto isolated CPUs: unpinned VMs and the host cannot use
them.  VMs with partly isolated CPUs run at different speeds.
"""

from collections.abc import Collection
from typing import NamedTuple

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Cause, Seen, check_of, each_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.nova_conf import VMCPUSets
from nova_perfvm.measure.observed import cpus, topology

_SETS_UNKNOWN = "Nova's sets are not known: add --nova-conf or --snapshot"
_CMDLINE = "/proc/cmdline"
# A thread that polls a NIC needs a CPU to itself as a vCPU does.
_POLLED = (
    ": CPUs of OVS-DPDK's PMD threads stay isolated (ovs-vsctl get Open_vSwitch . "
    "other_config:pmd-cpu-mask)"
)
_FLAGS = {"nohz", "domain", "managed_irq"}


@check_of(
    25,
    "hypervisor.cpu_sets",
    source="[compute] of nova.conf, a snapshot or virsh -r dumpxml; "
    f"{cpus.CPU}/online, {cpus.CPU}/present, {topology.SOURCE}",
    remedy="nova-perfvm host config says sets that fit, --reserve 1 with CPUs for the "
    "host: drain it before they change; echo 1 > /sys/devices/system/cpu/cpuN/online",
)
def cpu_sets(host: HostSubject) -> Seen:
    """VMs and host each have CPUs of their own, for whole VMs."""
    sets = host.cpu_sets
    if not sets.dedicated | sets.either:
        yield from _running(host, sets)
        return
    if sets.either:
        both = format_cpus(sets.either)
        yield Level.OK, f"VMs of either kind take CPUs {both}, {sets.source}"
    dedicated, shared = format_cpus(sets.dedicated), format_cpus(sets.shared)
    yield Level.OK, f"dedicated {dedicated}, shared {shared or 'none'}, {sets.source}"
    if both := format_cpus(sets.dedicated & sets.shared):
        yield Level.FAILURE, f"CPUs {both} are dedicated and shared ({sets.source})"
    yield from each_of((_running, _whole_vms, _housekeeping, _connections), host, sets)
    yield from host.unread_domains.values()


def _running(host: HostSubject, sets: VMCPUSets) -> Seen:
    asleep, numbers = host.powered_down, sets.dedicated | sets.shared | sets.either
    if stopped := numbers - host.online - asleep:
        if absent := format_cpus(stopped - host.present):
            yield Level.FAILURE, f"the host has no CPUs {absent}"
        if offline := format_cpus(stopped & host.present):
            yield Level.FAILURE, f"CPUs {offline} do not run"
    elif asleep and sets.saves_power is None:
        reason = (
            f"CPUs {format_cpus(asleep)}, which no VM owns, do not run: Nova takes "
            "them offline with [libvirt]cpu_power_management; say so by --nova-conf"
        )
        yield Cause.FACTS_MISSING, reason
    elif asleep:
        yield Level.OK, f"CPUs {format_cpus(asleep)} rest until a VM owns them"


def _whole_vms(host: HostSubject, sets: VMCPUSets) -> Seen:
    """Compare each node's dedicated CPUs with the CPUs that one VM takes of a node."""
    policy = host.needed_policy
    if not sets.whole:
        yield Cause.FACTS_MISSING, _SETS_UNKNOWN
        return
    if host.powered_down:
        asleep = format_cpus(host.powered_down)
        reason = f"the NUMA nodes of offline CPUs {asleep} are unknown"
        yield Cause.FACTS_MISSING, reason
        return
    for node in host.nodes:
        own = node.cpus & (sets.either or sets.dedicated)
        for vm_class in policy.pinned_classes if own else ():
            in_cores = vm_class.smt == "cores"
            cores: Collection[Collection[int]] = ()
            if in_cores or vm_class.cpu_thread_policy == "require":
                cores = topology.cores(host.collected, own)
            need = vm_class.cell_takes(max(map(len, cores), default=1))
            have = len(cores if in_cores else own)
            level = Level.FAILURE if have < need else Level.WARNING
            shown = f"{node.name} has {have} {vm_class.smt}, of which class"
            shown += f" {vm_class.name} takes {need}: room for {have // need}"
            yield level if have < need or have % need else Level.OK, shown


def _housekeeping(host: HostSubject, sets: VMCPUSets) -> Seen:
    left = format_cpus(host.online - sets.dedicated - sets.either)
    if not left:
        # The policy accepts that for a class that takes whole nodes.
        yield (
            Level.WARNING,
            "no CPU is left to the host: host work runs on VMs' CPUs",
        )
    elif sets.whole:
        yield Level.OK, f"CPUs {left} are the host's own"
    else:
        reason = f"today CPUs {left} are the host's own, but other VMs may come"
        yield Cause.FACTS_MISSING, reason


def _connections(host: HostSubject, sets: VMCPUSets) -> Seen:
    left = len(host.online - sets.dedicated - sets.shared - sets.either)
    if sets.connections > max(1, left):
        shown = f"live_migration_parallel_connections = {sets.connections}: each may"
        yield Level.WARNING, f"{shown} take a CPU, and {left} are the host's own"


class _Argument(NamedTuple):
    """An argument of the kernel's command line.

    :ivar balanced: whether tasks still move between these CPUs
    """

    text: str
    cpus: frozenset[int]
    balanced: bool


def _argument(words: list[str], name: str) -> _Argument | None:
    """Return the last ``name=[flags,]cpus`` of a command line; None without one."""
    found = [word for word in words if word.startswith(f"{name}=")]
    if not found:
        return None
    parts = found[-1].partition("=")[2].split(",")
    flags = _FLAGS.intersection(parts)
    listed = ",".join(part for part in parts if part not in _FLAGS)
    # isolcpus without flags means the flag domain.
    balanced = name != "isolcpus" or (bool(flags) and "domain" not in flags)
    return _Argument(found[-1], cpus.parsed(_CMDLINE, listed), balanced)


@check_of(
    105,
    "hypervisor.isolation",
    source=_CMDLINE,
    remedy="take the arguments of nova-perfvm host config, with the CPUs of OVS-DPDK's "
    "PMD threads added where it has some, and reboot the drained host",
)
def isolation(host: HostSubject) -> Seen:
    """CPUs that VMs own are isolated, by isolcpus=managed_irq and nohz_full."""
    sets, words = host.cpu_sets, host.collected.text(_CMDLINE).split()
    isolated = _argument(words, "isolcpus")
    if isolated and not isolated.balanced:
        for domain in host.domains:
            many = host.cpus_of(domain) & isolated.cpus
            if domain not in host.pinned and len(many) > 1:
                shown = f"{domain.name} may use CPUs {format_cpus(many)} of"
                yield Level.FAILURE, f"{shown} {isolated.text}, and stays on one"
        if isolated.cpus & sets.dedicated:
            shown = f"{isolated.text}: all of QEMU's threads stay on one CPU"
            yield Level.WARNING, shown
    if not sets.dedicated:
        return
    if isolated:
        yield from _compared(host, sets, isolated)
    if ticking := _argument(words, "nohz_full"):
        yield from _compared(host, sets, ticking)
    elif not host.online - sets.dedicated:
        reason = "VMs own every CPU: the kernel's own work has to run on some of them"
        yield Cause.FACTS_MISSING, reason
    elif not sets.whole:
        yield Cause.FACTS_MISSING, _SETS_UNKNOWN
    else:
        yield Level.WARNING, "nohz_full is not given: timer ticks interrupt vCPUs"


def _compared(host: HostSubject, sets: VMCPUSets, argument: _Argument) -> Seen:
    yield Level.OK, argument.text
    if shared := argument.cpus & sets.shared:
        yield (
            Level.FAILURE,
            f"{argument.text} has {format_cpus(shared)}, which VMs share",
        )
    if left_out := sets.dedicated - argument.cpus:
        yield Level.WARNING, f"{argument.text} leaves out {format_cpus(left_out)}"
    beyond = argument.cpus - sets.dedicated - sets.shared
    # Without Nova's sets, future VMs may own these CPUs.
    if beyond and sets.whole:
        polled = any(i.kind == "vhostuser" for d in host.domains for i in d.interfaces)
        shown = f"{argument.text} has {format_cpus(beyond)}, too{_POLLED}"
        yield Level.NOTE if polled else Level.WARNING, shown

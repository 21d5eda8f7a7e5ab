# SPDX-License-Identifier: Apache-2.0
"""Warnings about a host's configuration, and notes on the operator's further steps.

doc/source/admin/host-modes.rst has the reasons, elastic.rst those for units.  Findings
of ``policy check`` about the policy are not repeated for each host.
"""

from __future__ import annotations

from collections.abc import Iterator

from nova_perfvm.generate.hosts.config import HostConfig
from nova_perfvm.placement import commands
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.slots import cell_cpus, host_slots, smallest_memory_mb


def warnings_of(host: HostConfig) -> Iterator[str]:
    """Yield warnings, the most severe first."""
    topology, cpus = host.request.topology, host.cpus
    yield from without_slots(host)
    for vm_class, slots in host.room.items():
        if slots:
            yield from _flavors_without_room(host, vm_class)
    # The numbering of CPUs matters only where CPUs are in different sets.
    if (cpus.pinnable | cpus.shared) != topology.cpus or (
        cpus.dedicated and cpus.shared
    ):
        yield from filter(None, [topology.numbering])
    if host.room:
        if topology.memory_mb is None:
            yield (
                "the host's memory is not known, so slots are counted by CPUs alone: "
                "give --memory-gb"
            )
        shapes = host.request.policy.host_shapes
        if topology.unevenness:
            yield f"no host_shape has such nodes: {topology.unevenness}"
        elif topology.shape not in shapes:
            yield (
                f"the policy is written for hosts of {', '.join(map(str, shapes))}, "
                f"and this host is {topology}: add its shape to host_shape, then run "
                "policy check"
            )
    yield from _iops_too_low(host)
    if any(setting.section == "neutron" for setting in host.nova):
        yield (
            "where the host has [neutron]physnets already, as for SR-IOV, this line "
            "replaces that list: write one line with the names of both"
        )
    yield (
        "drain the host first: nova-compute does not start when its new cpu sets "
        "contradict VMs on the host, and pinned VMs that stay keep their CPUs"
    )


def without_slots(host: HostConfig) -> Iterator[str]:
    """Yield why the host has no slot for a class, for each such class."""
    for vm_class, slots in host.room.items():
        if not slots:
            yield _no_slots(host, vm_class)


def _iops_too_low(host: HostConfig) -> Iterator[str]:
    """Yield a warning for each class whose slots' guarantees exceed the capacity."""
    for kind, (capacity, _) in host.iops.items():
        for vm_class, slots in host.room.items():
            guarantee = getattr(vm_class.disk, f"{kind}_iops") or 0
            if capacity < guarantee * slots:
                yield (
                    f"{capacity} {kind} operations per second are less than the "
                    f"guaranteed {guarantee} for each of {slots} slots"
                )


def _no_slots(host: HostConfig, vm_class: VMClass) -> str:
    share_gb = -(-smallest_memory_mb(vm_class) // vm_class.cells_per_vm) // 1024
    usable = ", ".join(str(cell_cpus(vm_class, cell)[0]) for cell in host.cells)
    memory = ", ".join(
        "?" if share.vms_mb is None else str(share.vms_mb // 1024)
        for share in host.memory
    )
    return (
        f"this host has 0 slots for class {vm_class.name}: a VM needs "
        f"{vm_class.cell_pcpus} CPUs and {share_gb} GiB on each of "
        f"{vm_class.cells_per_vm} NUMA nodes, and these have {usable} CPUs and "
        f"{memory} GiB for such VMs{_of_threads(host, vm_class)}"
    )


def _of_threads(host: HostConfig, vm_class: VMClass) -> str:
    """Return a remedy if cores are too few for a VM but threads suffice; else empty."""
    need, nodes = vm_class.cell_pcpus, host.request.topology.nodes
    threads = sum(len(node.cpus) // need for node in nodes)
    cores = sum(cell_cpus(vm_class, cell)[0] // need for cell in host.cells)
    if vm_class.smt != "cores" or not cores < vm_class.cells_per_vm <= threads:
        return ""
    return (
        f"; smt: threads of class {vm_class.name} lets a vCPU own a thread, which is "
        "half a core under load"
    )


def _flavors_without_room(host: HostConfig, vm_class: VMClass) -> Iterator[str]:
    """Yield a warning of flavors too large for the nodes; none for unknown memory."""
    template = vm_class.flavors
    sizes = template.sizes if template and host.request.topology.memory_mb else ()
    large = [
        template.name_of(vm_class.name, size)
        for size in sizes
        if template and not host_slots(vm_class, host.cells, size.memory_gb * 1024)
    ]
    if large:
        rooms = ", ".join(f"{cell.memory_mb // 1024}" for cell in host.cells)
        yield (
            f"this host never fits a VM of {' or '.join(large)}: its NUMA nodes have "
            f"{rooms} GiB for VMs"
        )


def notes_of(host: HostConfig) -> Iterator[str]:
    """Yield the operator's steps besides copying the files."""
    policy, provider = host.request.policy, host.provider
    if host.cpus.dedicated and not host.request.reserve:
        yield (
            "Leave [libvirt]live_migration_parallel_connections at 1: each connection "
            "may take a whole CPU, and this host keeps none for itself (--reserve)."
        )
    yield (
        "Remove cpu_dedicated_set, cpu_shared_set, vcpu_pin_set and reserved_host_cpus "
        "from the host's nova.conf where they are not below: nova-compute does not "
        "start with some of them together."
    )
    if any(vm_class.mem_page_size == "large" for vm_class in host.classes):
        sizes = {share.page_kb // 1024 for share in host.memory if share.page_kb}
        yield (
            f"mem_page_size: large means pages of {max(sizes)} MiB on this host: set "
            "aside no other pages (hugepages=, vm.nr_hugepages), or name the size in "
            "the policy."
        )
    yield from _of_guests(host)
    if host.kernel.isolated_cores:
        yield (
            "If the host has OVS-DPDK, keep the CPUs of its PMD threads from VMs "
            "(--reserve), and add them to nohz_full, rcu_nocbs, isolcpus, "
            "isolated_cores."
        )
    if provider is not None:
        yield (
            "provider.yaml goes into [compute]provider_config_location of the host "
            "(/etc/nova/provider_config by default), alone or beside files that do not "
            "name $COMPUTE_NODE."
        )
    scheme, mode = scheme_of(policy), host.request.mode
    traits = [scheme.trait(policy, c) for c in policy.pinned_classes]
    if scheme.mixes:
        if provider is None:
            yield "If the host offered slots before: remove its old provider.yaml."
    elif scheme.counts and not any(trait in str(provider) for trait in traits):
        yield (
            "If the host offered slots before: remove its old provider.yaml, and take "
            f"the trait {' or '.join(traits)} off its provider, or general VMs stay "
            "away; openstack perfvm host list has the command."
        )
    if mode in host_scheme_of(policy).enrolled_modes:
        yield enrolling(host)
    elif scheme.enrolls:
        yield (
            "If the host was enrolled before, first: openstack perfvm host unenroll "
            "HOST."
        )


def _of_guests(host: HostConfig) -> Iterator[str]:
    """Yield what keys of classes need of the host beside its nova.conf."""
    if any(vm_class.realtime for vm_class in host.classes):
        yield (
            "Real-time vCPUs have [libvirt]realtime_scheduler_priority, 1 by default; "
            "only a real-time kernel bounds what delays them."
        )
    if any(c.maxphysaddr and c.maxphysaddr.bits is None for c in host.classes):
        yield (
            "maxphysaddr: passthrough needs [libvirt]cpu_mode = host-passthrough; live "
            "migrations then need hosts with equal CPUs."
        )


def enrolling(host: HostConfig, name: str = "HOST") -> str:
    """Return a note with the command that enrolls the host; empty if none is needed.

    :param name: the host's name
    """
    scheme = host_scheme_of(host.request.policy)
    if host.request.mode not in scheme.enrolled_modes:
        return ""
    # Without --slots, host enroll could not know the slots: no API shows cpu sets.
    slots = (f"--slots {host.slots}",) if scheme.by_slots else ()
    command = commands.enroll(host.request.policy, name, *slots)
    return (
        f"Then: {command}. Until then no VM that takes {scheme.noun} comes to the host."
    )

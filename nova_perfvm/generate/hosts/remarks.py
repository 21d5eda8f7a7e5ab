# SPDX-License-Identifier: Apache-2.0
"""What an operator has to know about a configuration before applying it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm import constants as const
from nova_perfvm import cpuset
from nova_perfvm.generate.hosts.admission import most_reserve
from nova_perfvm.generate.hosts.cpus import owned_nodes
from nova_perfvm.placement import slots as slots_of
from nova_perfvm.policy import groups_of
from nova_perfvm.rules.slots import host_slots, smallest_memory_mb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.generate.hosts.cpus import CPUSets
    from nova_perfvm.generate.hosts.generate import HostConfig
    from nova_perfvm.generate.hosts.request import HostRequest
    from nova_perfvm.generate.hosts.topology import Node
    from nova_perfvm.policy import VMClass


def warnings(host: HostConfig) -> tuple[str, ...]:
    """Return what may go wrong, or costs more than it seems, the worst first."""
    topology, cpus, slots = host.request.topology, host.cpus, host.slots
    found = list(topology.assumptions)
    used = cpus.pinnable | cpus.shared
    if used != topology.cpus or (cpus.dedicated and cpus.shared):
        found += topology.numbering
    if host.vm_class is not None:
        found += _unlike_the_policy(host.request)
        found[:0] = _no_slots(host, host.vm_class)
        found += _no_housekeeping(host, host.vm_class)
        found += _unused(host, host.vm_class)
        found += _threads(host, host.vm_class)
    found += [
        f"{capacity} {kind} operations per second are {capacity // guarantee} "
        f"times the guaranteed {guarantee}, fewer than the {slots} slot(s)"
        for kind, (capacity, guarantee) in host.iops.items()
        if slots and capacity // guarantee < slots
    ]
    found += _beyond_units(slots, host.room)
    found.append(_residents(host.request))
    return tuple(found)


def _unlike_the_policy(request: HostRequest) -> Iterator[str]:
    topology = request.topology
    if topology.memory_mb is None:
        yield (
            "the host's memory is not known, so slots are counted by CPUs alone: give "
            "--memory-gb"
        )
    shapes = request.policy.host_shapes
    if topology.shape not in shapes:
        yield (
            f"the policy is written for hosts of {', '.join(map(str, shapes))}, and "
            f"this one is {topology}: add it to host_shape, then run policy check"
        )


def _no_slots(host: HostConfig, vm_class: VMClass) -> Iterator[str]:
    cells, reserve = host.cells, host.request.reserve
    if host.slots:
        return
    need = vm_class.cell_pcpus
    if host_slots(vm_class, cells, 0):
        share_gb = -(-smallest_memory_mb(vm_class) // vm_class.cells_per_vm) // 1024
        cause = (
            f"its smallest flavor needs {share_gb} GiB on a NUMA node and they have "
            f"{', '.join(str(cell.memory_mb // 1024) for cell in cells)} for VMs"
        )
    else:
        several = vm_class.cells_per_vm > 1
        on = f"{vm_class.cells_per_vm} NUMA node(s)" if several else "one NUMA node"
        cause = (
            f"a VM needs {need} CPUs on {on}, and the nodes have "
            f"{', '.join(map(str, host.usable))} for such VMs"
        )
        if reserve:
            cause += f" (--reserve {reserve} keeps the others)"
    yield f"this host has 0 slots for class {vm_class.name}: {cause}"


def _no_housekeeping(host: HostConfig, vm_class: VMClass) -> Iterator[str]:
    """Return what it costs when VMs may fill every core of the host."""
    request, cpus, slots = host.request, host.cpus, host.slots
    need = vm_class.cell_pcpus
    taken = slots * need * vm_class.cells_per_vm
    if request.reserve or cpus.shared or not slots or taken < sum(host.usable):
        return
    if cpus.idle:
        cost = (
            "the siblings of the VMs' CPUs, and take a share of the core that each "
            "vCPU was promised"
        )
    else:
        cost = "the VMs' CPUs, and interrupt them"
    said = (
        f"no core is left for the host: {slots} VM(s) of {vm_class.vm_pcpus} CPUs fill "
        "all nodes, so the kernel's work, interrupts and the host's services run on "
        f"{cost}, most under network and disk load"
    )
    if most_reserve(request.topology):
        here = host.usable[0]
        first = request.topology.nodes[0].cores[0]
        left = here - len(cpus.pinnable.intersection(first))
        what = "threads" if vm_class.smt == "threads" and len(first) > 1 else "cores"
        said += (
            f". --reserve 1 would leave {left} {what} on a node: {left // need} "
            f"slot(s) there instead of {here // need}"
        )
    yield said


def _unused(host: HostConfig, vm_class: VMClass) -> Iterator[str]:
    """Return which CPUs no VM of the class will ever use."""
    request, cpus = host.request, host.cpus
    if not host.slots or request.mode == "elastic":
        return
    need = vm_class.cell_pcpus
    spare = min(
        _spare_cores(node, request.reserve, cpus, usable % need)
        for node, usable in zip(request.topology.nodes, host.usable, strict=True)
        if node.cpus & cpus.pinnable
    )
    spare = min(spare, most_reserve(request.topology) - request.reserve)
    if spare:
        yield (
            f"{spare} core(s) of each node are more than VMs of class {vm_class.name} "
            f"can use: --reserve {request.reserve + spare} gives them to the host and "
            "costs no slot"
        )
    fits = groups_of([n // need for n in host.usable], vm_class.cells_per_vm)
    if vm_class.max_per_host is not None and fits > vm_class.max_per_host:
        yield (
            f"CPUs for {fits} VMs of class {vm_class.name}, and max_per_host is "
            f"{vm_class.max_per_host}: the rest stays unused"
        )


def _spare_cores(node: Node, reserve: int, cpus: CPUSets, spare_cpus: int) -> int:
    """Count the cores that --reserve would take next without a CPU of a slot.

    It takes cores whole, of which VMs may own one thread each, or all.
    """
    count = 0
    for core in node.cores[reserve:]:
        spare_cpus -= len(cpus.pinnable.intersection(core))
        if spare_cpus < 0:
            break
        count += 1
    return count


def _threads(host: HostConfig, vm_class: VMClass) -> Iterator[str]:
    smt, cpus = host.request.topology.threads > 1, host.cpus
    policy = vm_class.cpu_thread_policy
    # Nova asks Placement for (or against) the trait HW_CPU_HYPERTHREADING,
    # which a host reports whatever its cpu sets leave out.
    if (smt and policy == "isolate" and cpus.dedicated) or (
        not smt and policy == "require"
    ):
        yield (
            f"no VM of class {vm_class.name} comes here: cpu_thread_policy: {policy} "
            f"is for hosts {'without' if smt else 'with'} SMT; use prefer"
        )
    if cpus.idle:
        yield (
            f"one thread of each core for class {vm_class.name} (smt: cores): VMs get "
            f"no CPU of {cpuset.format_cpus(cpus.idle)}, so that a vCPU has its core "
            f"for itself{'; this holds for general VMs, too' if cpus.either else ''}"
        )
    elif smt and vm_class.smt == "threads":
        yield (
            f"smt: threads: a vCPU of class {vm_class.name} owns one thread and shares "
            "the core's execution units with its sibling; it does not get a core's "
            "performance"
        )
    if vm_class.emulator_threads == "share" and host.request.mode != "mixed":
        yield (
            f"class {vm_class.name} has emulator_threads: share, which needs "
            "cpu_shared_set; without one on this host QEMU's own threads run on the "
            "VM's CPUs"
        )


def _beyond_units(slots: int, room: int) -> Iterator[str]:
    if room <= slots:
        return
    limit = len(const.CHILD_LETTERS)
    said = f"room for {room} VMs, and units are made for {slots} on a host"
    if slots == limit:
        yield f"{said}, the most that they tell apart: the rest stays unused"
        return
    cap = "" if room <= limit else f"set max_per_host: {limit}, "
    yield (
        f"{said}, the most that a host_shape gives: {cap}add this host's shape to "
        "host_shape, then generate the flavors and enroll all hosts again"
    )


def _residents(request: HostRequest) -> str:
    if request.residents is None:
        return (
            "drain the host first: nova-compute does not start when its new cpu sets "
            "contradict VMs on it. Or name them by --servers FILE"
        )
    if any(resident.cpu_policy != "shared" for resident in request.residents):
        return (
            "pinned VMs on the host keep their CPUs: compare virsh vcpupin of each "
            "with the sets above; where they differ, migrate the VM"
        )
    if request.residents and request.policy.placement != "none":
        return (
            "VMs that are on the host already do not count in Placement's new "
            "inventories: move them away and back, or wait until they are deleted"
        )
    return (
        "no VM was on the host when --servers was written; keep the service disabled "
        "until nova-compute runs with the new configuration"
    )


def notes(host: HostConfig) -> tuple[str, ...]:
    """Return what to do beside copying the lines."""
    request, cpus, policy = host.request, host.cpus, host.request.policy
    has_provider = host.provider is not None
    traits = [slots_of.trait(policy, c) for c in policy.pinned_classes]
    offers = any(trait in str(host.provider) for trait in traits)
    found = []
    if cpus.dedicated or cpus.shared:
        found.append(
            "Remove reserved_host_cpus and vcpu_pin_set from nova.conf if they are "
            "there: beside these cpu sets nova-compute does not start."
        )
    elif cpus.either:
        found.append(
            "Remove cpu_dedicated_set and cpu_shared_set from nova.conf if they are "
            "there: an elastic host has neither."
        )
    if cpus.housekeeping:
        found.append(
            f"Kept for the host: CPUs {cpuset.format_cpus(cpus.housekeeping)}."
        )
    if cpus.dedicated and cpus.shared:
        nodes = owned_nodes(request.topology, cpus)
        listed = ", ".join(str(node.id) for node in nodes)
        found.append(
            f"Pinned VMs on NUMA node(s) {listed}, the others on the rest. Memory of "
            "unpinned VMs is not bound to a node and may come from any."
        )
    if has_provider:
        found.append(
            "provider.yaml goes into [compute]provider_config_location of the host "
            "(/etc/nova/provider_config by default), alone or beside files that do not "
            "name $COMPUTE_NODE."
        )
    if not offers and policy.placement != "none":
        found.append(
            "If the host offered slots before: "
            + ("" if has_provider else "remove its old provider.yaml, and ")
            + f"take the trait {' or '.join(traits)} off its provider by "
            "openstack resource provider trait set, which wants all traits that are to "
            "stay. Nova never removes one, and general VMs would stay away."
        )
    if policy.placement == "units":
        # No API shows the cpu sets and cores that these follow from.
        found.append(
            f"Then: openstack perfvm host enroll HOST --slots {host.slots}. Until then "
            "no VM with units comes to it."
        )
    return tuple(found)

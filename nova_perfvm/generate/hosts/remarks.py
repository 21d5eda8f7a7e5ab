# SPDX-License-Identifier: Apache-2.0
"""Warnings about a host's configuration, and notes on what to do besides copying it.

The reasons are in doc/source/admin/host-modes.rst, and in elastic.rst for units.
"""

from __future__ import annotations

from collections.abc import Iterator

from nova_perfvm import constants as const
from nova_perfvm.generate.hosts.config import HostConfig
from nova_perfvm.generate.hosts.request import HostRequest
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.slots import host_slots, smallest_memory_mb


def warnings_of(host: HostConfig) -> Iterator[str]:
    """Yield what may go wrong, the worst first."""
    topology, cpus, slots = host.request.topology, host.cpus, host.slots
    if host.vm_class is not None and not slots:
        yield _no_slots(host, host.vm_class)
    yield from topology.assumptions
    used = cpus.pinnable | cpus.shared
    if used != topology.cpus or (cpus.dedicated and cpus.shared):
        yield from topology.numbering
    if host.vm_class is not None:
        yield from _unlike_the_policy(host.request)
        yield from _of_class(host, host.vm_class)
    for kind, (capacity, guarantee) in host.iops.items():
        if slots and capacity // guarantee < slots:
            yield (
                f"{capacity} {kind} operations per second are {capacity // guarantee} "
                f"times the guaranteed {guarantee}, and there are {slots} slots"
            )
    if slots < min(host.room, len(const.CHILD_LETTERS)):
        yield (
            f"room for {host.room} VMs, and units are made for {slots} on a host: add "
            f"{topology} to host_shape, up to max_per_host: 26; then generate the "
            "flavors and enroll all hosts again"
        )
    yield from _residents(host.request)


def _no_slots(host: HostConfig, vm_class: VMClass) -> str:
    if host_slots(vm_class, host.cells, 0):
        share_gb = -(-smallest_memory_mb(vm_class) // vm_class.cells_per_vm) // 1024
        cause = (
            f"its smallest flavor needs {share_gb} GiB on a NUMA node and they have "
            f"{', '.join(str(cell.memory_mb // 1024) for cell in host.cells)} for VMs"
        )
    else:
        cause = (
            f"a VM needs {vm_class.cell_pcpus} CPUs on each of {vm_class.cells_per_vm} "
            f"NUMA nodes, and these have {', '.join(map(str, host.usable))} for such "
            f"VMs with --reserve {host.request.reserve}"
        )
    return f"this host has 0 slots for class {vm_class.name}: {cause}"


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


def _of_class(host: HostConfig, vm_class: VMClass) -> Iterator[str]:
    """Yield what VMs of the class lack, or take from the host."""
    request, cpus = host.request, host.cpus
    taken = host.slots * vm_class.cell_pcpus * vm_class.cells_per_vm
    kept = request.reserve or cpus.shared
    if host.slots and not kept and taken == sum(host.usable):
        yield (
            "no core is left for the host: its kernel, interrupts and services run on "
            "the VMs' CPUs; --reserve N keeps N cores of each NUMA node, and costs the "
            "slots that need them"
        )
    # Nova asks Placement for (or against) the trait HW_CPU_HYPERTHREADING,
    # which a host reports whatever its cpu sets leave out.
    smt, policy = request.topology.threads > 1, vm_class.cpu_thread_policy
    if (smt and policy == "isolate" and cpus.dedicated) or (
        not smt and policy == "require"
    ):
        yield (
            f"no VM of class {vm_class.name} comes here: cpu_thread_policy: {policy} "
            f"is for hosts {'without' if smt else 'with'} SMT; use prefer"
        )
    if vm_class.emulator_threads == "share" and request.mode != "mixed":
        yield (
            f"class {vm_class.name} has emulator_threads: share, and this host no "
            "cpu_shared_set: QEMU's own threads run on the VM's CPUs"
        )


def _residents(request: HostRequest) -> Iterator[str]:
    if request.residents is None:
        yield (
            "drain the host first: nova-compute does not start when its new cpu sets "
            "contradict VMs on it. Or name them by --servers FILE"
        )
        return
    if any(resident.cpu_policy != "shared" for resident in request.residents):
        yield (
            "pinned VMs on the host keep their CPUs: compare virsh vcpupin of each "
            "with the sets above; where they differ, migrate the VM"
        )
    elif request.residents and scheme_of(request.policy).counts:
        yield (
            "VMs that are on the host already do not count in Placement's new "
            "inventories: move them away and back, or wait until they are deleted"
        )


def notes_of(host: HostConfig) -> Iterator[str]:
    """Yield what to do besides copying the lines."""
    policy, provider = host.request.policy, host.provider
    if host.cpus.dedicated or host.cpus.shared:
        yield (
            "Remove reserved_host_cpus and vcpu_pin_set from nova.conf if they are "
            "there: beside these cpu sets nova-compute does not start."
        )
    elif host.cpus.either:
        yield "Remove cpu_dedicated_set and cpu_shared_set from nova.conf."
    if provider is not None:
        yield (
            "provider.yaml goes into [compute]provider_config_location of the host "
            "(/etc/nova/provider_config by default), alone or beside files that do not "
            "name $COMPUTE_NODE."
        )
    scheme = scheme_of(policy)
    traits = [scheme.trait(policy, c) for c in policy.pinned_classes]
    offers = any(trait in str(provider) for trait in traits)
    if not offers and scheme.counts:
        yield (
            "If the host offered slots before: remove its old provider.yaml, and take "
            f"the trait {' or '.join(traits)} off its provider, or general VMs stay "
            "away; openstack perfvm host list has the command."
        )
    if scheme.enrolls:
        # No API shows the cpu sets and cores that these follow from.
        yield (
            f"Then: openstack perfvm host enroll HOST --slots {host.slots}. Until then "
            "no VM with units comes to it."
        )

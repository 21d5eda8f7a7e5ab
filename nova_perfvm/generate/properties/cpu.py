# SPDX-License-Identifier: Apache-2.0
"""Pinning, NUMA nodes and QEMU's own threads."""

from __future__ import annotations

from nova_perfvm import constants as const
from nova_perfvm.generate.properties.combine import Properties
from nova_perfvm.policy import Policy, VMClass


def generate(_policy: Policy, vm_class: VMClass) -> Properties:
    """Return the extra specs about CPUs; images need say nothing about them."""
    # Said for general flavors too: beside hw:cpu_policy=shared Nova answers 400
    # to an image with hw_cpu_policy=dedicated or mixed, beside no policy it
    # pins the VM (nova.virt.hardware.get_cpu_policy_constraint).  The same
    # policy makes it refuse hw_cpu_thread_policy and the hyperthreading trait.
    flavor: dict[str, str] = {const.CPU_POLICY: vm_class.cpu_policy}
    if vm_class.pinned:
        # Nova's default, prefer, is written out: an image's
        # hw_cpu_thread_policy is obeyed beside none, and its isolate would take
        # the sibling threads of another VM's slot.  Beside prefer only its
        # require counts, and only to NUMATopologyFilter, which then refuses
        # hosts without SMT (_satisfies_cpu_policy).
        flavor[const.CPU_THREAD_POLICY] = vm_class.cpu_thread_policy or "prefer"
    if vm_class.numa_nodes is not None:
        # Said even where 1 is what pinning implies, so that an image with
        # hw_numa_nodes=2 is answered 400 and not spread over two nodes.
        flavor[const.NUMA_NODES] = str(vm_class.numa_nodes)
    if vm_class.emulator_threads is not None:
        flavor[const.EMULATOR_THREADS] = vm_class.emulator_threads
    return Properties(flavor=flavor)

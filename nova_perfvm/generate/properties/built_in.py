# SPDX-License-Identifier: Apache-2.0
"""The built-in generators, one for each concern."""

from __future__ import annotations

from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.generate.properties.combine import Generator, Properties
from nova_perfvm.policy import Policy, VMClass

_IMAGE_DISK_BUS: Final = "hw_disk_bus"


def cpu(_policy: Policy, vm_class: VMClass) -> Properties:
    """Return the extra specs about pinning, NUMA nodes and QEMU's own threads.

    Images need say nothing about them.
    """
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


def memory(_policy: Policy, vm_class: VMClass) -> Properties:
    """Return ``hw:mem_page_size`` where the policy asks for a page size.

    The image stays silent: Nova refuses hw_mem_page_size beside a flavor that
    says nothing or names an exact size, so that one image could not serve both
    classes.
    """
    if vm_class.mem_page_size is None:
        return Properties()
    return Properties(flavor={const.MEM_PAGE_SIZE: vm_class.mem_page_size})


def network(_policy: Policy, vm_class: VMClass) -> Properties:
    """Return a queue per vCPU on both sides where the class wants multiqueue.

    A class without it says nothing: ``false`` in a flavor conflicts with an
    image that says ``true`` (400 FlavorImageConflict), and one image serves
    both classes.
    """
    if not vm_class.vif_multiqueue:
        return Properties()
    return Properties(
        flavor={const.VIF_MULTIQUEUE: "true"},
        image={
            # The flavor alone would do.  The image says the same, so that the
            # VM has its queues with an older flavor too; equal values do not
            # conflict.
            const.IMAGE_VIF_MULTIQUEUE: "true",
            # Nova sets queues for virtio only, and takes e1000 or the like when
            # libosinfo has that for the image's os_distro.
            const.IMAGE_VIF_MODEL: "virtio",
        },
    )


def disk(_policy: Policy, vm_class: VMClass) -> Properties:
    """Return the disk bus of classes that live on network volumes.

    The flavor has no extra spec about it; its root disk of 0 GB is a size.
    Nova reads the property from the volume, to which Cinder copied it.
    """
    if vm_class.disk.source != "volume":
        return Properties()
    # An emulated IDE or SATA disk, which Nova takes when libosinfo has that for
    # the image's os_distro, hides what a fast volume can do; virtio-blk has a
    # queue per vCPU (QEMU >= 5.2).
    return Properties(image={_IMAGE_DISK_BUS: "virtio"})


# By their entry points' names.
BUILT_IN: Final[dict[str, Generator]] = {
    "cpu": cpu,
    "disk": disk,
    "memory": memory,
    "network": network,
}

# SPDX-License-Identifier: Apache-2.0
"""The built-in generators, one for each concern."""

from __future__ import annotations

from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.generate.properties.combine import Generator, Properties
from nova_perfvm.policy import Policy, VMClass

_IMAGE_DISK_BUS: Final = "hw_disk_bus"


def cpu(_policy: Policy, vm_class: VMClass) -> Properties:
    """Return the extra specs for pinning, NUMA nodes and QEMU's own threads.

    Images need no properties for them.
    """
    # General flavors have the extra spec, too: beside hw:cpu_policy=shared Nova
    # answers 400 to an image with hw_cpu_policy=dedicated or mixed; beside a flavor
    # without hw:cpu_policy it pins the VM (nova.virt.hardware
    # .get_cpu_policy_constraint).  With "shared" Nova also refuses
    # hw_cpu_thread_policy and the hyperthreading trait.
    flavor: dict[str, str] = {const.CPU_POLICY: vm_class.cpu_policy}
    if vm_class.pinned:
        # Nova's default, prefer, is written out: if the flavor names no thread policy,
        # an image's hw_cpu_thread_policy applies, and "isolate" would take the sibling
        # threads of another VM's slot.  Beside a flavor's "prefer" only an image's
        # "require" has an effect, and only on NUMATopologyFilter, which then refuses
        # hosts without SMT (_satisfies_cpu_policy).
        flavor[const.CPU_THREAD_POLICY] = vm_class.cpu_thread_policy or "prefer"
    if vm_class.numa_nodes is not None:
        # Written out although pinning implies 1 node, so that Nova answers 400 to an
        # image with hw_numa_nodes=2 instead of spreading the VM over two nodes.
        flavor[const.NUMA_NODES] = str(vm_class.numa_nodes)
    if vm_class.emulator_threads is not None:
        flavor[const.EMULATOR_THREADS] = vm_class.emulator_threads
    return Properties(flavor=flavor)


def memory(_policy: Policy, vm_class: VMClass) -> Properties:
    """Return ``hw:mem_page_size`` where the policy asks for a page size.

    The image has no such property: Nova refuses hw_mem_page_size beside a flavor
    without a page size, or with an exact one, so one image could not serve all classes.
    """
    if vm_class.mem_page_size is None:
        return Properties()
    return Properties(flavor={const.MEM_PAGE_SIZE: vm_class.mem_page_size})


def network(_policy: Policy, vm_class: VMClass) -> Properties:
    """Return multiqueue for flavors and images where the class wants it.

    A class without multiqueue sets no extra spec: ``false`` in a flavor conflicts with
    ``true`` in an image (400 FlavorImageConflict), and one image serves both classes.
    """
    if not vm_class.vif_multiqueue:
        return Properties()
    return Properties(
        flavor={const.VIF_MULTIQUEUE: "true"},
        image={
            # The flavor alone would suffice.  The image has the property, too, for VMs
            # with an older flavor; equal values do not conflict.
            const.IMAGE_VIF_MULTIQUEUE: "true",
            # Nova sets queues for virtio only, and chooses e1000 or another model if
            # libosinfo recommends it for the image's os_distro.
            const.IMAGE_VIF_MODEL: "virtio",
        },
    )


def disk(_policy: Policy, vm_class: VMClass) -> Properties:
    """Return the declared disk bus, or virtio for VMs that boot from network volumes.

    Flavors need no extra spec for volumes, only a root disk of 0 GB.  Nova reads the
    property from the volume, to which Cinder has copied the image's properties.
    """
    bus = vm_class.disk.bus
    if bus is None and vm_class.disk.source != "volume":
        return Properties()
    # If libosinfo recommends IDE or SATA for the image's os_distro, Nova emulates such
    # a disk, which limits a fast volume; virtio-blk has a queue per vCPU (QEMU >= 5.2).
    image: dict[str, str] = {_IMAGE_DISK_BUS: bus or "virtio"}
    if bus == "scsi":
        # libvirt's default model on x86 is lsilogic, which is emulated.
        image["hw_scsi_model"] = "virtio-scsi"
    return Properties(image=image)


# Built-in generators by the names of their entry points.
BUILT_IN: Final[dict[str, Generator]] = {
    "cpu": cpu,
    "disk": disk,
    "memory": memory,
    "network": network,
}

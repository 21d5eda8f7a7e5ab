# SPDX-License-Identifier: Apache-2.0
"""Where the root disk comes from."""

from __future__ import annotations

from typing import Final

from nova_perfvm.generate.properties.combine import Properties
from nova_perfvm.policy import Policy, VMClass

_IMAGE_DISK_BUS: Final = "hw_disk_bus"


def generate(_policy: Policy, vm_class: VMClass) -> Properties:
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

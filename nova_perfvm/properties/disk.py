# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Where the root disk comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.properties.combine import Properties

if TYPE_CHECKING:
    from nova_perfvm.model import Policy, VMClass

_IMAGE_DISK_BUS: Final = "hw_disk_bus"


def generate(_policy: Policy, vm_class: VMClass) -> Properties:
    """Give the disk bus of classes that live on network volumes.

    The flavor has no extra spec about it; its root disk of 0 GB is a size.
    Nova reads the property from the volume, to which Cinder copied it.
    """
    if vm_class.disk.source != "volume":
        return Properties()
    # An emulated IDE or SATA disk, which Nova takes when libosinfo has that for
    # the image's os_distro, hides what a fast volume can do; virtio-blk has a
    # queue per vCPU (QEMU >= 5.2).
    return Properties(image={_IMAGE_DISK_BUS: "virtio"})

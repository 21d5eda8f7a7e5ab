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

"""Network queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm import constants as const
from nova_perfvm.properties.combine import Properties

if TYPE_CHECKING:
    from nova_perfvm.model import Policy, VMClass


def generate(_policy: Policy, vm_class: VMClass) -> Properties:
    """Give a queue per vCPU on both sides where the class wants multiqueue.

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

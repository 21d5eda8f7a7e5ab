# SPDX-License-Identifier: Apache-2.0
"""Network queues."""

from __future__ import annotations

from nova_perfvm import constants as const
from nova_perfvm.generate.properties.combine import Properties
from nova_perfvm.policy import Policy, VMClass


def generate(_policy: Policy, vm_class: VMClass) -> Properties:
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

# SPDX-License-Identifier: Apache-2.0
"""Slots: each VM of a pinned class takes one of those that its host counts.

A host offers slots to one pinned class, by an inventory and a trait of that
class.  With several pinned classes each has names of its own, so that no VM of
one can take, or be forced into, a slot that was counted for another.
"""

from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.placement.schemes.scheme import Scheme
from nova_perfvm.policy import Policy, VMClass


class SlotsScheme(Scheme):
    """``placement: slots``."""

    name = "slots"
    summary = "hosts have slots in Placement"
    resource_class = const.RC_SLOT
    isolates = True

    def slot_class(self, policy: Policy, vm_class: VMClass) -> str:
        """Return the resource class of the slots of a pinned class."""
        if len(policy.pinned_classes) == 1:
            return const.RC_SLOT
        return f"{const.RC_SLOT}_{vm_class.custom_name}"


SLOTS: Final = SlotsScheme()

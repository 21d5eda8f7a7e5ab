# SPDX-License-Identifier: Apache-2.0
"""The scheme ``slots``: each VM of a pinned class takes one slot of its host.

A host offers slots to one pinned class, by an inventory and a trait of that class.
"""

from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.placement.schemes.scheme import Scheme


class SlotsScheme(Scheme):
    """``placement: slots``."""

    name = "slots"
    summary = "hosts have slots in Placement"
    resource_class = const.RC_SLOT
    isolates = True


SLOTS: Final = SlotsScheme()

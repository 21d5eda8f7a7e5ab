# SPDX-License-Identifier: Apache-2.0
"""The policy that an operator declares: classes of VMs, and how hosts serve them."""

from nova_perfvm.policy.advice import advice
from nova_perfvm.policy.classes import TYPE_TO_CHOOSE, Disk, VMClass
from nova_perfvm.policy.flavors import FlavorSize, FlavorTemplate
from nova_perfvm.policy.limits import PAGE_SIZES_KB, SMALL_PAGES, even_share, name_fault
from nova_perfvm.policy.model import Elastic, Policy, policy_mistakes
from nova_perfvm.policy.room import cell_slots, groups_of, largest_slots, shape_slots
from nova_perfvm.policy.shapes import HostShape

__all__ = [
    "PAGE_SIZES_KB",
    "SMALL_PAGES",
    "TYPE_TO_CHOOSE",
    "Disk",
    "Elastic",
    "FlavorSize",
    "FlavorTemplate",
    "HostShape",
    "Policy",
    "VMClass",
    "advice",
    "cell_slots",
    "even_share",
    "groups_of",
    "largest_slots",
    "name_fault",
    "policy_mistakes",
    "shape_slots",
]

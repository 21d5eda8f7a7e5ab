# SPDX-License-Identifier: Apache-2.0
"""What a class asks of Placement, so that it holds whatever the filters say.

Not an extension like its siblings: which scheme a cloud has is the policy's
``placement``, and a package cannot opt out of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm import constants as const
from nova_perfvm.generate.properties.combine import Properties
from nova_perfvm.placement import units

if TYPE_CHECKING:
    from nova_perfvm.policy import Policy, VMClass


def generate(
    policy: Policy, vm_class: VMClass, *, isolated_aggregates: bool = False
) -> Properties:
    """Return the extra specs about resources and traits.

    :param isolated_aggregates: VMs that share CPUs are kept off hosts with slots
        by the hosts' aggregate, not by their flavors
    """
    if policy.placement == "none":
        return Properties()
    flavor = _units(policy, vm_class) if policy.placement == "units" else {}
    if policy.placement == "slots":
        flavor = _slots(policy, vm_class, isolated_aggregates)
    for resource_class, amount in (
        (const.RC_READ_IOPS, vm_class.disk.read_iops),
        (const.RC_WRITE_IOPS, vm_class.disk.write_iops),
    ):
        if amount is not None:
            flavor[f"resources:{resource_class}"] = str(amount)
    return Properties(flavor=flavor)


def _slots(policy: Policy, vm_class: VMClass, isolated: bool) -> dict[str, str]:  # noqa: FBT001
    if vm_class.pinned:
        return {
            f"resources:{const.RC_SLOT}": "1",
            f"trait:{const.TRAIT_HIGH_PERFORMANCE}": "required",
        }
    return {} if isolated else _keep_off(policy)


def _keep_off(policy: Policy) -> dict[str, str]:
    """Keep VMs that share CPUs off hosts with slots.

    Not where hosts are divided by NUMA node: there they are meant to meet.
    """
    if any(c.exclusive == "host" for c in policy.pinned_classes):
        return {f"trait:{const.TRAIT_HIGH_PERFORMANCE}": "forbidden"}
    return {}


def _units(policy: Policy, vm_class: VMClass) -> dict[str, str]:
    # Several groups in one request need a group policy; without it the server
    # ends in ERROR.  Isolated aggregates let in only what names their trait.
    flavor = {
        "group_policy": "none",
        f"trait:{units.elastic_trait(policy)}": "required",
    }
    if vm_class.pinned:
        flavor[f"resources_perfvm:{const.RC_UNIT}"] = str(const.UNITS_PER_CHILD)
        return flavor
    for suffix in units.SUFFIXES[: units.children_per_host(policy)]:
        flavor[f"resources_perfvm_{suffix}:{const.RC_UNIT}"] = "1"
        flavor[f"trait_perfvm_{suffix}:{units.child_trait(suffix)}"] = "required"
    # Hosts with cpu_dedicated_set only, beside elastic ones.
    return flavor | _keep_off(policy)

# SPDX-License-Identifier: Apache-2.0
"""A valid policy in a few lines."""

from __future__ import annotations

from nova_perfvm.policy import Policy, cell_slots, shape_slots
from nova_perfvm.printable import number_of


def summary(policy: Policy, source: str) -> str:
    """Return a policy's hash, its classes, and the VMs that fit each host shape."""
    lines = [f"{source}: valid", f"SHA-256 {policy.digest}"]
    for vm_class in policy.classes:
        size = f"{vm_class.vcpus} vCPUs" if vm_class.vcpus else "any number of vCPUs"
        if vm_class.former_vcpus:
            size += f" (formerly {', '.join(map(str, vm_class.former_vcpus))})"
        default = ", the default" if vm_class.default else ""
        lines.append(f"class {vm_class.name}: {size}, {vm_class.cpu_policy}{default}")
    lines += [
        f"host {shape}: {number_of(cell_slots(vm_class, shape), 'slot')} of class "
        f"{vm_class.name} per NUMA node, "
        f"{number_of(shape_slots(vm_class, shape), 'VM')} per host"
        for shape in policy.host_shapes
        for vm_class in policy.pinned_classes
    ]
    return "\n".join(lines) + "\n"

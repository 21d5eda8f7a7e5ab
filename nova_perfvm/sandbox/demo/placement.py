# SPDX-License-Identifier: Apache-2.0
"""Why Placement did not offer a host to the filters.

What Placement prunes, the scheduler never sees: Nova then says only "No valid
host was found".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm import constants as const

if TYPE_CHECKING:
    from nova_perfvm.generate.flavors import PolicyFlavor
    from nova_perfvm.sandbox.embedded import EmbeddedCloud


def refusal(cloud: EmbeddedCloud, flavor: PolicyFlavor, host: str) -> tuple[str, ...]:
    """Return in words what a host lacks for a flavor, in Placement's view."""
    pinned = flavor.extra_specs.get(const.CPU_POLICY) == "dedicated"
    wanted = {
        "PCPU" if pinned else "VCPU": flavor.vcpus,
        "MEMORY_MB": flavor.memory_mb,
    }
    if flavor.root_gb:
        wanted["DISK_GB"] = flavor.root_gb
    for key, value in flavor.extra_specs.items():
        if key.startswith("resources:"):
            wanted[key.removeprefix("resources:")] = int(value)
    capacity = cloud.capacity(host)
    used = cloud.usages(host)
    lacks = tuple(
        _words(name, amount, capacity.get(name, 0), used.get(name, 0))
        for name, amount in wanted.items()
        if capacity.get(name, 0) - used.get(name, 0) < amount
    )
    traits = cloud.traits(host)
    for key, value in flavor.extra_specs.items():
        trait = key.removeprefix("trait:")
        if trait != key and (trait in traits) != (value == "required"):
            has = "has" if trait in traits else "lacks"
            lacks += (f"Placement: the host {has} the trait {trait}, {value}",)
    return lacks or ("Placement: offered, but refused before PerfVMFilter",)


def _words(name: str, wanted: int, capacity: int, used: int) -> str:
    if not capacity:
        return f"Placement: the host offers no {name}"
    return f"Placement: {capacity - used} of {capacity} {name} free, need {wanted}"

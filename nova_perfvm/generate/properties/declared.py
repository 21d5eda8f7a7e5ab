# SPDX-License-Identifier: Apache-2.0
"""The extra specs and image properties of the class's keys, mostly value for value."""

from __future__ import annotations

from typing import Any, Final

from nova_perfvm.generate.properties.combine import Properties
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.policy.written_keys import WRITTEN

# Extra specs whose value is the value of the class's key; null and false write none,
# so that the image decides.
_PLAIN: Final = (
    "hw:cpu_threads",
    "hw:locked_memory",
    "hw:virtio_packed_ring",
    "hw:cpu_realtime_mask",
)
# nova-api has no validator for these keys: from microversion 2.86 on it refuses
# flavors that have them, and never images.
_OF_IMAGE: Final = ("hw:maxphysaddr_mode", "hw:maxphysaddr_bits")


def declared(_policy: Policy, vm_class: VMClass) -> Properties:
    """Return the properties of the class's keys that no other generator returns."""
    flavor = {}
    for spec in _PLAIN:
        if value := _value(vm_class, WRITTEN[spec]):
            flavor[spec] = _text(value)
    if vm_class.pmu is not None:
        # "false" is no default: QEMU gives guests the counters that the host has.
        flavor["hw:pmu"] = _text(vm_class.pmu)
    if vm_class.realtime:
        flavor["hw:cpu_realtime"] = "true"
    if vm_class.guest_topology and vm_class.guest_topology.sockets:
        # A maximum, which no image exceeds; an image's hw_cpu_sockets would replace
        # hw:cpu_sockets (nova.virt.hardware.get_cpu_topology_constraints).
        flavor["hw:cpu_max_sockets"] = str(vm_class.cells_per_vm)
    image = {}
    for spec in _OF_IMAGE:
        if value := _value(vm_class, WRITTEN[spec]):
            image[spec.replace(":", "_")] = _text(value)
    return Properties(flavor, image)


def _value(vm_class: VMClass, path: str) -> Any:
    """Return the value of a key such as ``realtime.mask``; None without its parent."""
    value: Any = vm_class
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

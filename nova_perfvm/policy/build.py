# SPDX-License-Identifier: Apache-2.0
"""Plain values, already checked against the schema, to a policy."""

from __future__ import annotations

from typing import Any

from nova_perfvm.policy import (
    Disk,
    FlavorSize,
    FlavorTemplate,
    HostShape,
    Policy,
    VMClass,
)
from nova_perfvm.policy.default import DEFAULT_DOCUMENT

# Keys of a class that the constructor takes as they are.
_PLAIN_KEYS = (
    "cpu_policy",
    "cpu_thread_policy",
    "smt",
    "emulator_threads",
    "exclusive",
    "vif_multiqueue",
    "mem_page_size",
    "default",
)
_NUMBER_KEYS = ("vcpus", "numa_nodes", "max_per_host")


def build_policy(document: dict[str, Any]) -> Policy:
    """Return the policy of a document that fulfils the schema.

    A key that is missing at the top has the built-in policy's value; one that
    is missing in a class has the value that asks for nothing (``classes`` is
    taken as a whole, so that a class can be left out).
    """
    full = DEFAULT_DOCUMENT | document
    shapes = full["host_shape"]
    elastic = DEFAULT_DOCUMENT["elastic"] | full["elastic"]
    return Policy(
        schema_version=full["schema_version"],
        host_shapes=tuple(
            HostShape.parse(shape)
            for shape in ([shapes] if isinstance(shapes, str) else shapes)
        ),
        placement=full["placement"],
        managed_hosts=full["managed_hosts"],
        classes=tuple(
            _build_class(name, keys) for name, keys in full["classes"].items()
        ),
        elastic_slots=_int(elastic["slots"]),
    )


def _build_class(name: str, keys: dict[str, Any]) -> VMClass:
    fields: dict[str, Any] = {key: keys[key] for key in _PLAIN_KEYS if key in keys}
    # JSON schema takes 20.0 for an integer.
    fields |= {key: _int(keys[key]) for key in _NUMBER_KEYS if key in keys}
    fields["former_vcpus"] = tuple(int(size) for size in keys.get("former_vcpus", ()))
    fields["host_traits"] = tuple(keys.get("host_traits", ()))
    disk = dict(keys.get("disk", {}))
    for key in ("read_iops", "write_iops"):
        disk[key] = _int(disk.get(key))
    vm_class = VMClass(name=name, disk=Disk(**disk), **fields)
    flavors = keys.get("flavors")
    if flavors is None:
        return vm_class
    sizes = [
        FlavorSize(int(size["vcpus"]), int(size["memory_gb"]), int(size["root_gb"]))
        for size in flavors.get("sizes", [])
    ]
    if vm_class.vcpus is not None:
        root_gb = int(flavors.get("root_gb", 0))
        sizes.extend(
            FlavorSize(vm_class.vcpus, int(memory_gb), root_gb)
            for memory_gb in flavors.get("memory_gb", [])
        )
    template = FlavorTemplate(flavors["name"], tuple(sizes))
    return VMClass(name=name, disk=Disk(**disk), flavors=template, **fields)


def _int(value: float | None) -> int | None:
    return None if value is None else int(value)

# SPDX-License-Identifier: Apache-2.0
"""Propose flavors and volume types from a cloud's VMs, flavors, hosts and Cinder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from nova_perfvm.diagnose.survey.sizes import most_common
from nova_perfvm.facts.snapshot import ComputeHost, Flavor, Server, Snapshot
from nova_perfvm.generate.hosts import RESERVED_MEMORY_GB
from nova_perfvm.policy import FlavorSize, FlavorTemplate, VMClass, shape_slots

# The type of volumes that a server gets if nobody names a type.
_DEFAULT_TYPE: Final = "__DEFAULT__"
# Memory from hosts is a multiple of this for each NUMA node.
_STEP_GB: Final = 4


def from_volumes(servers: Sequence[Server], having: Sequence[Flavor]) -> list[bool]:
    """Return for each server, else each flavor, whether its root disk is a volume."""
    return [server.volume_backed for server in servers] or [
        not flavor.disk_gb for flavor in having
    ]


def sizes_of(having: Iterable[Server | Flavor], *, image: bool) -> Counter[FlavorSize]:
    """Return how often each size of VMs or flavors occurs.

    :param image: whether root disks come from images, so that flavors need a root disk
    """
    return Counter(
        FlavorSize(one.vcpus, -(-one.memory_mb // 1024), one.disk_gb if image else 0)
        for one in having
        if one.memory_mb and (one.disk_gb or not image)
    )


def template(pattern: str, sizes: Collection[FlavorSize]) -> FlavorTemplate:
    """Return flavors whose names differ."""
    named = {(size.vcpus, size.memory_gb) for size in sizes}
    pattern += ".{root_gb}g" if len(named) < len(sizes) else ""
    order = sorted(sizes, key=lambda size: (size.vcpus, size.memory_gb, size.root_gb))
    return FlavorTemplate(pattern, sizes=tuple(order))


def memory_of_hosts(vm_class: VMClass, hosts: Iterable[ComputeHost]) -> list[int]:
    """Return a slot's memory on most hosts, half and a quarter of it, in GiB.

    Also a slot's memory on the smallest host, whose slots would else be unfit.  The
    host keeps the memory that ``host config`` reserves.
    """
    step = _STEP_GB * vm_class.cells_per_vm
    slots_gb = [
        (host.all_memory_mb // 1024 - RESERVED_MEMORY_GB * host.shape.cells) // slots
        for host in hosts
        if host.shape and (slots := shape_slots(vm_class, host.shape))
    ]
    least, common = min(slots_gb, default=0), most_common(sorted(slots_gb)) or 0
    found = {common // part for part in (1, 2, 4)}
    found |= {least} if least < min(found) else set()
    return sorted({max(step, gb // step * step) for gb in found})


def volume_type(snapshot: Snapshot, servers: Sequence[Server]) -> str | None:
    """Return the type of most of the servers' root volumes, or Cinder's only type.

    None if Cinder has no type, or several types and no server has a root volume.
    """
    types = {volume.server: volume.volume_type for volume in snapshot.root_volumes}
    used = most_common(of for server in servers if (of := types.get(server.id)))
    known = snapshot.volume_types or ()
    named = [name for name in known if name != _DEFAULT_TYPE] or known
    return used or (named[0] if len(named) == 1 else None)

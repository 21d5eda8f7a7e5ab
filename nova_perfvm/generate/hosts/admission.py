# SPDX-License-Identifier: Apache-2.0
"""Check the request for a host against the policy; find the classes it serves."""

from __future__ import annotations

from typing import Final

from nova_perfvm.generate.hosts.errors import HostConfigError
from nova_perfvm.generate.hosts.request import HostRequest
from nova_perfvm.placement.schemes import names_of, scheme_of
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.printable import number_of

# What Placement's inventory takes (a signed 32-bit integer).
_MAX_INVENTORY: Final = 2**31 - 1


def pinned_class(request: HostRequest) -> VMClass | None:
    """Return the pinned class that a host is for; None for a shared host.

    :raises HostConfigError: when it has to be named, or is not pinned
    :raises UnknownClassError: when the policy has none of that name
    """
    policy, name, spell = request.policy, request.class_name, request.spell
    named = None if name is None else policy.get_class(name)
    if request.mode == "shared":
        if named is not None and named.pinned:
            raise HostConfigError(
                f"class {name} is pinned and a shared host has no CPUs for it: use "
                f"{spell('mode', 'dedicated')}, or leave {spell('class')} out"
            )
        return None
    if named is not None and not named.pinned:
        raise HostConfigError(
            f"class {name} shares CPUs, and {spell('class')} names the pinned class of "
            f"a host: use {spell('mode', 'shared')} for {name}"
        )
    if named is None and len(policy.pinned_classes) != 1:
        names = ", ".join(vm_class.name for vm_class in policy.pinned_classes)
        raise HostConfigError(
            f"{spell('mode', request.mode)} is for one pinned class, and the policy "
            f"has {names or 'none'}: name it by {spell('class')}, or use "
            f"{spell('mode', 'shared')}"
        )
    return named or policy.pinned_classes[0]


def check_mode(request: HostRequest) -> None:
    """Refuse modes that the policy's Placement scheme or classes exclude.

    :raises HostConfigError: with the remedy
    """
    mode, spell, scheme = request.mode, request.spell, scheme_of(request.policy)
    if mode not in scheme.modes:
        known = names_of(lambda other: mode in other.modes)
        *others, last = scheme.modes
        usable = f"{', '.join(others)} or {last}"
        raise HostConfigError(
            f"{mode} hosts need placement: {known}, and the policy has placement: "
            f"{scheme.name}: change it, which holds for the whole cloud and its "
            f"flavors, or use {spell('mode', usable)}"
        )
    if mode == "mixed":
        _check_mixed(request)
    if mode != "mixed" and request.shared_nodes != 1:
        raise HostConfigError(
            f"{spell('shared_nodes')} is for {spell('mode', 'mixed')} alone: leave it "
            "out"
        )


def _check_mixed(request: HostRequest) -> None:
    policy, spell = request.policy, request.spell
    greedy = [c.name for c in policy.pinned_classes if c.exclusive == "host"]
    if greedy:
        raise HostConfigError(
            f"a mixed host serves several classes, and {', '.join(greedy)} has "
            "exclusive: host: set exclusive: cell, which keeps the classes on "
            f"different NUMA nodes, or use {spell('mode', 'dedicated or shared')}"
        )
    nodes = len(request.topology.nodes)
    if not 1 <= request.shared_nodes < nodes:
        raise HostConfigError(
            f"{spell('shared_nodes', request.shared_nodes)}: a mixed host divides its "
            f"NUMA nodes, and this one has {nodes}: some are to be left for pinned "
            f"VMs, or use {spell('mode', 'dedicated or shared')}"
        )


def served_classes(
    policy: Policy, mode: str, vm_class: VMClass | None
) -> list[VMClass]:
    """Return the classes whose VMs come to a host."""
    pinned = [] if vm_class is None else [vm_class]
    if mode == "dedicated":
        return pinned
    return pinned + [c for c in policy.classes if not c.pinned]


def check_reserve(request: HostRequest) -> None:
    """Refuse to reserve more than a node has, or less than nothing.

    :raises HostConfigError: with the largest possible value
    """
    most = min(len(node.cores) for node in request.topology.nodes) - 1
    if not 0 <= request.reserve <= most:
        raise HostConfigError(
            f"{request.spell('reserve', request.reserve)}: the host's smallest NUMA "
            f"node has {number_of(most + 1, 'core')}, expected 0 to {most}"
        )
    if request.reserve_memory_gb < 0:
        raise HostConfigError(
            f"--reserve-memory-gb {request.reserve_memory_gb}: expected 0 or more"
        )
    for node in request.topology.nodes:
        # Of a node without memory nothing can be kept.
        if node.memory_mb and node.memory_mb <= request.reserve_memory_gb * 1024:
            raise HostConfigError(
                f"NUMA node {node.id} has {node.memory_mb} MiB of memory, and "
                f"{request.reserve_memory_gb} GiB of each node are kept for the host: "
                "lower --reserve-memory-gb, or check --memory-gb"
            )


def iops_capacity(
    request: HostRequest, classes: list[VMClass]
) -> dict[str, tuple[int, int]]:
    """Return the capacity of the host's disks, and the largest guarantee on it.

    :returns: for ``read`` and ``write``, if a class guarantees it: the host's
        capacity and the guarantee, both in I/O operations per second
    :raises HostConfigError: when a capacity is missing, superfluous or out of range
    """
    found = {}
    counts = scheme_of(request.policy).counts
    for kind, capacity in (("read", request.read_iops), ("write", request.write_iops)):
        amounts = {c.name: getattr(c.disk, f"{kind}_iops") or 0 for c in classes}
        name = max(amounts, key=amounts.__getitem__, default="")
        most = amounts[name] if name and counts else 0
        if not most:
            if capacity is not None:
                raise HostConfigError(
                    f"--{kind}-iops {capacity}: no class of this host has a guarantee "
                    f"that Placement would count: leave the option out, or set "
                    f"disk.{kind}_iops in the policy"
                )
            continue
        if capacity is None:
            raise HostConfigError(
                f"class {name} guarantees {most} {kind} operations per second: say by "
                f"--{kind}-iops what this host's disks give (measured with several VMs "
                "at once, not with one)"
            )
        if not 1 <= capacity <= _MAX_INVENTORY:
            raise HostConfigError(
                f"--{kind}-iops {capacity}: expected 1 to {_MAX_INVENTORY}"
            )
        found[kind] = (capacity, most)
    return found

# SPDX-License-Identifier: Apache-2.0
"""Check the request for a host against the policy; find the classes it serves.

Messages name a request's fields in plain words (``shared nodes``), as the command line,
the inventory file and plans spell each of them differently.
"""

from __future__ import annotations

from collections.abc import Iterable

from nova_perfvm.generate.hosts.errors import HostConfigError
from nova_perfvm.generate.hosts.request import HostRequest
from nova_perfvm.placement.host_schemes import host_scheme_of, names_of
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import VMClass


def pinned_classes(request: HostRequest) -> tuple[VMClass, ...]:
    """Return the pinned classes that a host is for; none for a shared host.

    :raises PerfVMError: when the request has to name a class, must not name its class,
        or names a class that is unknown or not pinned
    """
    name, policy = request.class_name, request.policy
    if request.mode == "shared":
        if name is not None and policy.get_class(name).pinned:
            raise HostConfigError(
                f"class {name} is pinned, and a shared host has no CPUs for it: use "
                "mode dedicated"
            )
        return ()
    if not (scheme_of(policy).mixes and policy.pinned_classes[1:]):
        return (policy.pinned_class(name),)
    if name is not None:
        raise HostConfigError(
            f"class {name} cannot have hosts of its own under placement: "
            f"{policy.placement}, whose hosts serve all pinned classes: name none"
        )
    return policy.pinned_classes


def check_mode(request: HostRequest) -> None:
    """Refuse modes and numbers of shared nodes that the policy or host excludes.

    :raises HostConfigError: names what is possible
    """
    mode, modes = request.mode, host_scheme_of(request.policy).modes
    if mode not in modes:
        known = names_of(lambda other: mode in other.modes)
        raise HostConfigError(
            f"{mode} hosts need placement: {known}, and the policy has placement: "
            f"{request.policy.placement}, whose modes are {', '.join(modes)}"
        )
    if mode != "mixed":
        if request.shared_nodes != 1:
            raise HostConfigError(
                f"shared nodes are for mixed hosts; a {mode} host has none"
            )
        return
    greedy = [c.name for c in request.policy.pinned_classes if c.exclusive == "host"]
    if greedy:
        raise HostConfigError(
            f"a mixed host serves several classes, and {', '.join(greedy)} has "
            "exclusive: host: set exclusive: cell, or use mode dedicated or shared"
        )
    nodes = len(request.topology.nodes)
    if not 1 <= request.shared_nodes < nodes:
        raise HostConfigError(
            f"{request.shared_nodes} shared NUMA nodes of {nodes}: a mixed host has at "
            "least one of each kind"
        )


def served_classes(request: HostRequest, pinned: Iterable[VMClass]) -> list[VMClass]:
    """Return the classes whose VMs run on a host.

    :param pinned: the pinned classes that the host is for
    """
    if request.mode == "dedicated":
        return [*pinned]
    return [*pinned] + [c for c in request.policy.classes if not c.pinned]


def check_reserve(request: HostRequest) -> None:
    """Refuse reserved cores or memory that are negative or exceed a NUMA node.

    :raises HostConfigError: names the largest possible value
    """
    nodes = request.topology.nodes
    cores = min(len(node.cores) for node in nodes) - 1
    # A node without memory reserves none.
    known = [node.memory_mb for node in nodes if node.memory_mb]
    for what, wanted, most in (
        ("reserved cores of each NUMA node", request.reserve, cores),
        (
            "reserved GiB of each NUMA node",
            request.reserve_memory_gb,
            (min(known, default=2**41) - 1) // 1024,
        ),
    ):
        if not 0 <= wanted <= most:
            raise HostConfigError(f"{wanted} {what}: this host can spare 0 to {most}")


def iops_capacity(
    request: HostRequest, classes: list[VMClass]
) -> dict[str, tuple[int, int]]:
    """Return the capacity of the host's disks and the largest guarantee of a class.

    :returns: {``read`` or ``write``: (capacity, guarantee)} in I/O operations per
        second, where a class has a guarantee that Placement counts
    :raises HostConfigError: when a capacity is missing or superfluous
    """
    counted = classes if scheme_of(request.policy).counts else []
    found = {}
    for kind, capacity in (("read", request.read_iops), ("write", request.write_iops)):
        amounts = [getattr(c.disk, f"{kind}_iops") or 0 for c in counted]
        most = max(amounts, default=0)
        if most and capacity is None:
            raise HostConfigError(
                f"a class guarantees {most} {kind} operations per second: give the "
                f"capacity of this host's disks by --{kind}-iops (measured with "
                "several VMs at once, not with one)"
            )
        if capacity is not None and not most:
            raise HostConfigError(
                f"--{kind}-iops {capacity}: no class of this host has a guarantee that "
                "Placement counts: leave it out"
            )
        if capacity is not None:
            found[kind] = (capacity, most)
    return found

# SPDX-License-Identifier: Apache-2.0
"""The sections of tempest.conf that describe a policy."""

from __future__ import annotations

from nova_perfvm.generate.flavors import PolicyFlavor, generate_flavors
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy, VMClass, largest_slots


def tempest_conf(policy: Policy, class_name: str | None = None) -> str:
    """Return sections of tempest.conf.

    :param class_name: the pinned class to test; None for the policy's only one
    :raises PerfVMError: when `class_name` is None and the policy has several pinned
        classes or none, when the class is not pinned, or when a class has no flavors
    """
    pinned = policy.pinned_class(class_name)
    general = _by_size(policy, policy.default_class)
    most = largest_slots((pinned,), policy.host_shapes)
    mixes = scheme_of(policy).mixes
    others = [c for c in policy.pinned_classes if mixes and c is not pinned]
    # Where pinned classes share hosts, no other class runs there, whatever a class's
    # `exclusive` says.
    exclusive = "host" if mixes else pinned.exclusive
    return (
        "[service_available]\n"
        "perfvm = True\n"
        "\n"
        "[perfvm]\n"
        f"high_performance_flavor = {_by_size(policy, pinned)[0].name}\n"
        + "".join(
            f"high_performance_flavor_alt = {_by_size(policy, other)[0].name}\n"
            for other in others[:1]
        )
        + f"general_flavor = {general[0].name}\n"
        f"general_flavor_alt = {_resize_target(general).name}\n"
        f"vcpus = {pinned.vcpus}\n"
        f"max_per_host = {most}\n"
        f"exclusive = {exclusive}\n"
        f"placement = {policy.placement}\n"
    )


def _by_size(policy: Policy, vm_class: VMClass) -> list[PolicyFlavor]:
    """Return a class's flavors by memory, vCPUs and disk, the smallest first."""
    flavors = generate_flavors(policy, class_name=vm_class.name)
    return sorted(flavors, key=lambda f: (f.memory_mb, f.vcpus, f.root_gb))


def _resize_target(flavors: list[PolicyFlavor]) -> PolicyFlavor:
    """Return the flavor to resize the first one to; the first itself if none fits.

    Nova refuses a resize to a smaller disk.
    """
    first, *others = flavors
    return next((f for f in others if f.root_gb >= first.root_gb), first)

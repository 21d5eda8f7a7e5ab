# SPDX-License-Identifier: Apache-2.0
"""``tempest config``."""

from __future__ import annotations

import argparse
from dataclasses import replace

from nova_perfvm.generate.flavors import PolicyFlavor, generate_flavors
from nova_perfvm.osc.base import PolicyCommand, class_argument
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy, VMClass, largest_slots


class ConfigTempest(PolicyCommand):
    """Print what Tempest has to know of the policy, for tempest.conf."""

    arguments = (
        class_argument("the pinned class to test (default: the only one there is)"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Derive the options and print them."""
        self.write(tempest_conf(self.policy(parsed_args), parsed_args.class_name))


def tempest_conf(policy: Policy, class_name: str | None = None) -> str:
    """Return sections of tempest.conf.

    :param class_name: the pinned class to test; None for the only one
    :raises PerfVMError: when the class has to be named, is not pinned, or a
        class has no flavors
    """
    pinned = policy.pinned_class(class_name)
    general = _by_size(policy, policy.default_class)
    most = largest_slots(replace(policy, classes=(pinned,)))
    mixes = scheme_of(policy).mixes
    others = [c for c in policy.pinned_classes if mixes and c is not pinned]
    # Hosts that mix pinned classes take no others, whatever these share.
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
    """Return a class's flavors, the smallest first."""
    flavors = generate_flavors(policy, class_name=vm_class.name)
    return sorted(flavors, key=lambda f: (f.memory_mb, f.vcpus, f.root_gb))


def _resize_target(flavors: list[PolicyFlavor]) -> PolicyFlavor:
    """Return the next flavor whose disk is not smaller, or the first without one."""
    first, *others = flavors
    return next((f for f in others if f.root_gb >= first.root_gb), first)

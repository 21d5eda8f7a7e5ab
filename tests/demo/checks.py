# SPDX-License-Identifier: Apache-2.0
"""Compare what Nova did with what the policy says."""

from __future__ import annotations

from collections.abc import Iterator

from nova_perfvm.policy import Policy, VMClass
from tests.demo.story import (
    CLAIMS_HP_16,
    CPUS,
    GENERAL_CLASS,
    GENERAL_HOSTS,
    HP_CLASS,
    HP_HOSTS,
    PINNED_4,
    BootOutcome,
)


def check(policy: Policy, outcomes: list[BootOutcome]) -> list[str]:
    """List everything that differs from the policy, in words."""
    hp = [o for o in outcomes if o.wanted_class == HP_CLASS and o.booted]
    general = [o for o in outcomes if o.wanted_class == GENERAL_CLASS and o.booted]
    return [
        *_check_hp(policy.by_name[HP_CLASS], hp),
        *_check_hosts(policy.by_name[HP_CLASS], hp),
        *_check_general(general),
        *_check_refused(outcomes),
    ]


def _check_hp(vm_class: VMClass, outcomes: list[BootOutcome]) -> Iterator[str]:
    """Look that each VM owns its CPUs, inside one NUMA node, with a queue for each."""
    for outcome in outcomes:
        name, guest = outcome.server.name, outcome.guest
        facts = (
            ("vCPUs", vm_class.vcpus, guest.vcpus),
            ("distinct CPUs", vm_class.vcpus, len(guest.pins)),
            ("every vCPU pinned to one CPU", True, guest.pinned),
            ("NUMA nodes of the pins", vm_class.numa_nodes, len(guest.host_nodes)),
            ("numatune mode", "strict", guest.numatune_mode),
            ("NUMA nodes of the memory", guest.host_nodes, guest.numatune_nodes),
            ("queues of each interface", {vm_class.vcpus}, set(guest.queues)),
            ("a high-performance host", True, outcome.server.host in HP_HOSTS),
        )
        for what, expected, found in facts:
            if expected != found:
                yield f"{name}: {what}: expected {expected}, found {found}"


def _check_hosts(vm_class: VMClass, outcomes: list[BootOutcome]) -> Iterator[str]:
    """Look that each high-performance host is full and no CPU has two owners."""
    for host in HP_HOSTS:
        guests = [o.guest for o in outcomes if o.server.host == host]
        expected = vm_class.max_per_host
        if len(guests) != expected:
            yield f"{host}: expected {expected} VMs, found {len(guests)}"
        if len(frozenset().union(*(guest.pins for guest in guests))) != CPUS:
            yield f"{host}: its VMs do not own {CPUS} CPUs"


def _check_general(outcomes: list[BootOutcome]) -> Iterator[str]:
    """Look that general VMs share the general host's CPUs until those are given out."""
    for outcome in outcomes:
        if outcome.server.host not in GENERAL_HOSTS or outcome.guest.vcpupin:
            yield f"{outcome.server.name}: on {outcome.server.host}, or pinned"
    vcpus = sum(outcome.guest.vcpus for outcome in outcomes)
    if vcpus != CPUS * len(GENERAL_HOSTS):
        yield f"general VMs: expected {CPUS} vCPUs in all, found {vcpus}"


def _check_refused(outcomes: list[BootOutcome]) -> Iterator[str]:
    """Look that each refused VM is refused for the right reason."""
    refused = {o.server.flavor: o for o in outcomes if not o.booted}
    for name, code in (
        (PINNED_4, "host.classless_pinned"),
        (CLAIMS_HP_16, "flavor.vcpus"),
    ):
        if name not in refused:
            yield f"{name}: expected to be refused, but it runs"
            continue
        for host in HP_HOSTS:
            reasons = refused[name].reasons[host]
            if not any(reason.startswith(f"{code}: ") for reason in reasons):
                yield f"{name}: expected {code} on {host}, found {reasons}"
    # One of each class found no room any more.
    if len(refused) != 4:
        yield f"expected VMs of four flavors to be refused, found {sorted(refused)}"

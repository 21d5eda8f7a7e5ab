# SPDX-License-Identifier: Apache-2.0
"""What a policy must fulfil to make sense, each rule stated once.

Every rule yields a problem with the path of the key to change; none stops the
next, so that an operator sees all mistakes at once.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Final

from nova_perfvm import constants as const
from nova_perfvm.exceptions import KeyPath, Problem
from nova_perfvm.policy import placements
from nova_perfvm.policy.acceptance import acceptance_problems
from nova_perfvm.policy.limits import even_share, memory_fault, name_fault
from nova_perfvm.policy.room import shape_slots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.policy.classes import VMClass
    from nova_perfvm.policy.model import Policy

_NAME_FIELDS = frozenset({"class", "vcpus", "memory_gb", "root_gb"})

# What the traits of elastic hosts go on with.
_PROJECT_NAMES: Final = tuple(
    trait.removeprefix(const.CUSTOM_PREFIX)
    for trait in (const.TRAIT_ELASTIC, const.TRAIT_CHILD)
)

# Keys that say something about pinned VMs only, with the value that says
# nothing.
_PINNED_ONLY: dict[str, object] = {
    "cpu_thread_policy": None,
    "emulator_threads": None,
    "max_per_host": None,
    "exclusive": "none",
    "smt": "cores",
}


def problems(policy: Policy) -> list[Problem]:
    """List everything that makes a policy unusable, in the order of the file."""
    found = [p for c in policy.classes for p in _class_problems(policy, c)]
    return [*found, *_policy_problems(policy), *acceptance_problems(policy)]


def _class_problems(policy: Policy, vm_class: VMClass) -> Iterator[Problem]:
    path = ("classes", vm_class.name)
    if vm_class.pinned:
        yield from _pinned_problems(policy, vm_class, path)
    else:
        for key, nothing in _PINNED_ONLY.items():
            value = getattr(vm_class, key)
            if value != nothing:
                yield Problem(
                    (*path, key),
                    f"{value} means something for pinned VMs only: remove it, or "
                    "set cpu_policy: dedicated",
                )
    yield from _numa_problems(vm_class, path)
    yield from _former_problems(vm_class, path)
    yield from _default_class_problems(vm_class, path)
    yield from _disk_problems(vm_class, path)
    yield from _flavor_problems(vm_class, path)


def _pinned_problems(
    policy: Policy, vm_class: VMClass, path: KeyPath
) -> Iterator[Problem]:
    if vm_class.vcpus is None:
        yield Problem(
            (*path, "vcpus"),
            "missing: a class with cpu_policy: dedicated needs its exact number of "
            "vCPUs, such as vcpus: 20",
        )
        return
    split = even_share(vm_class.vcpus, vm_class.cells_per_vm) is not None
    if split and not any(shape_slots(vm_class, shape) for shape in policy.host_shapes):
        shapes = ", ".join(str(shape) for shape in policy.host_shapes)
        if vm_class.emulator_threads == "isolate" and any(
            shape.cells >= vm_class.cells_per_vm
            and shape.cell_cpus(vm_class.smt) >= vm_class.cell_vcpus
            for shape in policy.host_shapes
        ):
            yield Problem(
                (*path, "emulator_threads"),
                f"isolate takes one CPU more on the VM's own NUMA node, "
                f"{vm_class.cell_pcpus} in all, and no node of {shapes} has that "
                "many: use share, or null",
            )
        else:
            yield Problem(
                (*path, "vcpus"),
                f"a VM needs {vm_class.cell_pcpus} CPUs on each of "
                f"{vm_class.cells_per_vm} NUMA node(s), and no host of {shapes} "
                "offers that: change vcpus, numa_nodes or host_shape",
            )
    smt_hosts = any(shape.threads > 1 for shape in policy.host_shapes)
    if vm_class.cpu_thread_policy == "isolate" and smt_hosts:
        yield Problem(
            (*path, "cpu_thread_policy"),
            "isolate pins the sibling threads too and keeps Nova from SMT hosts that "
            "have cpu sets: use smt: cores with one thread per core in "
            "cpu_dedicated_set instead",
        )
    if vm_class.cpu_thread_policy == "require" and vm_class.smt == "cores":
        yield Problem(
            (*path, "cpu_thread_policy"),
            "require puts vCPUs on sibling threads, smt: cores promises each a core "
            "of its own: use smt: threads, or prefer",
        )


def _numa_problems(vm_class: VMClass, path: KeyPath) -> Iterator[Problem]:
    nodes, vcpus = vm_class.numa_nodes, vm_class.vcpus
    if nodes is not None and vcpus is not None and even_share(vcpus, nodes) is None:
        divisors = [str(n) for n in range(1, min(vcpus, 8) + 1) if vcpus % n == 0]
        yield Problem(
            (*path, "numa_nodes"),
            f"{vcpus} vCPUs cannot be split evenly over {nodes} NUMA nodes: expected "
            f"one of {', '.join(divisors)}",
        )
    if nodes is not None and vcpus is None:
        yield Problem(
            (*path, "numa_nodes"),
            f"{nodes} NUMA node(s) for VMs of any size: Nova refuses sizes that "
            "cannot be split: give the class its vcpus, or remove numa_nodes",
        )


def _former_problems(vm_class: VMClass, path: KeyPath) -> Iterator[Problem]:
    if vm_class.vcpus is None:
        # A pinned class without vcpus is a mistake of its own.
        if vm_class.former_vcpus and not vm_class.pinned:
            yield Problem(
                (*path, "former_vcpus"),
                "VMs of this class have any number of vCPUs, so none is a former "
                "one: remove it, or give the class its vcpus",
            )
        return
    for index, size in enumerate(vm_class.former_vcpus):
        where = (*path, "former_vcpus", str(index))
        if size == vm_class.vcpus:
            yield Problem(
                where, f"{size} is the size that VMs have today, its vcpus: remove it"
            )
        elif even_share(size, vm_class.cells_per_vm) is None:
            yield Problem(
                where,
                f"{size} vCPUs cannot be split evenly over {vm_class.cells_per_vm} "
                "NUMA nodes, so no VM of the class ever had them: remove it",
            )


def _default_class_problems(vm_class: VMClass, path: KeyPath) -> Iterator[Problem]:
    if not vm_class.default:
        return
    if vm_class.pinned:
        yield Problem(
            (*path, "default"),
            "the default class is that of flavors that are not pinned: it needs "
            "cpu_policy: shared",
        )
    elif vm_class.vcpus is not None:
        yield Problem(
            (*path, "vcpus"),
            f"the default class takes flavors of any size: expected null, not "
            f"{vm_class.vcpus}",
        )


def _disk_problems(vm_class: VMClass, path: KeyPath) -> Iterator[Problem]:
    disk = vm_class.disk
    if disk.source == "image":
        if disk.volume_type is not None:
            yield Problem(
                (*path, "disk", "volume_type"),
                f"{disk.volume_type!r} has no effect with source: image: remove it, "
                "or use source: volume",
            )
        if vm_class.flavors is not None:
            for index, size in enumerate(vm_class.flavors.sizes):
                if size.root_gb == 0:
                    yield Problem(
                        (*path, "flavors", "sizes", str(index), "root_gb"),
                        "0 GB with source: image: Nova lets only administrators "
                        "boot such flavors from an image; give a size, or use "
                        "source: volume",
                    )


def _flavor_problems(vm_class: VMClass, path: KeyPath) -> Iterator[Problem]:
    template = vm_class.flavors
    if template is None:
        return
    fault = name_pattern_fault(template.name)
    if fault is not None:
        yield Problem((*path, "flavors", "name"), fault)
        return
    for index, size in enumerate(template.sizes):
        where = (*path, "flavors", "sizes", str(index))
        if vm_class.vcpus is not None and size.vcpus != vm_class.vcpus:
            yield Problem(
                (*where, "vcpus"),
                f"{size.vcpus}, but VMs of this class have exactly {vm_class.vcpus}",
            )
        fault = memory_fault(vm_class, size.memory_gb)
        if fault is not None:
            yield Problem((*where, "memory_gb"), fault)
    names = [template.name_of(vm_class.name, size) for size in template.sizes]
    firsts: dict[str, int] = {}
    for index, name in enumerate(names):
        first = firsts.setdefault(name, index)
        if first != index:
            yield Problem(
                (*path, "flavors", "name"),
                f"sizes {first} and {index} would both be called {name!r}: use "
                "the fields that tell them apart, such as {memory_gb}",
            )
    for fault in filter(None, map(name_fault, names)):
        yield Problem((*path, "flavors", "name"), fault)
        break


def name_pattern_fault(pattern: str) -> str | None:
    """Return what is wrong with a flavor name pattern, None if nothing is."""
    expected = ", ".join(f"{{{name}}}" for name in sorted(_NAME_FIELDS))
    try:
        parts = list(string.Formatter().parse(pattern))
    except ValueError as exc:
        return f"{pattern!r}: {exc}; expected a name with fields of {expected}"
    for _, name, spec, conversion in parts:
        if name is not None and (name not in _NAME_FIELDS or spec or conversion):
            return (
                f"{pattern!r}: unknown field {{{name}}}; expected only {expected}, "
                "without a format"
            )
    return None


def _policy_problems(policy: Policy) -> Iterator[Problem]:
    defaults = [vm_class.name for vm_class in policy.classes if vm_class.default]
    if not defaults:
        yield Problem(
            ("classes",),
            "no class has default: true, so flavors that name no class would belong "
            "to none: give it to the class of general VMs",
        )
    for name in defaults[1:]:
        yield Problem(
            ("classes", name, "default"),
            f"{defaults[0]} is the default class already: leave true to one",
        )
    names: dict[str, str] = {}
    for vm_class in policy.classes:
        template = vm_class.flavors
        if template is None or name_pattern_fault(template.name) is not None:
            continue
        for size in template.sizes:
            name = template.name_of(vm_class.name, size)
            owner = names.setdefault(name, vm_class.name)
            if owner != vm_class.name:
                yield Problem(
                    ("classes", vm_class.name, "flavors", "name"),
                    f"{name!r} is a flavor of class {owner} already",
                )
    yield from placements.problems_of(policy)
    if len(policy.pinned_classes) > 1:
        yield from _custom_name_problems(policy)
    exclusive = [c.name for c in policy.pinned_classes if c.exclusive != "none"]
    if (
        exclusive
        and len(policy.pinned_classes) > 1
        and policy.managed_hosts != "labelled"
    ):
        pinned = ", ".join(c.name for c in policy.pinned_classes)
        yield Problem(
            ("managed_hosts",),
            f"{policy.managed_hosts}, but the pinned classes {pinned} cannot be told "
            f"apart by the CPUs they pin, and {', '.join(exclusive)} must not meet "
            "another: use labelled, and reserve hosts for each class by aggregate "
            "metadata perfvm:class",
        )


def _custom_name_problems(policy: Policy) -> Iterator[Problem]:
    """Say which pinned classes would share the names of their slots and traits."""
    owners: dict[str, str] = {}
    for vm_class in policy.pinned_classes:
        path, name = ("classes", vm_class.name), vm_class.custom_name
        owner = owners.setdefault(name, vm_class.name)
        if owner != vm_class.name:
            yield Problem(
                path,
                f"is {const.RC_SLOT}_{name} to Placement, as class {owner} is: give "
                "one of them another name",
            )
        if name.startswith(_PROJECT_NAMES):
            yield Problem(
                path,
                f"would make {const.CUSTOM_PREFIX}{name}, which is a name of elastic "
                "hosts: give the class another name",
            )

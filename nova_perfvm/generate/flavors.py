# SPDX-License-Identifier: Apache-2.0
"""A policy's flavors with all their extra specs, and its images' properties."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from nova_perfvm import constants as const
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.properties import BUILT_IN, Properties, combine, merge
from nova_perfvm.placement.contract import contract
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import FlavorSize, FlavorTemplate, memory_fault, name_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nova_perfvm.generate.properties import Generator
    from nova_perfvm.policy import Policy, VMClass

# For a class whose policy lists no flavors, when sizes are given.
_NAME_PATTERN: Final = "{class}.{vcpus}c.{memory_gb}g"

_NO_FLAVORS: Final = FlavorTemplate(_NAME_PATTERN, ())

# Extra specs that ask Placement for a custom name, which is group 2.
_ASKS: Final = re.compile(r"(resources|trait)[A-Za-z0-9_-]*:(CUSTOM_[A-Z0-9_]+)")

# What Nova's API takes: sizes up to 2^31 - 1.
_MAX_MEMORY_GB: Final = (2**31 - 1) // 1024


class FlavorError(PerfVMError):
    """Flavors that were asked for and cannot be made."""


@dataclass(frozen=True, slots=True)
class PolicyFlavor:
    """One flavor as it is to be created.

    :ivar class_name: the policy's class that it belongs to
    :ivar memory_mb: memory in MiB
    :ivar root_gb: root disk in GiB; 0 for VMs that boot from a volume
    :ivar extra_specs: in alphabetical order of the keys
    """

    name: str
    class_name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    extra_specs: Mapping[str, str]


def properties_of(
    policy: Policy,
    vm_class: VMClass,
    generators: Mapping[str, Generator] = BUILT_IN,
    *,
    memory_mb: int = 0,
    isolated_aggregates: bool = False,
) -> Properties:
    """Return the extra specs of a class's flavor and the properties of its images.

    :param generators: see :func:`nova_perfvm.generate.properties.combine`, also for
        the errors
    :param memory_mb: of the flavor
    :param isolated_aggregates: see :func:`generate_flavors`
    """
    carried = contract(policy, vm_class, memory_mb).extra_specs(
        isolated_aggregates=isolated_aggregates
    )
    # These two are the policy's own, whatever generators an operator has.  The
    # default class is named, too, so that a flavor shows what it is.
    own: dict[str, Generator] = {
        "perfvm": lambda *_: Properties({const.CLASS_KEY: vm_class.name}),
        "placement": lambda *_: Properties(carried),
    }
    return combine(own | dict(generators), policy, vm_class)


def classes_of(policy: Policy, name: str | None) -> tuple[VMClass, ...]:
    """Return the class of a name, or all classes.

    :raises UnknownClassError: when the policy has no class of that name
    """
    return policy.classes if name is None else (policy.get_class(name),)


def generate_image_properties(
    policy: Policy,
    *,
    class_name: str | None = None,
    generators: Mapping[str, Generator] = BUILT_IN,
) -> dict[str, str]:
    """Return the properties of an image for one class, or for all at once.

    :raises UnknownClassError: when the policy has no class of that name
    :raises PropertiesConflictError: when no image can serve all classes
    """
    return merge(
        "image property",
        {
            f"class {vm_class.name}": properties_of(policy, vm_class, generators).image
            for vm_class in classes_of(policy, class_name)
        },
    )


def generate_flavors(
    policy: Policy,
    *,
    class_name: str | None = None,
    memory_gb: Sequence[int] | None = None,
    prefix: str = "",
    isolated_aggregates: bool = False,
    generators: Mapping[str, Generator] = BUILT_IN,
) -> tuple[PolicyFlavor, ...]:
    """Return the flavors that the policy lists, in its order.

    :param class_name: only those of this class
    :param memory_gb: flavors of these sizes in GiB instead of the listed ones;
        for classes with an exact number of vCPUs, others are left out
    :param prefix: put before each name
    :param isolated_aggregates: for clouds whose other flavors cannot be changed:
        an isolated aggregate keeps VMs that share CPUs off hosts with slots, so
        flavors need not forbid the trait
    :raises UnknownClassError: when the policy has no class of that name
    :raises FlavorError: when a size or a name is none that Nova takes, names
        are not distinct, there is nothing to make, or the policy has no slots
        for the aggregates to isolate
    """
    if isolated_aggregates and not scheme_of(policy).isolates:
        raise FlavorError(
            "isolated aggregates are for hosts with slots, and the policy says "
            f"placement: {policy.placement}: leave --isolated-aggregates out"
        )
    classes = classes_of(policy, class_name)
    if memory_gb is not None:
        classes = tuple(_resized(classes, memory_gb))
    flavors: list[PolicyFlavor] = []
    for vm_class in classes:
        template = vm_class.flavors or _NO_FLAVORS
        for size in template.sizes:
            given = properties_of(
                policy,
                vm_class,
                generators,
                memory_mb=size.memory_gb * 1024,
                isolated_aggregates=isolated_aggregates,
            )
            flavors.append(
                PolicyFlavor(
                    name=prefix + template.name_of(vm_class.name, size),
                    class_name=vm_class.name,
                    vcpus=size.vcpus,
                    memory_mb=size.memory_gb * 1024,
                    root_gb=size.root_gb,
                    extra_specs=given.flavor,
                )
            )
    if not flavors:
        which = "the policy" if class_name is None else f"class {class_name!r}"
        raise FlavorError(
            f"{which} has no flavors of such sizes: add them to the policy's class"
        )
    _check_names(flavors)
    return tuple(flavors)


def placement_names(flavors: Iterable[PolicyFlavor]) -> list[tuple[str, str]]:
    """Return (kind, name) of the custom traits and resource classes asked for, sorted.

    Placement answers 400 to a request that names one it does not know, even
    where the request forbids it.
    """
    found = set()
    for flavor in flavors:
        for key in flavor.extra_specs:
            asked = _ASKS.fullmatch(key)
            if asked:
                kind = "trait" if asked[1] == "trait" else "resource class"
                found.add((kind, asked[2]))
    return sorted(found)


def _resized(classes: Sequence[VMClass], memory_gb: Sequence[int]) -> Iterator[VMClass]:
    """Yield the classes that have an exact number of vCPUs, with these sizes."""
    for vm_class in classes:
        if vm_class.vcpus is None:
            continue
        template = vm_class.flavors or _NO_FLAVORS
        for gigabytes in memory_gb:
            fault = memory_fault(vm_class, gigabytes)
            if not 1 <= gigabytes <= _MAX_MEMORY_GB:
                fault = f"{gigabytes} GiB of memory: expected 1 to {_MAX_MEMORY_GB}"
            if fault is not None:
                raise FlavorError(f"class {vm_class.name}: {fault}")
        root_gb = template.sizes[0].root_gb if template.sizes else 0
        sizes = tuple(
            FlavorSize(vm_class.vcpus, gigabytes, root_gb)
            for gigabytes in dict.fromkeys(memory_gb)
        )
        yield replace(vm_class, flavors=replace(template, sizes=sizes))


def _check_names(flavors: Sequence[PolicyFlavor]) -> None:
    seen: set[str] = set()
    for flavor in flavors:
        fault = name_fault(flavor.name)
        if flavor.name in seen:
            fault = (
                f"two flavors would be called {flavor.name!r}: a field tells them "
                "apart, such as {memory_gb}"
            )
        if fault is not None:
            raise FlavorError(f"{fault}; change the prefix or the policy's flavor name")
        seen.add(flavor.name)

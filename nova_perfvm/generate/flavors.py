# SPDX-License-Identifier: Apache-2.0
"""Generate a policy's flavors with their extra specs, and its images' properties."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from nova_perfvm import constants as const
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.properties import Properties, combine, extensions, merge
from nova_perfvm.generate.properties.declared import declared
from nova_perfvm.placement.contract import contract
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import FlavorSize, FlavorTemplate, name_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nova_perfvm.generate.properties import Generator
    from nova_perfvm.policy import Policy, VMClass

# Flavor names of a class without flavors in the policy, when --memory-gb gives sizes.
_NAME_PATTERN: Final = "{class}.{vcpus}c.{memory_gb}g"

_NO_FLAVORS: Final = FlavorTemplate(_NAME_PATTERN, ())

# Extra specs that name a custom trait or resource class; the name is group 2.
_ASKS: Final = re.compile(r"(resources|trait)[A-Za-z0-9_-]*:(CUSTOM_[A-Z0-9_]+)")

# Nova's API takes memory up to 2^31 - 1 MiB.
_MAX_MEMORY_GB: Final = (2**31 - 1) // 1024


class FlavorError(PerfVMError):
    """Requested flavors that cannot be generated."""


@dataclass(frozen=True, slots=True)
class PolicyFlavor:
    """A flavor that the policy generates.

    :ivar class_name: name of the flavor's class
    :ivar memory_mb: memory in MiB
    :ivar root_gb: root disk in GiB; 0 for VMs that boot from a volume
    :ivar extra_specs: extra specs, sorted by key
    :ivar own_specs: the extra specs that the policy adds to this flavor alone
    """

    name: str
    class_name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    extra_specs: Mapping[str, str]
    own_specs: Mapping[str, str] = field(default_factory=dict)


def properties_of(
    policy: Policy,
    vm_class: VMClass,
    *,
    memory_mb: int = 0,
    isolated_aggregates: bool = False,
    extra_specs: Mapping[str, str] | None = None,
) -> Properties:
    """Return the extra specs of a class's flavor and the properties of its images.

    All installed generators add to them, built-in ones and those of other packages.

    :param memory_mb: the flavor's memory in MiB
    :param isolated_aggregates: see :func:`generate_flavors`
    :param extra_specs: the flavor's own extra specs, in place of the class's
    :raises PropertiesConflictError: when two generators give one key different values
    :raises PropertiesError: when a generator cannot be loaded, fails, or returns a key
        or value that is no printable text
    """
    carried = contract(policy, vm_class, memory_mb).extra_specs(
        isolated_aggregates=isolated_aggregates
    )
    # The class's name and Placement's extra specs come from the policy, whatever
    # generators are installed.  Flavors of the default class name it, too, so that
    # every generated flavor shows its class.
    own: dict[str, Generator] = {
        "perfvm": lambda *_: Properties({const.CLASS_KEY: vm_class.name}),
        "placement": lambda *_: Properties(carried),
        "class": declared,
        "extra_specs": lambda *_: Properties(
            {**vm_class.extra_specs, **(extra_specs or {})}, vm_class.image_properties
        ),
    }
    return combine(own | extensions.load_generators(), policy, vm_class)


def classes_of(policy: Policy, name: str | None) -> tuple[VMClass, ...]:
    """Return the named class, or all classes for None.

    :raises UnknownClassError: when the policy has no class of that name
    """
    return policy.classes if name is None else (policy.get_class(name),)


def generate_image_properties(
    policy: Policy,
    *,
    class_name: str | None = None,
) -> dict[str, str]:
    """Return the properties of an image that serves one class, or all classes.

    :raises UnknownClassError: when the policy has no class of that name
    :raises PropertiesConflictError: when classes or generators contradict each other
    :raises PropertiesError: see :func:`properties_of`
    """
    return merge(
        "image property",
        {
            f"class {vm_class.name}": properties_of(policy, vm_class).image
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
) -> tuple[PolicyFlavor, ...]:
    """Return the policy's flavors, in the policy's order.

    :param class_name: generate the flavors of this class only
    :param memory_gb: memory sizes in GiB instead of the policy's; classes without a
        fixed number of vCPUs are then left out
    :param prefix: prefix of each flavor's name
    :param isolated_aggregates: whether general flavors omit the forbidden trait of
        hosts with slots, as an isolated aggregate keeps their VMs off these hosts
    :raises UnknownClassError: when the policy has no class of that name
    :raises FlavorError: when a size or a name is not allowed, names are not distinct,
        no flavor is left, or the policy has no slots for the aggregates to isolate
    :raises PropertiesError: see :func:`properties_of`, as for PropertiesConflictError
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
                memory_mb=size.memory_gb * 1024,
                isolated_aggregates=isolated_aggregates,
                extra_specs=size.extra_specs,
            )
            flavors.append(
                PolicyFlavor(
                    name=prefix + template.name_of(vm_class.name, size),
                    class_name=vm_class.name,
                    vcpus=size.vcpus,
                    memory_mb=size.memory_gb * 1024,
                    root_gb=size.root_gb,
                    extra_specs=given.flavor,
                    own_specs=size.extra_specs,
                )
            )
    if not flavors:
        which = "the policy" if class_name is None else f"class {class_name!r}"
        raise FlavorError(
            f"{which} lists no flavors of these sizes: add them to the policy's class"
        )
    _check_names(flavors)
    return tuple(flavors)


def placement_names(flavors: Iterable[PolicyFlavor]) -> list[tuple[str, str]]:
    """Return (kind, name) of the flavors' custom traits and resource classes, sorted.

    Placement answers 400 to a request with an unknown trait or resource class, even if
    the request forbids the trait.
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
    """Yield the classes with a fixed number of vCPUs, with flavors of these sizes.

    :raises FlavorError: when a class takes no flavor of a size
    """
    for vm_class in classes:
        if vm_class.vcpus is None:
            continue
        template = vm_class.flavors or _NO_FLAVORS
        for gigabytes in memory_gb:
            fault = vm_class.memory_fault(gigabytes)
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
    """Refuse a name of two flavors, and a name that no flavor can have.

    :raises FlavorError: names the flavor
    """
    seen: set[str] = set()
    for flavor in flavors:
        fault = name_fault(flavor.name)
        if flavor.name in seen:
            fault = (
                f"two flavors would be called {flavor.name!r}: add a field that "
                "differs, such as {memory_gb}"
            )
        if fault is not None:
            raise FlavorError(f"{fault}; change the prefix or the policy's flavor name")
        seen.add(flavor.name)

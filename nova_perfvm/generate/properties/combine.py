# SPDX-License-Identifier: Apache-2.0
"""Properties of a class from each generator, and from all together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.policy import Policy, VMClass

_REMEDY = "mend or uninstall the package that it comes from"


class PropertiesError(PerfVMError):
    """A generator that cannot be used; ``generator`` names it."""

    def __init__(self, generator: str, fault: str, remedy: str = _REMEDY) -> None:
        """Say whose fault it is, and what to do."""
        self.generator = generator
        self.fault = fault
        super().__init__(f"properties extension {generator} {fault}: {remedy}")


class PropertiesConflictError(PerfVMError):
    """One key with different values; ``values`` has them by who gave them."""

    def __init__(self, kind: str, key: str, values: Mapping[str, str]) -> None:
        """Name the key and both sides."""
        self.key = key
        self.values = dict(values)
        sides = " and ".join(f"{value!r} from {name}" for name, value in values.items())
        super().__init__(
            f"{kind} {key} has contradicting values: {sides}; one of them must go"
        )


@dataclass(frozen=True, slots=True)
class Properties:
    """Extra specs of a class's flavors and properties of its images.

    :ivar flavor: extra specs, such as ``{"hw:cpu_policy": "dedicated"}``
    :ivar image: image properties, such as ``{"hw_vif_model": "virtio"}``
    """

    flavor: Mapping[str, str] = field(default_factory=dict)
    image: Mapping[str, str] = field(default_factory=dict)


Generator: TypeAlias = "Callable[[Policy, VMClass], Properties]"


def combine(
    generators: Mapping[str, Generator], policy: Policy, vm_class: VMClass
) -> Properties:
    """Return what all generators say about a class, keys in alphabetical order.

    :param generators: by the name under which errors speak of them
    :raises PropertiesConflictError: when two of them give one key different
        values
    :raises PropertiesError: when one fails, or gives anything but texts
    """
    said = {
        name: _ask(name, generate, policy, vm_class)
        for name, generate in generators.items()
    }
    flavors = {name: given.flavor for name, given in said.items()}
    images = {name: given.image for name, given in said.items()}
    return Properties(
        flavor=merge("extra spec", flavors), image=merge("image property", images)
    )


def merge(kind: str, sources: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the keys of all sources, in alphabetical order.

    :param kind: what the keys are, for the error
    :param sources: mappings by the name under which the error speaks of them
    :raises PropertiesConflictError: when two give one key different values
    """
    merged: dict[str, str] = {}
    owners: dict[str, str] = {}
    for name, mapping in sources.items():
        for key, value in mapping.items():
            owner = owners.setdefault(key, name)
            if merged.setdefault(key, value) != value:
                raise PropertiesConflictError(
                    kind, key, {owner: merged[key], name: value}
                )
    return dict(sorted(merged.items()))


def _ask(
    name: str, generate: Generator, policy: Policy, vm_class: VMClass
) -> Properties:
    try:
        given = generate(policy, vm_class)
    except Exception as exc:
        # Other people's code: whatever it raises is its fault, and the name
        # says whose.
        message = f"failed for class {vm_class.name!r}: {type(exc).__name__}: {exc}"
        raise PropertiesError(name, message) from exc
    if not isinstance(given, Properties):
        raise PropertiesError(
            name, f"returned {type(given).__name__}, expected {Properties.__name__}"
        )
    for mapping in (given.flavor, given.image):
        if not isinstance(mapping, Mapping):
            raise PropertiesError(
                name, f"gave {type(mapping).__name__} for properties, expected a dict"
            )
        for key, value in mapping.items():
            _check(name, key, value)
    return given


def _check(name: str, key: object, value: object) -> None:
    """Refuse what Nova or Glance would store as something else, or not at all."""
    if not isinstance(key, str) or not key.isprintable() or set(key) & set("= "):
        raise PropertiesError(name, f"gave the key {key!r}, expected a word without =")
    if not isinstance(value, str) or not value or not value.isprintable():
        raise PropertiesError(
            name, f"gave {key}={value!r}, expected a printable text that is not empty"
        )

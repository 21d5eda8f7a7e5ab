# SPDX-License-Identifier: Apache-2.0
"""Combine the properties that generators return for a class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.policy import Policy, VMClass


class PropertiesError(PerfVMError):
    """A generator that cannot be loaded, fails, or returns invalid properties.

    :ivar generator: the generator's name
    """

    def __init__(self, generator: str, fault: str) -> None:
        """Name the generator, its fault and the remedy."""
        self.generator = generator
        super().__init__(
            f"properties extension {generator} {fault}: repair or uninstall the "
            "extension's package"
        )


class PropertiesConflictError(PerfVMError):
    """Different values of one key.

    :ivar key: the extra spec or image property
    :ivar values: its values by the generator or class that gave them
    """

    def __init__(self, kind: str, key: str, values: Mapping[str, str]) -> None:
        """Name the key, and both values with their sources."""
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
    """Return the properties of a class from all generators, sorted by key.

    :param generators: generators by their names in error messages
    :raises PropertiesConflictError: when two generators give one key different values
    :raises PropertiesError: when a generator fails, or returns a key or value that is
        no printable text
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
    """Return the union of mappings, sorted by key.

    :param kind: title of the keys in error messages, such as "extra spec"
    :param sources: mappings by their names in error messages
    :raises PropertiesConflictError: when two mappings give one key different values
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
        pairs = [*given.flavor.items(), *given.image.items()]
    except Exception as exc:
        # Generators of other packages may raise anything: name the generator.
        message = f"failed for class {vm_class.name!r}: {type(exc).__name__}: {exc}"
        raise PropertiesError(name, message) from exc
    for key, value in pairs:
        # Nova and Glance would change or drop other keys and values.
        if not _is_text(key) or not _is_text(value) or set(key) & set("= "):
            raise PropertiesError(
                name, f"gave {key!r}={value!r}, expected a word and a printable text"
            )
    return given


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable()

# SPDX-License-Identifier: Apache-2.0
"""Properties of a class from each generator, and from all together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.policy import Policy, VMClass


class PropertiesError(PerfVMError):
    """A generator that cannot be used; ``generator`` names it."""

    def __init__(self, generator: str, fault: str) -> None:
        """Say whose fault it is, and what to do."""
        self.generator = generator
        super().__init__(
            f"properties extension {generator} {fault}: mend or uninstall the package "
            "that it comes from"
        )


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
        pairs = [*given.flavor.items(), *given.image.items()]
    except Exception as exc:
        # Other people's code: whatever it raises is its fault, and the name
        # says whose.
        message = f"failed for class {vm_class.name!r}: {type(exc).__name__}: {exc}"
        raise PropertiesError(name, message) from exc
    for key, value in pairs:
        # Nova or Glance would store anything else otherwise, or not at all.
        if not _is_text(key) or not _is_text(value) or set(key) & set("= "):
            raise PropertiesError(
                name, f"gave {key!r}={value!r}, expected a word and a printable text"
            )
    return given


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable()

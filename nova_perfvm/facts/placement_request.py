# SPDX-License-Identifier: Apache-2.0
"""Read the resources and traits of a flavor and an image, as Nova reads them.

Nova silently ignores a malformed key, such as one with a blank, a colon too many or a
suffix of more than 64 characters: the VM then runs without the claim (``XS_KEYPAT`` of
nova.scheduler.utils.ResourceRequest).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.facts import AskedResource, AskedTrait

_KEY: Final = re.compile(r"^(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)$")
# The suffixes of keys that pin vCPUs: nova.virt.hardware reads no other ones.
NUMERIC_SUFFIX: Final = "([1-9][0-9]*)?"
_ELASTIC: Final = re.compile(rf"{const.TRAIT_ELASTIC}_[0-9]+|{const.TRAIT_CELLS}")
# Fits no column of Nova's and Placement's databases.
_TOO_LARGE: Final = 10**18
# Stands for an amount that Nova refuses: no contract has it.
_NO_AMOUNT: Final = -1


@dataclass(frozen=True)
class Group:
    """One group of a request to Placement.

    :ivar suffix: empty for the unsuffixed group, whose resources may come from several
        providers; all resources of a suffixed group come from one provider
    :ivar resources: {resource class: amount}
    :ivar required: traits that the providers must have
    :ivar forbidden: traits that the providers must not have
    """

    suffix: str
    resources: Mapping[str, int]
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()


def read(
    extra_specs: Mapping[str, str], image_traits: Iterable[str] = ()
) -> tuple[tuple[AskedResource, ...], tuple[AskedTrait, ...]]:
    """Return the resources and the traits that flavor and image name.

    :param image_traits: traits that the image requires; an image cannot forbid any
    """
    resources, traits = [], []
    for key, value in extra_specs.items():
        match = _KEY.match(key)
        if match is None:
            continue
        kind, group, name = match[1], match[2] or "", match[3]
        if kind == "resources":
            resources.append(AskedResource(group, name, _amount(value)))
        else:
            traits.append(AskedTrait(group, name, value, "flavor"))
    traits += [AskedTrait("", name, "required", "image") for name in image_traits]
    return tuple(resources), tuple(traits)


def grouped(
    resources: Iterable[AskedResource], traits: Iterable[AskedTrait]
) -> tuple[Group, ...]:
    """Return one group for each suffix; the group without a suffix is always first."""
    amounts: dict[str, dict[str, int]] = {"": {}}
    states: dict[tuple[str, str], set[str]] = {}
    for suffix, name, amount in resources:
        amounts.setdefault(suffix, {})[name] = amount
    for suffix, name, state, _ in traits:
        amounts.setdefault(suffix, {})
        states.setdefault((suffix, state), set()).add(name)
    return tuple(
        Group(
            suffix,
            amounts[suffix],
            required=frozenset(states.get((suffix, "required"), ())),
            forbidden=frozenset(states.get((suffix, "forbidden"), ())),
        )
        for suffix in sorted(amounts)
    )


def required_traits(keys: Mapping[str, str]) -> frozenset[str]:
    """Return the traits that extra specs, an image or an aggregate require.

    Traits of suffixed groups of a flavor are left out.
    """
    return frozenset(
        key.removeprefix("trait:")
        for key, value in keys.items()
        if key.startswith("trait:") and value == "required"
    )


def elastic_traits(names: Iterable[str]) -> frozenset[str]:
    """Return the traits of enrolled hosts among `names`."""
    return frozenset(name for name in names if _ELASTIC.fullmatch(name))


def isolating_traits(metadata: Iterable[Mapping[str, str]]) -> frozenset[str]:
    """Return the traits of enrolled hosts that aggregates require of a request.

    :param metadata: metadata of each aggregate of a host
    """
    return elastic_traits(trait for keys in metadata for trait in required_traits(keys))


def whole_number(text: str) -> int | None:
    """Return the integer value of a text; None if Nova cannot use it.

    nova-api and the scheduler call ``int``, which takes blanks around digits, and "+1".
    """
    try:
        found = int(text)
    except ValueError:
        return None
    return found if 0 <= found < _TOO_LARGE else None


def _amount(text: str) -> int:
    """Return the amount that a flavor names; ``_NO_AMOUNT`` if Nova refuses it."""
    found = whole_number(text)
    return _NO_AMOUNT if found is None else found

# SPDX-License-Identifier: Apache-2.0
"""Read what a flavor and an image ask of Placement, as Nova reads it.

Nova passes over a key that does not match in silence: a blank, a colon too many
or a suffix of more than 64 characters, and the VM runs without the claim
(``XS_KEYPAT`` of nova.scheduler.utils.ResourceRequest).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nova_perfvm import constants as const
from nova_perfvm.facts import AskedResource, AskedTrait

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_KEY: Final = re.compile(r"^(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)$")
_ISOLATING: Final = f"trait:{const.TRAIT_ELASTIC}"
# An amount that Nova refuses fulfils no contract.
_NO_AMOUNT: Final = -1


def read(
    extra_specs: Mapping[str, str], image_traits: Iterable[str] = ()
) -> tuple[tuple[AskedResource, ...], tuple[AskedTrait, ...]]:
    """Return the resources and the traits that a request names.

    :param image_traits: traits that the image requires; it can name no others
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


def image_traits(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the traits that an image requires, from its properties in Glance."""
    return tuple(
        key.removeprefix("trait:")
        for key, value in properties.items()
        if key.startswith("trait:") and value == "required"
    )


def isolating_traits(metadata: Iterable[Mapping[str, str]]) -> frozenset[str]:
    """Return the project's traits that aggregates keep requests without off by.

    :param metadata: of each aggregate of a host
    """
    return frozenset(
        key.removeprefix("trait:")
        for found in metadata
        for key, value in found.items()
        if key.startswith(_ISOLATING) and value == "required"
    )


def _amount(text: str) -> int:
    return int(text) if text.isdecimal() else _NO_AMOUNT

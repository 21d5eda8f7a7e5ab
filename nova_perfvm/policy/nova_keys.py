# SPDX-License-Identifier: Apache-2.0
"""Nova's extra specs and image properties, and the values that Nova takes for them.

The table is made of Nova's validators (nova.api.validation.extra_specs) and of the
fields of ImageMetaProps, for machines without Nova.  Where Nova is installed,
:mod:`nova_perfvm.cloud.nova_rules` asks Nova itself.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Final, Literal

import os_resource_classes
import os_traits
from oslo_utils import strutils, versionutils

Kind = Literal["extra_specs", "image_properties"]

_GROUP: Final = r"(?:[a-zA-Z0-9_-]{1,64})?"
_TRAIT: Final = re.compile(rf"trait{_GROUP}:(.*)")
_RESOURCE: Final = re.compile(rf"resources{_GROUP}:(.*)")
_CUSTOM: Final = re.compile(r"CUSTOM_[A-Z0-9_]+")
# {type: (function that raises ValueError for other texts, the expectation)}
_TYPES: Final[Mapping[str, tuple[Callable[[str], Any], str]]] = {
    "bool": (
        functools.partial(strutils.bool_from_string, strict=True),
        "true or false",
    ),
    "int": (int, "a whole number"),
    "versions": (versionutils.VersionPredicate, "versions, such as >=2.6"),
}


@functools.cache
def table() -> dict[str, dict[str, dict[str, Any]]]:
    """Return {kind: {name: type, limits, legacy name, release that has it first}}."""
    # Facts and rules load without yaml.
    import yaml  # noqa: PLC0415

    text = files(__package__).joinpath("nova_keys.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text) or {}


def fault(kind: Kind, key: str, value: str) -> str | None:
    """Return why Nova refuses a key or its value, or drops a property; else None."""
    if kind == "image_properties":
        takes = table()[kind].get(key)
        if takes is None and not _TRAIT.fullmatch(key):
            return _unread(key)
        return _misfit(takes or {"values": ["required"]}, value)
    for pattern, names, takes in (
        (_TRAIT, os_traits.get_traits(), {"values": ["required", "forbidden"]}),
        (_RESOURCE, os_resource_classes.STANDARDS, {"type": "int"}),
    ):
        if asked := pattern.fullmatch(key):
            known = asked[1] in names or bool(_CUSTOM.fullmatch(asked[1]))
            return _misfit(takes, value) if known else _unknown(key)
    for name, takes in table()[kind].items():
        if re.fullmatch(takes.get("name", re.escape(name)), key):
            return _misfit(takes, value)
    namespace, colon, _ = key.partition(":")
    # Nova refuses unknown keys of its namespaces only.
    is_novas = any(name.startswith(f"{namespace}:") for name in table()[kind])
    return _unknown(key) if colon and is_novas else None


def since(kind: Kind, key: str) -> int | None:
    """Return the first Nova that has a key, None if all supported releases have it."""
    return table()[kind].get(key, {}).get("since")


def _unknown(key: str) -> str:
    return f"Nova has no extra spec {key}"


def _unread(key: str) -> str:
    """Return why Nova does not read an image property by this name."""
    for name, takes in table()["image_properties"].items():
        if takes.get("legacy") == key:
            return f"Nova reads it as {name}: write that"
    return "Nova reads no such image property"


def _misfit(takes: Mapping[str, Any], value: str) -> str | None:
    """Return the values that Nova expects; None if Nova accepts `value`."""
    if "values" in takes:
        words = f"expected one of {', '.join(takes['values'])}"
        return None if value in takes["values"] else words
    if "pattern" in takes:
        fits = re.fullmatch(takes["pattern"], value)
        return None if fits else f"expected the form {takes['pattern']}"
    if takes.get("type") not in _TYPES:
        return None
    read, words = _TYPES[takes["type"]]
    try:
        number = read(value)
    except ValueError:
        return f"expected {words}"
    if takes["type"] == "int":
        least, most = takes.get("min"), takes.get("max")
        if (least is not None and number < least) or (
            most is not None and number > most
        ):
            return f"expected a whole number from {least} to {most or 'any'}"
    return None

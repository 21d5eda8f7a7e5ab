# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of the policy file, and what it says about a mistake."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, cast

import os_traits

from nova_perfvm import constants as const
from nova_perfvm.exceptions import Problem
from nova_perfvm.policy import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jsonschema.exceptions import ValidationError

SHAPE_PATTERN = r"^\s*[1-9]\d{0,3}x[1-9]\d{0,3}(x[1-9]\d?)?\s*$"
# Keys that there were, and what to do about them.
_REMOVED: dict[tuple[str, ...], str] = {
    ("elastic", "units"): (
        f"no key any more: every child provider has {const.UNITS_PER_CHILD} units. "
        "Remove it; a cloud with elastic hosts then needs openstack perfvm flavor "
        "sync, and openstack perfvm host enroll for each of them"
    ),
}
# \Z: $ would let a newline follow.
_CLASS_NAME_PATTERN = r"^[a-z][a-z0-9_-]{0,62}\Z"
_MOST_SHOWN = 200


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Let null, which means "not set", stand for any value."""
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], None]}
    return schema | {"type": [schema["type"], "null"]}


def _count(minimum: int, maximum: int, unit: str) -> dict[str, Any]:
    return {
        "type": "integer",
        "minimum": minimum,
        "maximum": maximum,
        "description": f"a whole number of {unit} from {minimum} to {maximum}",
    }


def _choice(*values: str) -> dict[str, Any]:
    return {"enum": list(values)}


def _mapping(
    properties: dict[str, Any], required: Iterable[str] = ()
) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        "description": f"a mapping with the keys {', '.join(properties)}",
    }


_SHAPE = {
    "type": "string",
    "pattern": SHAPE_PATTERN,
    "description": "NUMA nodes x cores per node [x threads per core], such as 2x20",
}
_SWITCH = {"type": "boolean", "description": "true or false"}
_TEXT = {"type": "string", "minLength": 1, "maxLength": 255, "description": "a name"}
_TRAIT = {
    "type": "string",
    "anyOf": [
        {"enum": os_traits.get_traits()},
        {"pattern": rf"^CUSTOM_(?!{const.NAMESPACE.upper()}_)[A-Z0-9_]{{1,248}}\Z"},
    ],
    "description": (
        "a trait that os-traits has, such as HW_NIC_SRIOV, or one of your own that "
        f"begins with CUSTOM_ and not with {const.CUSTOM_PREFIX}"
    ),
}
_VCPUS = _count(1, 4096, "vCPUs")
_MEMORY = _count(1, 1048576, "GiB")
_ROOT = _count(0, 1048576, "GiB")
_IOPS = _count(1, 2147483647, "I/O operations per second")

_FLAVORS = _mapping(
    {
        "name": _TEXT,
        "memory_gb": {
            "type": "array",
            "items": _MEMORY,
            "minItems": 1,
            "uniqueItems": True,
            "description": "a list of memory sizes in GiB, such as [64, 128]",
        },
        "root_gb": _ROOT,
        "sizes": {
            "type": "array",
            "minItems": 1,
            "items": _mapping(
                {"vcpus": _VCPUS, "memory_gb": _MEMORY, "root_gb": _ROOT},
                required=("vcpus", "memory_gb", "root_gb"),
            ),
            "description": "a list of {vcpus, memory_gb, root_gb}",
        },
    },
    required=("name",),
)

_CLASS = _mapping(
    {
        "default": _SWITCH,
        "vcpus": _nullable(_VCPUS),
        "former_vcpus": {
            "type": "array",
            "items": _VCPUS,
            "uniqueItems": True,
            "description": "a list of numbers of vCPUs, such as [20]",
        },
        "cpu_policy": _choice("dedicated", "shared"),
        "cpu_thread_policy": _nullable(_choice("prefer", "require", "isolate")),
        "smt": _choice("cores", "threads"),
        "emulator_threads": _nullable(_choice("share", "isolate")),
        "numa_nodes": _nullable(_count(1, 64, "NUMA nodes")),
        "max_per_host": _nullable(_count(1, 4096, "VMs")),
        "exclusive": _choice("host", "cell", "none"),
        "vif_multiqueue": _SWITCH,
        "mem_page_size": _nullable(_choice("small", "large", "2MB", "1GB")),
        "host_traits": {
            "type": "array",
            "items": _TRAIT,
            "uniqueItems": True,
            "description": "a list of traits, such as [HW_NIC_SRIOV]",
        },
        "disk": _mapping(
            {
                "source": _choice("volume", "image"),
                "volume_type": _nullable(_TEXT),
                "read_iops": _nullable(_IOPS),
                "write_iops": _nullable(_IOPS),
            }
        ),
        "flavors": _FLAVORS,
    }
)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "perfvm.yaml",
    **_mapping(
        {
            "schema_version": {
                "enum": [SCHEMA_VERSION],
                "description": f'"{SCHEMA_VERSION}", in quotes',
            },
            "host_shape": {
                "anyOf": [
                    _SHAPE,
                    {"type": "array", "items": _SHAPE, "minItems": 1},
                ],
                "description": f"{_SHAPE['description']}, or a list of such",
            },
            "placement": _choice("slots", "units", "none"),
            "managed_hosts": _choice("all", "labelled"),
            "classes": {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": _CLASS,
                "propertyNames": {"pattern": _CLASS_NAME_PATTERN},
                "description": "a mapping of class names to classes",
            },
            "elastic": _mapping(
                {"slots": _nullable(_count(1, len(const.CHILD_LETTERS), "slots"))}
            ),
        },
        required=("schema_version",),
    ),
}


def schema_problems(errors: Iterable[ValidationError]) -> Iterator[Problem]:
    """Put a validator's errors into words: what was found, what was expected."""
    for error in errors:
        path = tuple(str(part) for part in error.absolute_path)
        schema = cast("dict[str, Any]", error.schema)
        found: Any = error.instance
        if error.validator == "additionalProperties":
            yield from _unknown_keys(schema, found, path)
        elif error.validator == "required":
            for key in schema["required"]:
                if key not in found:
                    expected = schema["properties"][key].get("description", "a value")
                    yield Problem((*path, key), f"missing; expected {expected}")
        elif schema.get("pattern") == _CLASS_NAME_PATTERN:
            yield Problem(
                (*path, str(found)),
                "expected a class name of lower-case letters, digits, - and _, "
                "starting with a letter, at most 63 long",
            )
        else:
            yield Problem(path, _value_message(schema, found, error))


def _unknown_keys(
    schema: dict[str, Any], found: Iterable[object], path: tuple[str, ...]
) -> Iterator[Problem]:
    known = list(schema["properties"])
    for key in found:
        if key in known:
            continue
        removed = _REMOVED.get((*path, str(key)))
        if removed is not None:
            yield Problem((*path, str(key)), removed)
            continue
        close = difflib.get_close_matches(str(key), known, n=1)
        hint = (
            f"did you mean {close[0]}?"
            if close
            else f"expected one of {', '.join(known)}"
        )
        yield Problem((*path, str(key)), f"unknown key; {hint}")


def _value_message(
    schema: dict[str, Any], found: object, error: ValidationError
) -> str:
    if error.validator == "uniqueItems":
        return f"found {_show(found)}, expected each value once"
    hint = ""
    if error.validator == "enum":
        choices = schema["enum"]
        close = difflib.get_close_matches(str(found), [str(v) for v in choices], n=1)
        # 1.0 instead of "1.0" is no typing error.
        hint = f" (did you mean {close[0]}?)" if close and close != [str(found)] else ""
        expected = schema.get(
            "description", f"one of {', '.join(_show(value) for value in choices)}"
        )
    else:
        expected = schema.get("description", error.message)
    return f"found {_show(found)}, expected {expected}{hint}"


def _show(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."

# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of the inventory file."""

from __future__ import annotations

from typing import Any, Final

from nova_perfvm.generate.hosts import MODES
from nova_perfvm.policy.keys import mapping

SCHEMA_VERSION: Final = "1.0"


def _count(minimum: int, unit: str) -> dict[str, Any]:
    return {
        "type": "integer",
        "minimum": minimum,
        "maximum": 2**31 - 1,
        "description": f"a whole number of {unit}, {minimum} or more",
    }


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _list(items: dict[str, Any], description: str, **words: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "description": description} | words


def _map(values: dict[str, Any], description: str, **words: Any) -> dict[str, Any]:
    found = {"additionalProperties": values, "description": description}
    return {"type": "object"} | found | words


_CPUS: Final = _text("a list of CPUs such as '0-19,40'")
_PAGE_SIZE: Final = {
    "pattern": r"^[1-9]\d{0,8}(KB|MB|GB)\Z",
    "description": "a page size such as 2MB or 1GB",
}
_CELL: Final = mapping(
    {
        "dedicated": _CPUS,
        "shared": _CPUS,
        "memory_gb": _count(1, "GiB"),
        "siblings": _list(
            _CPUS, "a list of the CPUs of each core, such as ['0,40', '1,41']"
        ),
        "pages": _map(
            _count(0, "pages"),
            "a mapping of page sizes to numbers of pages: {1GB: 200}",
            propertyNames=_PAGE_SIZE,
        ),
    },
)
_HOST: Final = mapping(
    {
        "shape": _text("NUMA nodes x cores per node [x threads], such as 2x20"),
        "mode": {"enum": list(MODES)},
        "class": _text("the name of a pinned class"),
        "reserve": _count(0, "cores of each NUMA node"),
        "shared_nodes": _count(1, "NUMA nodes"),
        "memory_gb": _count(1, "GiB"),
        "cells": _list(_CELL, "a list of NUMA nodes, node 0 first", minItems=1),
    },
)
_VERSION: Final = {
    "enum": [SCHEMA_VERSION],
    "description": f'"{SCHEMA_VERSION}", in quotes',
}
_HOSTS: Final = _map(_HOST, "a mapping of names of hosts to what they have")

SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "inventory of hosts",
    **mapping({"schema_version": _VERSION, "hosts": _HOSTS}, "schema_version", "hosts"),
}

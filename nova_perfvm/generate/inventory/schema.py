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


_CPUS: Final = {"type": "string", "description": "a list of CPUs such as '0-19,40'"}
_TEXT: Final = {"type": "string", "description": "text"}

_CELL: Final = mapping(
    {
        "dedicated": _CPUS,
        "shared": _CPUS,
        "memory_gb": _count(1, "GiB"),
        "siblings": {
            "type": "array",
            "items": _CPUS,
            "description": "a list of the CPUs of each core, such as ['0,40', '1,41']",
        },
        "pages": {
            "type": "object",
            "additionalProperties": _count(0, "pages"),
            "propertyNames": {
                "pattern": r"^[1-9]\d{0,8}(KB|MB|GB)\Z",
                "description": "a page size such as 2MB or 1GB",
            },
            "description": "a mapping of page sizes to numbers of pages: {1GB: 200}",
        },
    },
)

_HOST: Final = mapping(
    {
        "shape": {
            **_TEXT,
            "description": "NUMA nodes x cores per node [x threads], such as 2x20",
        },
        "mode": {"enum": list(MODES)},
        "class": {**_TEXT, "description": "the name of a pinned class"},
        "reserve": _count(0, "cores of each NUMA node"),
        "shared_nodes": _count(1, "NUMA nodes"),
        "memory_gb": _count(1, "GiB"),
        "cells": {
            "type": "array",
            "minItems": 1,
            "items": _CELL,
            "description": "a list of NUMA cells, that of NUMA node 0 first",
        },
    },
)

SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "inventory of hosts",
    **mapping(
        {
            "schema_version": {
                "enum": [SCHEMA_VERSION],
                "description": f'"{SCHEMA_VERSION}", in quotes',
            },
            "hosts": {
                "type": "object",
                "additionalProperties": _HOST,
                "description": "a mapping of names of hosts to what they have",
            },
        },
        "schema_version",
        "hosts",
    ),
}

# SPDX-License-Identifier: Apache-2.0
"""The names and UUIDs of a host's child providers."""

import re
import uuid
from typing import Final

from nova_perfvm import constants as const

_NAMESPACE: Final = uuid.UUID("0f8a6f4e-3f0e-4b6c-9b57-5d1f7c2f4a90")
_CHILD: Final = re.compile(
    rf"(.+)_perfvm_(?:[{const.CHILD_LETTERS}]|{const.CELL_SUFFIX}\d+)"
)


def child_name(host: str, suffix: str) -> str:
    """Return the name of the child provider of a host that has this suffix.

    :param host: name of the host's provider
    :param suffix: a letter, or ``cell_`` and the number of a NUMA node
    """
    return f"{host}_perfvm_{suffix}"


def cell_name(host: str, node: int) -> str:
    """Return the name of the child provider for a NUMA node of a host."""
    return child_name(host, f"{const.CELL_SUFFIX}{node}")


def child_uuid(root: str, name: str) -> str:
    """Return the UUID of a child provider, the same in every run.

    :param root: UUID of the host's provider
    """
    return str(uuid.uuid5(_NAMESPACE, f"{root} {name}"))


def host_of_child(name: str) -> str | None:
    """Return the name of the host's provider, from a child's; None for other names."""
    found = _CHILD.fullmatch(name)
    return found[1] if found else None


def node_of(name: str) -> int | None:
    """Return the ID of the NUMA node in a child's name; None for other names."""
    _, marker, number = name.rpartition(f"_perfvm_{const.CELL_SUFFIX}")
    return int(number) if marker and number.isdecimal() else None

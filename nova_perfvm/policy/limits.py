# SPDX-License-Identifier: Apache-2.0
"""Nova's own limits on flavors: names, memory, and even shares of NUMA nodes."""

from typing import Final

from nova_perfvm.documents.keys import matching

# How Nova's request writes the page sizes of the policy, in KiB.
PAGE_SIZES_KB: dict[str, int] = {"2MB": 2048, "1GB": 1048576}
# Values of ``mem_page_size`` with which a VM takes no huge pages.
SMALL_PAGES: Final = frozenset({None, "small"})
# Longest flavor name that nova-api's schema accepts.
_MAX_NAME: Final = 255
_NAME_FIELDS: Final = ("class", "memory_gb", "root_gb", "vcpus")
NAME_PATTERN: Final = matching(
    rf"([^{{}}]|\{{{{2}}|\}}{{2}}|\{{({'|'.join(_NAME_FIELDS)})\}})+",
    "a name with no fields but "
    + ", ".join(f"{{{field}}}" for field in _NAME_FIELDS)
    + ", each without a format",
)


def name_fault(name: str) -> str | None:
    """Return why a flavor cannot have this name; None if the name is allowed.

    nova-api accepts a ``-`` at the beginning, which clients take for an option.
    """
    stripped = name.strip().lstrip("-")
    if name and name.isprintable() and name == stripped and len(name) <= _MAX_NAME:
        return None
    return (
        f"no flavor can be named {name!r}: expected up to {_MAX_NAME} printable "
        "characters, no space at either end, no - at the beginning"
    )


def even_share(amount: int, nodes: int) -> int | None:
    """Return a VM's vCPUs (or MiB) per NUMA node; None if they do not divide evenly.

    nova-api refuses uneven shares (nova.virt.hardware, ``_get_numa_topology_auto``).
    """
    return None if amount % nodes else amount // nodes


def even_sizes(amount: int, nodes: int) -> str:
    """Return the nearest amounts that divide evenly, such as ``18 or 21``."""
    below = amount - amount % nodes
    return f"{below} or {below + nodes}" if below else str(nodes)

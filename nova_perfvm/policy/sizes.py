# SPDX-License-Identifier: Apache-2.0
"""Which keys of a class's flavors go together; the schema judges each alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from nova_perfvm.exceptions import KeyPath, Problem


def size_problems(
    document: dict[str, Any], faulty: Collection[KeyPath]
) -> Iterator[Problem]:
    """List what says nothing of any flavor, and would be dropped in silence.

    :param document: what fulfils the schema
    :param faulty: paths of what does not, and was left out
    """
    for name, keys in document.get("classes", {}).items():
        path = ("classes", name)
        flavors = keys.get("flavors")
        if flavors is None:
            continue
        here = (*path, "flavors")
        sizeless = keys.get("vcpus") is None and not _wants_vcpus(keys, path, faulty)
        if "memory_gb" in flavors:
            if sizeless:
                yield Problem(
                    (*here, "memory_gb"),
                    "makes a flavor of each size for a class with vcpus, and "
                    f"{name} has none: use sizes, such as "
                    "[{vcpus: 2, memory_gb: 4, root_gb: 20}]",
                )
        elif "root_gb" in flavors:
            yield Problem(
                (*here, "root_gb"),
                "is the root disk of the flavors of memory_gb, which is missing: "
                "remove it, each of sizes has its own",
            )
        elif "sizes" not in flavors and sizeless:
            # With vcpus, the name is for the flavors of --memory-gb.
            yield Problem(here, "names flavors of no size: give sizes")


def with_sizes(keys: dict[str, Any]) -> dict[str, Any]:
    """Write out the flavors of ``memory_gb``, which have the vCPUs of the class.

    :param keys: those of a class
    """
    flavors = keys.get("flavors")
    if flavors is None:
        return keys
    sizes = [*flavors.get("sizes", [])]
    if keys.get("vcpus") is not None:
        more = {"vcpus": keys["vcpus"], "root_gb": flavors.get("root_gb", 0)}
        sizes += [more | {"memory_gb": gb} for gb in flavors.get("memory_gb", [])]
    return keys | {"flavors": {"name": flavors["name"], "sizes": sizes}}


def _wants_vcpus(
    keys: dict[str, Any], path: KeyPath, faulty: Collection[KeyPath]
) -> bool:
    """Return whether the missing vcpus are, or rest on, a mistake of their own."""
    return keys.get("cpu_policy") == "dedicated" or any(
        (*path, key) in faulty for key in ("vcpus", "cpu_policy")
    )

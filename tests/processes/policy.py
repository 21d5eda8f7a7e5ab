# SPDX-License-Identifier: Apache-2.0
"""The sandbox's policy: of a file, or the built-in policy fitted to the hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from nova_perfvm.placement.host_schemes import HOST_SCHEMES
from nova_perfvm.policy import Policy, loader
from tests.processes.hostspec import PretendedHost

ROOT_GB = 20


def sandbox_policy(
    hosts: Sequence[PretendedHost], path: str | None, *, volumes: bool = False
) -> Policy:
    """Return the policy for a sandbox of these hosts.

    :param path: a policy file, used unchanged; None for the built-in policy fitted to
        the hosts
    :param volumes: whether the sandbox has Cinder
    :raises DocumentError: with every mistake of the file, or when the hosts' shapes
        cannot serve the built-in classes
    """
    if path is not None:
        return loader.load(path)
    document = loader.load().as_document()
    _fit(document, hosts, volumes=volumes)
    source = f"{loader.BUILT_IN}, fitted to the sandbox's hosts"
    return loader.parse(yaml.safe_dump(document, sort_keys=False), source)


def _fit(
    document: dict[str, Any], hosts: Sequence[PretendedHost], *, volumes: bool
) -> None:
    """Change the built-in policy's host shapes, placement and disks."""
    shapes = {host.shape for host in hosts if host.mode != "shared"}
    if shapes:
        document["host_shape"] = [str(shape) for shape in sorted(shapes)]
    modes = {host.mode for host in hosts}
    if "elastic" in modes:
        document["placement"] = next(
            name for name, s in HOST_SCHEMES.items() if "elastic" in s.modes
        )
    for vm_class in document["classes"].values():
        if vm_class["cpu_policy"] != "dedicated":
            continue
        if "mixed" in modes:
            vm_class["exclusive"] = "cell"
        if volumes:
            continue
        # Without Cinder VMs need a root disk instead of a volume.
        vm_class["disk"] |= {"source": "image", "volume_type": None}
        for size in vm_class["flavors"]["sizes"]:
            size["root_gb"] = size["root_gb"] or ROOT_GB

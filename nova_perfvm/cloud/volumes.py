# SPDX-License-Identifier: Apache-2.0
"""Read of Cinder which volume types there are, and which volumes servers boot from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import openstack_errors
from nova_perfvm.facts.snapshot import RootVolume


@openstack_errors()
def volume_types(api: API) -> tuple[str, ...]:
    """Return the names of all volume types, private ones too."""
    found = api.cinder_list("/types?is_public=None", "volume_types")
    return tuple(sorted(one["name"] for one in found))


@openstack_errors()
def root_volumes(api: API) -> tuple[RootVolume, ...]:
    """Return the volumes of all projects that servers boot from.

    A server may have several volumes that it could boot from: its root is the
    first disk.
    """
    found: dict[str, tuple[str, RootVolume]] = {}
    path = "/volumes/detail?all_tenants=1&bootable=true&status=in-use"
    for volume in api.cinder_list(path, "volumes"):
        for attached in volume["attachments"]:
            device, root = attached["device"], _root_volume(volume, attached)
            known = found.get(root.server)
            if known is None or device < known[0]:
                found[root.server] = device, root
    return tuple(root for _, (_, root) in sorted(found.items()))


def _root_volume(volume: Mapping[str, Any], attached: Mapping[str, Any]) -> RootVolume:
    return RootVolume(
        id=volume["id"],
        server=attached["server_id"],
        volume_type=volume["volume_type"] or "",
    )

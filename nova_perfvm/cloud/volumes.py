# SPDX-License-Identifier: Apache-2.0
"""Read volume types, and the volumes that servers boot from, from Cinder."""

from __future__ import annotations

from collections.abc import Collection

from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import openstack_errors
from nova_perfvm.facts.snapshot import RootVolume


@openstack_errors()
def volume_types(api: API) -> tuple[str, ...]:
    """Return the names of all volume types, including private ones."""
    found = api.cinder_list("/types?is_public=None", "volume_types")
    return tuple(sorted(one["name"] for one in found))


@openstack_errors()
def root_volumes(
    api: API, root_disks: Collection[tuple[str, str]]
) -> tuple[RootVolume, ...]:
    """Return the root volumes of servers of all projects.

    :param root_disks: (ID of a server, device name of its root disk), from Nova
    """
    path = "/volumes/detail?all_tenants=1&bootable=true&status=in-use"
    return tuple(
        RootVolume(volume["id"], attached["server_id"], volume["volume_type"] or "")
        for volume in api.cinder_list(path, "volumes")
        for attached in volume["attachments"]
        if (attached["server_id"], attached["device"]) in root_disks
    )

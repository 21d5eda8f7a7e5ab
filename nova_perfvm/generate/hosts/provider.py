# SPDX-License-Identifier: Apache-2.0
"""provider.yaml: what nova-compute adds to its own inventories and traits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.generate.hosts.request import HostRequest
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.policy import VMClass

# nova.compute.provider_config.SUPPORTED_SCHEMA_VERSIONS
SCHEMA_VERSION: Final = "1.0"

_CLASS_OF: Final = {"read": const.RC_READ_IOPS, "write": const.RC_WRITE_IOPS}


def provider_document(
    request: HostRequest,
    room: Mapping[VMClass, int],
    iops: Mapping[str, tuple[int, int]],
) -> dict[str, Any] | None:
    """Return the content of provider.yaml; None where the host needs none.

    :param room: number of VMs that the host holds, by each of its pinned classes
    :param iops: see :func:`.admission.iops_capacity`
    """
    policy = request.policy
    offers = [
        host_scheme_of(policy).offers(policy, vm_class, request.mode, count)
        for vm_class, count in room.items()
    ]
    inventories = [
        {name: _inventory(found.total, found.max_unit)}
        for offer in offers
        for name, found in offer.inventories.items()
    ]
    traits = sorted({trait for offer in offers for trait in offer.traits})
    inventories += [
        {_CLASS_OF[kind]: _inventory(capacity, capacity)}
        for kind, (capacity, _) in iops.items()
    ]
    if not inventories and not traits:
        return None
    # nova-compute reads $COMPUTE_NODE as its own resource provider.
    provider: dict[str, Any] = {"identification": {"uuid": "$COMPUTE_NODE"}}
    if inventories:
        provider["inventories"] = {"additional": inventories}
    if traits:
        provider["traits"] = {"additional": traits}
    return {"meta": {"schema_version": SCHEMA_VERSION}, "providers": [provider]}


def _inventory(total: int, max_unit: int) -> dict[str, Any]:
    """Return an inventory with every key, so that no default of Nova applies."""
    return {
        "total": total,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": max_unit,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }

# SPDX-License-Identifier: Apache-2.0
"""PCI devices of hosts, and servers' requests for PCI devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

# NUMA policies of requests; Nova's default is the first.
LEGACY: Final = "legacy"
REQUIRED: Final = "required"
SOCKET: Final = "socket"
POLICIES: Final = (LEGACY, "preferred", REQUIRED, SOCKET)


@dataclass(frozen=True)
class PCIPool:
    """Equal PCI devices of a host: the free devices, or those of a server.

    :ivar node: the NUMA node that they are on; None where the host does not tell
    :ivar tags: by what else Nova tells devices apart: ``vendor_id``, ``product_id``,
        ``dev_type``, ``address`` of the card, ``rp_uuid`` of its resource provider,
        and those of [pci]device_spec
    """

    count: int
    node: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PCIRequest:
    """Devices that a server asks for; or one device, as [pci]alias describes it.

    :ivar specs: a device has all tags of one of them
    :ivar policy: one of :data:`POLICIES`
    :ivar port: whether a port asks for them, not the flavor
    :ivar resource_class: as which Placement counts them; empty where it does not
    :ivar traits: that their provider has to have
    """

    name: str
    count: int
    specs: tuple[Mapping[str, str], ...]
    policy: str = LEGACY
    port: bool = False
    resource_class: str = ""
    traits: frozenset[str] = frozenset()

    @property
    def migrates_live(self) -> bool:
        """Return whether Nova migrates a server live that has such devices."""
        return self.port or all(
            spec.get("live_migratable") == "true" for spec in self.specs
        )


def rebuilt(
    asked: Iterable[PCIRequest], aliases: Mapping[str, PCIRequest]
) -> tuple[PCIRequest, ...]:
    """Return the requests that nova-compute claims when a server with `asked` moves.

    nova-compute makes the flavor's requests anew from the aliases: it ignores the NUMA
    policy of flavor and image and the devices that Placement gave
    (ResourceTracker._move_claim).
    """

    def claimed(one: PCIRequest) -> PCIRequest:
        policy = aliases[one.name].policy if one.name in aliases else LEGACY
        return PCIRequest(one.name, one.count, one.specs, policy)

    return tuple(one if one.port else claimed(one) for one in asked)


def returned(
    pools: Iterable[PCIPool], devices: Iterable[PCIPool]
) -> tuple[PCIPool, ...]:
    """Return the free devices of a host when a server has given its own back.

    A card of which the last virtual function comes back stays divided: nothing tells
    that it was the last.
    """
    found = list(pools)
    for device in devices:
        for index, pool in enumerate(found):
            # Nova's databases lack some tags of pools: compare the device's tags only.
            if pool.node == device.node and device.tags.items() <= pool.tags.items():
                found[index] = replace(pool, count=pool.count + device.count)
                break
        else:
            found.append(device)
    return tuple(found)

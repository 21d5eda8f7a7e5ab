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

# Tags of devices, or of requests for devices.  A port of a network without a physical
# network asks for devices whose ``physical_network`` is None, or absent.
Tags = Mapping[str, str | None]


@dataclass(frozen=True)
class PCIPool:
    """Equal PCI devices of a host: the free devices, or those of a server.

    :ivar node: the devices' NUMA node; None if the host reports none
    :ivar tags: what the devices have in common: ``vendor_id``, ``product_id``,
        ``dev_type``, ``address`` of the card, ``rp_uuid`` of the card's resource
        provider, and tags of [pci]device_spec
    """

    count: int
    node: int | None = None
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class PCIRequest:
    """PCI devices that a server asks for; or one device, as [pci]alias describes it.

    :ivar name: name of the alias; ``of a port`` for a port's devices
    :ivar specs: alternative sets of tags: a device suits if it has all tags of one set
    :ivar policy: one of :data:`POLICIES`
    :ivar port: whether a port asks for the devices, not the flavor
    :ivar resource_class: resource class by which Placement counts the devices; empty if
        Placement does not count them
    :ivar traits: traits that the devices' provider must have
    """

    name: str
    count: int
    specs: tuple[Tags, ...]
    policy: str = LEGACY
    port: bool = False
    resource_class: str = ""
    traits: frozenset[str] = frozenset()

    @property
    def migrates_live(self) -> bool:
        """Return whether Nova can live-migrate a server that has these devices."""
        return self.port or all(
            spec.get("live_migratable") == "true" for spec in self.specs
        )


def rebuilt(
    asked: Iterable[PCIRequest], aliases: Mapping[str, PCIRequest]
) -> tuple[PCIRequest, ...]:
    """Return the requests that nova-compute claims when a server with `asked` moves.

    nova-compute makes the flavor's requests anew (ResourceTracker._move_claim): with
    the NUMA policy of the alias, ``legacy`` if unknown, and without the devices that
    Placement gave.  Requests of ports stay.
    """

    def claimed(one: PCIRequest) -> PCIRequest:
        """Return a flavor's request with the policy of its alias, not the server's."""
        policy = aliases[one.name].policy if one.name in aliases else LEGACY
        return PCIRequest(one.name, one.count, one.specs, policy)

    return tuple(one if one.port else claimed(one) for one in asked)


def returned(
    pools: Iterable[PCIPool], devices: Iterable[PCIPool]
) -> tuple[PCIPool, ...]:
    """Return the free devices of a host after a server has given its devices back.

    A card stays divided into virtual functions even if all of them are free again:
    nothing shows how many the card has.
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

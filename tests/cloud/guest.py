# SPDX-License-Identifier: Apache-2.0
"""The libvirt domain that Nova generated, read from its XML."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from nova_perfvm import cpuset

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class EmbeddedGuest:
    """What the domain XML says of CPUs, memory and network.

    Node numbers are the host's; ``host_nodes`` follows from the pins.
    """

    vcpus: int
    vcpupin: dict[int, frozenset[int]]
    numatune_mode: str | None
    numatune_nodes: frozenset[int]
    queues: tuple[int | None, ...]
    host_nodes: frozenset[int]

    @property
    def pinned(self) -> bool:
        """Tell whether each vCPU has one host CPU of its own."""
        return bool(self.vcpupin) and all(
            len(cpus) == 1 for cpus in self.vcpupin.values()
        )

    @property
    def pins(self) -> frozenset[int]:
        """Return the set of the host CPUs that the vCPUs are pinned to."""
        return frozenset().union(*self.vcpupin.values())


def _cpus(text: str | None) -> frozenset[int]:
    return frozenset(cpuset.parse(text)) if text else frozenset()


def parse(xml: str, node_of: Callable[[int], int]) -> EmbeddedGuest:
    """Read a guest of a domain's XML.

    :param node_of: gives the NUMA node of a CPU of the domain's host
    """
    root = ET.fromstring(xml)
    pins = {
        int(pin.get("vcpu")): _cpus(pin.get("cpuset"))
        for pin in root.findall("cputune/vcpupin")
    }
    memory = root.find("numatune/memory")
    nics = root.findall("devices/interface")
    drivers = [nic.find("driver[@queues]") for nic in nics]
    return EmbeddedGuest(
        vcpus=int(root.findtext("vcpu")),
        vcpupin=pins,
        numatune_mode=None if memory is None else memory.get("mode"),
        numatune_nodes=_cpus(None if memory is None else memory.get("nodeset")),
        queues=tuple(
            None if driver is None else int(driver.get("queues")) for driver in drivers
        ),
        host_nodes=frozenset(node_of(cpu) for cpus in pins.values() for cpu in cpus),
    )

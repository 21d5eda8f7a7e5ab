# SPDX-License-Identifier: Apache-2.0
"""The CPU topology that Nova gives a guest, by its flavor and its image.

As ``get_best_cpu_topology`` of nova.virt.hardware, which libvirt's driver calls when it
makes the domain: nova-api takes limits in which no topology fits, and the boot fails.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from nova_perfvm.facts.conflicts import TOPOLOGY_PARTS
from nova_perfvm.facts.placement_request import whole_number
from nova_perfvm.facts.snapshot import Flavor

PROPERTIES: Final = tuple(
    f"hw_cpu_{limit}{part}" for limit in ("", "max_") for part in TOPOLOGY_PARTS
)
# Nova's limit where neither flavor nor image has one.
_NO_LIMIT: Final = 65536


class CPUTopology(NamedTuple):
    """The CPUs of a guest: sockets, cores of a socket, threads of a core."""

    sockets: int
    cores: int
    threads: int

    def __str__(self) -> str:
        """Return the topology as ``1 x 20 x 1``."""
        return " x ".join(map(str, self))


def topology_of(flavor: Flavor, properties: Mapping[str, str]) -> CPUTopology | None:
    """Return the topology of a guest; None where Nova refuses it or finds none.

    :param properties: properties of the image
    """
    specs = {key.replace(":", "_", 1): text for key, text in flavor.extra_specs.items()}
    most, image_most = _read(specs, "max_"), _read(properties, "max_")
    limits = CPUTopology(
        *(mine or its or _NO_LIMIT for mine, its in zip(image_most, most, strict=True))
    )
    wanted, image_wanted = _read(specs), _read(properties)
    # Limits of the image void what the flavor prefers, and not what the image does.
    if _beyond(wanted, limits):
        wanted = CPUTopology(0, 0, 0)
    flavor_most = CPUTopology(*(number or _NO_LIMIT for number in most))
    if _beyond(image_most, flavor_most) or _beyond(image_wanted, limits):
        return None
    # One preference of the image replaces all three of the flavor.
    preferred = image_wanted if any(image_wanted) else wanted
    possible = [one for one in _products(flavor.vcpus) if not _beyond(one, limits)]
    return max(possible, key=lambda one: _rank(one, preferred), default=None)


def _read(keys: Mapping[str, str], limit: str = "") -> CPUTopology:
    texts = (keys.get(f"hw_cpu_{limit}{part}", "") for part in TOPOLOGY_PARTS)
    return CPUTopology(*(whole_number(text) or 0 for text in texts))


def _beyond(one: CPUTopology, limits: CPUTopology) -> bool:
    return any(number > limit for number, limit in zip(one, limits, strict=True))


def _products(vcpus: int) -> list[CPUTopology]:
    """Return all topologies of a number of vCPUs."""
    divisors = [n for n in range(1, vcpus + 1) if vcpus % n == 0]
    return [
        CPUTopology(sockets, vcpus // sockets // threads, threads)
        for sockets in divisors
        for threads in divisors
        if vcpus // sockets % threads == 0
    ]


def _rank(one: CPUTopology, preferred: CPUTopology) -> tuple[int, ...]:
    """Return Nova's order: preferred numbers, few threads, many sockets."""
    met = sum(a == b for a, b in zip(one, preferred, strict=True) if b)
    return met, one.sockets * one.cores, one.sockets

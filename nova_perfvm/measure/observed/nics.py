# SPDX-License-Identifier: Apache-2.0
"""Network interfaces with their drivers and numbers of queues."""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError, values
from nova_perfvm.measure.observed.interrupts import PATH, Interrupts

# MAX_TAP_QUEUES of the host's kernel: no tap device has more.
MOST_OF_TAP: Final = 256
NET: Final = "/sys/class/net"

# Drivers of virtual functions, whose number of queues the hardware sets.
PASSED_THROUGH: Final = (
    *("bnxt_en", "ena", "enic", "fm10k", "gve", "hinic", "iavf", "i40evf", "idpf"),
    *("igbvf", "ixgbevf", "mana", "mlx4_core", "mlx4_en", "mlx5_core", "nfp_netvf"),
    *("qede", "sfc"),
)
_VIRTIO = re.compile(r"virtio\d+")


class Kind(enum.Enum):
    """The kind of a NIC, which selects the rules."""

    VIRTIO = "virtio-net"
    VDPA = "virtio-net over vDPA"
    PASSED_THROUGH = "virtual function"
    OTHER = "other"


class Queues(NamedTuple):
    """A number of queues, and its source."""

    number: int
    source: str


class NIC(NamedTuple):
    """A network interface backed by a device.

    :ivar name: name in ``ip link``; the device's name if unknown
    :ivar device: the virtio device in /proc/interrupts, such as ``virtio0``; empty
        for other drivers
    :ivar up: whether the NIC has a link; True when unread
    :ivar present: queue pairs of the device; None if unknown
    :ivar enabled: queue pairs enabled by the driver; None if unknown
    """

    name: str
    driver: str
    kind: Kind
    device: str
    up: bool
    present: Queues | None
    enabled: Queues | None

    @property
    def used(self) -> int | None:
        """The number of enabled queue pairs, else of present ones; None if unknown."""
        known = self.enabled or self.present
        return known and known.number


def read(collected: Collected, seen: Interrupts | None) -> tuple[NIC, ...]:
    """Return the network interfaces backed by devices, ordered by name.

    A virtio device known by its interrupts only gets the device's name.

    :param seen: the interrupts; None when unread
    :raises NotReadError: when sysfs was not read and the interrupts name no NIC
    """
    nics = [_nic(collected, name, seen) for name in names_below(collected, NET)]
    found = [nic for nic in nics if nic is not None]
    known = {nic.device for nic in found}
    for device in sorted(_interrupting(seen) - known) if seen else ():
        queues = _by_vectors(seen, device)
        nic = NIC(device, "virtio_net", Kind.VIRTIO, device, True, queues, None)  # noqa: FBT003
        found.append(nic)
    if seen and not nics and not found:
        raise NotReadError(PATH, _why_no_nic(seen))
    return tuple(found)


def _why_no_nic(seen: Interrupts) -> str:
    names = (name for vector in seen.vectors for name in vector.names)
    # Any virtio device can fall back to one shared vector, consoles mostly.
    shared = ", ".join(name for name in names if name.endswith("-virtqueues"))
    told = f" and leaves the device of {shared} open" if shared else ""
    return f"it names no queue (virtio0-input.0){told}: run nova-perfvm guest collect"


def names_below(collected: Collected, directory: str) -> list[str]:
    """Return the sorted names of collected entries below a directory."""
    pattern = re.compile(rf"{directory}/([^/]+)(?:/.*)?")
    places = (*collected.links, *collected.files)
    return sorted({match[1] for place in places if (match := pattern.fullmatch(place))})


def queues_of(collected: Collected, name: str, direction: str) -> dict[int, str]:
    """Return {queue: path of its directory} of the enabled queues.

    :param direction: rx or tx
    """
    pattern = rf"({re.escape(f'{NET}/{name}/queues/{direction}-')}(\d+))/\w+"
    matches = (re.fullmatch(pattern, path) for path in collected.files)
    return dict(sorted((int(m[2]), m[1]) for m in matches if m))


def _interrupting(seen: Interrupts) -> set[str]:
    names = (name for vector in seen.vectors for name in vector.names)
    matches = (re.fullmatch(r"(virtio\d+)-input\.\d+", name) for name in names)
    return {match[1] for match in matches if match}


def _nic(collected: Collected, name: str, seen: Interrupts | None) -> NIC | None:
    base = f"{NET}/{name}"
    place = collected.links.get(base, "")
    leads = f"{place}/{collected.links.get(f'{base}/device', '')}"
    driver = _driver(collected, name)
    if name == "lo" or "/virtual/" in place or not driver:
        # Skip bridges and bonds: their member NICs are judged.
        return None
    matches = _VIRTIO.findall(leads)
    device = matches[-1] if matches and driver == "virtio_net" else ""
    state = collected.files.get(f"{base}/operstate", "up").strip()
    maximum, current = _channels(collected, name)
    # sysfs has directories of enabled queues only.
    queues = queues_of(collected, name, "rx")
    return NIC(
        name=name,
        driver=driver,
        kind=_kind(driver, leads),
        device=device,
        up=state not in {"down", "lowerlayerdown", "notpresent"},
        present=maximum or _by_vectors(seen, device),
        enabled=current or _queues(len(queues), f"{base}/queues"),
    )


def _driver(collected: Collected, name: str) -> str:
    """Return the driver of a NIC; empty without a device."""
    link = collected.links.get(f"{NET}/{name}/device/driver")
    if link is not None:
        return link.rpartition("/")[2]
    told = values(_printed(collected, f"ethtool -i {name}"))
    # Only devices are on a bus.
    return told.get("driver", "") if told.get("bus-info") else ""


def _kind(driver: str, leads: str) -> Kind:
    if driver == "virtio_net":
        return Kind.VDPA if "/vdpa" in leads else Kind.VIRTIO
    return Kind.PASSED_THROUGH if driver in PASSED_THROUGH else Kind.OTHER


def _by_vectors(seen: Interrupts | None, device: str) -> Queues | None:
    """Count queue pairs by their vectors, which exist for disabled queues, too."""
    if seen is None or not device:
        return None
    return _queues(len(seen.named(rf"{device}-input\.(\d+)")), seen.source)


def _channels(collected: Collected, name: str) -> list[Queues | None]:
    """Return the channels of a device: [maximum, enabled], None for unknown ones."""
    command = f"ethtool -l {name}"
    maximum, _, current = _printed(collected, command).partition("Current hardware")
    found = []
    for section in (maximum, current):
        told = values(section).items()
        counts = {key: int(value) for key, value in told if value.isdecimal()}
        # A few drivers have separate channels for each direction.
        apart = min(counts.get("RX", 0), counts.get("TX", 0))
        found.append(_queues(counts.get("Combined", 0) or apart, command))
    return found


def _queues(number: int, source: str) -> Queues | None:
    return Queues(number, source) if number else None


def _printed(collected: Collected, command: str) -> str:
    """Return a command's output; empty when unread or failed."""
    try:
        return collected.output(command)
    except NotReadError:
        return ""

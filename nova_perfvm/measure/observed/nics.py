# SPDX-License-Identifier: Apache-2.0
"""Network interfaces: what drives them, and how many queues they have."""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed.interrupts import PATH, Interrupts
from nova_perfvm.measure.observed.tables import values

# MAX_TAP_QUEUES of the host's kernel: no tap device has more.
MOST_OF_TAP: Final = 256
NET: Final = "/sys/class/net"

# Parts of devices that the host's hardware passes through; each virtual function
# has as many queues as that grants.
PASSED_THROUGH: Final = (
    *("bnxt_en", "ena", "enic", "fm10k", "gve", "hinic", "iavf", "i40evf", "idpf"),
    *("igbvf", "ixgbevf", "mana", "mlx4_core", "mlx4_en", "mlx5_core", "nfp_netvf"),
    *("qede", "sfc"),
)
_VIRTIO = re.compile(r"virtio\d+")


class Kind(enum.Enum):
    """By which rules it is judged."""

    VIRTIO = "virtio-net"
    VDPA = "virtio-net over vDPA"
    PASSED_THROUGH = "virtual function"
    OTHER = "other"


class Queues(NamedTuple):
    """How many queues, and where that was read."""

    number: int
    source: str


class NIC(NamedTuple):
    """One network interface that is a device.

    :ivar name: as ``ip link`` has it; the device's where only that is known
    :ivar device: as /proc/interrupts names it, such as ``virtio0``; else empty
    :ivar up: whether it has a link; true if that was not read
    :ivar present: queue pairs that the device has, None if unknown
    :ivar enabled: those that the driver uses, None if unknown
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
        """Queue pairs that are used, as far as anything tells; None if nothing does."""
        known = self.enabled or self.present
        return known and known.number


def read(collected: Collected, seen: Interrupts | None) -> tuple[NIC, ...]:
    """Return the network interfaces that are devices, in the order of their names.

    Devices of which only the interrupts are known have the device's name.

    :param seen: the interrupts, None if they were not read
    :raises NotReadError: when only they are known, and no NIC is told by them
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
    # Devices of any kind fall back to that, consoles mostly.
    shared = ", ".join(name for name in names if name.endswith("-virtqueues"))
    told = f", and does not tell which device has {shared}" if shared else ""
    return f"it names no queue (virtio0-input.0){told}: run nova-perfvm guest collect"


def names_below(collected: Collected, directory: str) -> list[str]:
    """Return the names of which anything below a directory was read, sorted."""
    pattern = re.compile(rf"{directory}/([^/]+)(?:/.*)?")
    places = (*collected.links, *collected.files)
    return sorted({match[1] for place in places if (match := pattern.fullmatch(place))})


def queues_of(collected: Collected, name: str, direction: str) -> dict[int, str]:
    """Return {queue: path of its directory} of the queues that a driver uses.

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
        # A bridge, a bond...: what is below it is judged.
        return None
    matches = _VIRTIO.findall(leads)
    device = matches[-1] if matches and driver == "virtio_net" else ""
    state = collected.files.get(f"{base}/operstate", "up").strip()
    maximum, current = _channels(collected, name)
    # Directories of queues that are not enabled are not there.
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
    """Return the driver of a device; empty for what is none."""
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
    """Count the queue pairs by their vectors, which are there if enabled or not."""
    if seen is None or not device:
        return None
    return _queues(len(seen.named(rf"{device}-input\.(\d+)")), seen.source)


def _channels(collected: Collected, name: str) -> list[Queues | None]:
    """Return how many channels a device has, and how many are enabled."""
    command = f"ethtool -l {name}"
    maximum, _, current = _printed(collected, command).partition("Current hardware")
    found = []
    for section in (maximum, current):
        told = values(section).items()
        counts = {key: int(value) for key, value in told if value.isdecimal()}
        # Few drivers have channels for one direction only.
        apart = min(counts.get("RX", 0), counts.get("TX", 0))
        found.append(_queues(counts.get("Combined", 0) or apart, command))
    return found


def _queues(number: int, source: str) -> Queues | None:
    return Queues(number, source) if number else None


def _printed(collected: Collected, command: str) -> str:
    """Return what a command printed; nothing if it failed."""
    try:
        return collected.output(command)
    except NotReadError:
        return ""

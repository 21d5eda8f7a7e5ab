# SPDX-License-Identifier: Apache-2.0
"""The NICs of the machine that runs the tests, read without the product's code."""

import pathlib
import re
from typing import NamedTuple

NET = pathlib.Path("/sys/class/net")


class NIC(NamedTuple):
    """A NIC as the kernel shows it.

    :ivar device: ``virtio0`` and so on of virtio-net; else empty
    :ivar present: vectors of input that a virtio-net device has, one for each queue
    :ivar enabled: queues of input that the driver uses
    :ivar node: what the firmware says of its NUMA node, None if there is no such file
    """

    name: str
    driver: str
    device: str
    present: int
    enabled: int
    up: bool
    node: str | None


def cpus():
    """Count the CPUs online."""
    lines = pathlib.Path("/proc/stat").read_text().splitlines()
    return sum(bool(re.match(r"cpu\d", line)) for line in lines)


def nics():
    """Return those that a driver drives; a bridge, a bond or a tap is none."""
    return [_nic(path) for path in sorted(NET.iterdir()) if _is_device(path)]


def busiest(nic, direction):
    """Return how many queues of a virtio-net device interrupt the busiest CPU.

    None where the kernel does not say for each which CPU that is.
    """
    found = []
    for line in _interrupts():
        words = line.split()
        if not re.fullmatch(rf"{nic.device}-{direction}\.\d+", words[-1]):
            continue
        irq = words[0].rstrip(":")
        path = pathlib.Path(f"/proc/irq/{irq}/effective_affinity_list")
        where = path.read_text().strip() if path.exists() else ""
        if not where.isdigit():
            return None
        found.append(where)
    return max(map(found.count, found), default=None)


def _is_device(path):
    return "/virtual/" not in str(path.resolve()) and (path / "device/driver").exists()


def _nic(path):
    driver = (path / "device/driver").resolve().name
    device = (path / "device").resolve().name
    virtio = driver == "virtio_net"
    last = [line.split()[-1] for line in _interrupts()]
    node = path / "device/numa_node"
    return NIC(
        path.name,
        driver,
        device if virtio else "",
        sum(word.startswith(f"{device}-input.") for word in last) if virtio else 0,
        len(list((path / "queues").glob("rx-*"))),
        (path / "operstate").read_text().strip() != "down",
        node.read_text().strip() if node.exists() else None,
    )


def _interrupts():
    lines = pathlib.Path("/proc/interrupts").read_text().splitlines()
    return [line for line in lines if re.match(r" *\d+:", line)]

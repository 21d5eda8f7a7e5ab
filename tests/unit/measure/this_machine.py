# SPDX-License-Identifier: Apache-2.0
"""The NICs of the machine that runs the tests, read without the product's code."""

import pathlib
from typing import NamedTuple

NET = pathlib.Path("/sys/class/net")


class NIC(NamedTuple):
    """A NIC as the kernel shows it.

    :ivar present: vectors of input that a virtio-net device has, one for each queue
    :ivar enabled: queues of input that the driver uses
    """

    name: str
    present: int
    enabled: int


def nics():
    """Return those that a driver drives; a bridge, a bond or a tap is none."""
    return [_nic(path) for path in sorted(NET.iterdir()) if _is_device(path)]


def _is_device(path):
    return "/virtual/" not in str(path.resolve()) and (path / "device/driver").exists()


def _nic(path):
    virtio = (path / "device/driver").resolve().name == "virtio_net"
    vectors = f"{(path / 'device').resolve().name}-input."
    interrupts = pathlib.Path("/proc/interrupts").read_text().splitlines()
    present = sum(line.split()[-1].startswith(vectors) for line in interrupts)
    enabled = len(list((path / "queues").glob("rx-*")))
    return NIC(path.name, present if virtio else 0, enabled)

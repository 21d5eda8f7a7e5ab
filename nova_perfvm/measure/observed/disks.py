# SPDX-License-Identifier: Apache-2.0
"""Disks with their drivers, queues and I/O schedulers."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected
from nova_perfvm.measure.observed.nics import names_below

BLOCK: Final = "/sys/block"
# The kernel's driver names of virtio-blk and virtio-scsi.
_BLK, _SCSI = "virtio_blk", "virtio_scsi"
VIRTIO: Final = (_BLK, _SCSI)
_DEVICE: Final = re.compile(r"(?:vd|sd|xvd)[a-z]+|nvme\d+n\d+")


class DiskDevice(NamedTuple):
    """A disk backed by a device.

    :ivar driver: empty if unknown
    :ivar queues: number of hardware queues; 0 when unread
    :ivar scheduler: the active I/O scheduler; empty when unread
    """

    name: str
    driver: str
    queues: int
    scheduler: str


def read(collected: Collected) -> tuple[DiskDevice, ...]:
    """Return the disks backed by devices: no loop devices, LVM, zram..."""
    names = names_below(collected, BLOCK)
    return tuple(_disk(collected, name) for name in names if _DEVICE.fullmatch(name))


def _disk(collected: Collected, name: str) -> DiskDevice:
    base = f"{BLOCK}/{name}"
    lists = [path for path in collected.files if path.startswith(f"{base}/mq/")]
    told = collected.files.get(f"{base}/queue/nr_hw_queues", "").strip()
    schedulers = collected.files.get(f"{base}/queue/scheduler", "")
    match = re.search(r"\[([\w-]+)\]", schedulers)
    return DiskDevice(
        name,
        _driver(collected, name),
        len({path.split("/")[5] for path in lists})
        or (int(told) if told.isdecimal() else 0),
        # Old kernels omit the brackets around a sole scheduler.
        match[1] if match else schedulers.strip(),
    )


def _driver(collected: Collected, name: str) -> str:
    link = collected.links.get(f"{BLOCK}/{name}/device/driver", "")
    driver = link.rpartition("/")[2]
    place = collected.links.get(f"{BLOCK}/{name}", "")
    if name.startswith("sd") and re.search(r"/virtio\d+/host", place):
        return _SCSI
    if name.startswith("vd") and not driver:
        return _BLK
    return driver

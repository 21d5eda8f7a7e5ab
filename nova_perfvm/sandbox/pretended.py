# SPDX-License-Identifier: Apache-2.0
"""What the hosts of both sandboxes have in common: CPUs, memory, disks."""

from __future__ import annotations

from typing import Any

from oslo_utils import units

from nova_perfvm.policy import HostShape

# What the host itself uses, as seen by libvirt: Nova reports it as used.
HOST_MEMORY_KB = 2 * units.Mi
LOCAL_DISK_GB = 4000
LOCAL_DISK = {"total": LOCAL_DISK_GB, "used": 0, "free": LOCAL_DISK_GB}


class ConnectionMixin:
    """Corrections of the connection to libvirt that Nova's fixtures have."""

    def getInfo(self) -> list[Any]:  # noqa: N802
        """Return the memory in MiB, as libvirt does; the fixture gives KiB."""
        info: list[Any] = super().getInfo()  # type: ignore[misc]
        info[1] //= 1024
        return info


def host_options(
    fakelibvirt: Any, hostname: str, shape: HostShape, memory_gb: int
) -> dict[str, Any]:
    """Return the arguments of a connection to a host of this hardware.

    :param fakelibvirt: Nova's module of fixtures
    """
    return {
        "uri": "qemu:///system",
        "version": fakelibvirt.FAKE_LIBVIRT_VERSION,
        "hv_version": fakelibvirt.FAKE_QEMU_VERSION,
        "hostname": hostname,
        "host_info": fakelibvirt.HostInfo(
            cpu_nodes=shape.cells,
            cpu_sockets=1,
            cpu_cores=shape.cores,
            cpu_threads=shape.threads,
            kB_mem=memory_gb * units.Mi,
        ),
    }


def power_off(
    driver: Any, _context: Any, instance: Any, *_args: Any, **_kwargs: Any
) -> str:
    """Stand for LibvirtDriver.migrate_disk_and_power_off: there are no disks."""
    driver._destroy(instance)  # noqa: SLF001
    return "{}"

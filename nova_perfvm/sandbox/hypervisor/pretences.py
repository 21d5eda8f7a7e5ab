# SPDX-License-Identifier: Apache-2.0
"""Replace the parts of nova-compute that would touch this machine."""

from __future__ import annotations

import io
from typing import Any, Final
from unittest import mock

from nova.virt.libvirt import driver as libvirt_driver
from nova.virt.libvirt import host as libvirt_host
from oslo_utils import units

from nova_perfvm.sandbox.hypervisor.libvirt import (
    Connection,
    Hardware,
    fakelibvirt,
    imagebackend,
)

# Memory that the fake host itself uses; Nova reports it as used.
_HOST_MEMORY_KB: Final = 2 * units.Mi
_LOCAL_DISK: Final = {"total": 4000, "used": 0, "free": 4000}


def _online_cpus(host: Any) -> set[int]:
    return set(range(host.get_connection().host_info.cpus))


def _available_memory_kb(host: Any) -> int:
    return host.get_connection().host_info.kB_mem - _HOST_MEMORY_KB


def _power_off(
    driver: Any, _context: Any, instance: Any, *_args: Any, **_kwargs: Any
) -> str:
    """Stop a guest; its migration has no disks to move."""
    driver._destroy(instance)  # noqa: SLF001
    return "{}"


# Class, attribute and replacement of methods that read this machine's hardware.
HARDWARE: Final = (
    (libvirt_host.Host, "get_online_cpus", _online_cpus),
    (libvirt_host.Host, "_get_avail_memory_kb", _available_memory_kb),
    (
        libvirt_driver.LibvirtDriver,
        "_get_local_gb_info",
        staticmethod(_LOCAL_DISK.copy),
    ),
    (libvirt_driver.LibvirtDriver, "migrate_disk_and_power_off", _power_off),
)


def pretend(hardware: Hardware) -> None:
    """Make this process's libvirt driver see a fake host of this hardware."""
    connection = Connection(hardware)
    fakelibvirt.LibvirtFixture().setUp()
    imagebackend.LibvirtImageBackendFixture().setUp()
    for owner, name, value in HARDWARE:
        mock.patch.object(owner, name, value).start()
    mock.patch.multiple(
        libvirt_host.Host,
        get_connection=lambda _host: connection,
        # The fake host has the cpu cgroup controller, whatever this machine has.
        _has_cgroupsv1_cpu_controller=lambda _host: False,
        _has_cgroupsv2_cpu_controller=lambda _host: True,
    ).start()
    mock.patch.multiple(
        libvirt_driver.LibvirtDriver,
        _get_disk_over_committed_size_total=lambda _: connection.disk_gb() * units.Gi,
        _create_image=lambda *_args, **_kwargs: (False, False),
        _get_host_sysinfo_serial_os=lambda _driver: None,
        get_volume_connector=lambda *_args: {"host": hardware.hostname},
    ).start()
    mock.patch.multiple(
        libvirt_driver.libvirt_utils,
        file_open=lambda *_args, **_kwargs: io.BytesIO(),
        is_valid_hostname=lambda _name: True,
    ).start()
    mock.patch("nova.privsep.utils.supports_direct_io", lambda *_args: True).start()

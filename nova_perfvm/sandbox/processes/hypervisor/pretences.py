# SPDX-License-Identifier: Apache-2.0
"""What of Nova is replaced in a compute: whatever would touch this machine."""

from __future__ import annotations

import io
from unittest import mock

from nova.virt.libvirt import driver as libvirt_driver
from nova.virt.libvirt import host as libvirt_host
from oslo_utils import units

from nova_perfvm.sandbox.pretended import HOST_MEMORY_KB, LOCAL_DISK, power_off
from nova_perfvm.sandbox.processes.hypervisor.libvirt import (
    Connection,
    Hardware,
    fakelibvirt,
    imagebackend,
)


def pretend(hardware: Hardware) -> None:
    """Let this process's libvirt driver find a host of this hardware."""
    connection = Connection(hardware)
    fakelibvirt.LibvirtFixture().setUp()
    imagebackend.LibvirtImageBackendFixture().setUp()
    cpus = set(range(connection.host_info.cpus))
    free_kb = connection.host_info.kB_mem - HOST_MEMORY_KB

    mock.patch.multiple(
        libvirt_host.Host,
        get_connection=lambda _host: connection,
        get_online_cpus=lambda _host: cpus,
        _get_avail_memory_kb=lambda _host: free_kb,
        # The cgroups of the machine this runs on do not matter.
        _has_cgroupsv1_cpu_controller=lambda _host: False,
        _has_cgroupsv2_cpu_controller=lambda _host: True,
    ).start()
    mock.patch.multiple(
        libvirt_driver.LibvirtDriver,
        _get_local_gb_info=staticmethod(LOCAL_DISK.copy),
        _get_disk_over_committed_size_total=lambda _: connection.disk_gb() * units.Gi,
        _create_image=lambda *_args, **_kwargs: (False, False),
        _get_host_sysinfo_serial_os=lambda _driver: None,
        migrate_disk_and_power_off=power_off,
    ).start()
    mock.patch.multiple(
        libvirt_driver.libvirt_utils,
        file_open=lambda *_args, **_kwargs: io.BytesIO(),
        is_valid_hostname=lambda _name: True,
    ).start()
    mock.patch("nova.privsep.utils.supports_direct_io", lambda *_args: True).start()

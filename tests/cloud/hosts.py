# SPDX-License-Identifier: Apache-2.0
"""Pretended compute hosts: their hardware, and a nova.conf for each."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from typing import TYPE_CHECKING, Any

import fixtures

# Before hypervisor.libvirt, which has a part of it alone where it is not there yet.
import nova.tests.fixtures  # noqa: F401
from nova.compute import manager as compute_manager
from nova.virt import hardware
from nova.virt.libvirt import driver as libvirt_driver

from nova_perfvm import constants as const
from nova_perfvm.policy import HostShape
from tests.hypervisor.libvirt import Connection, Hardware
from tests.nova_differences import PIN_CHECK, pin_check_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# What one host's nova.conf says: {(group or None, option): value}
Options = dict[tuple[str | None, str], Any]


class ShownConnection(Connection):
    """The pretended libvirt of a host, whose guests can be seen."""

    def xml(self) -> dict[str, str]:
        """Return {server's id: XML} of all guests."""
        self._look()
        return {vm.UUIDString(): vm.kept_xml for vm in self._vms.values()}


@dataclasses.dataclass(frozen=True)
class HostSettings:
    """A host's hardware, and the options in its nova.conf that matter here.

    :ivar shape: ``2x20``: NUMA nodes x cores per node[x threads per core]
    :ivar memory_gb: memory of the whole host, split evenly over its nodes
    :ivar dedicated: [compute]cpu_dedicated_set
    :ivar shared: [compute]cpu_shared_set
    :ivar vcpu_pin_set: the deprecated [DEFAULT]vcpu_pin_set
    :ivar provider_yaml: text of a file in [compute]provider_config_location
    :ivar cell: Nova's cell that the host is in
    :ivar named: whether [neutron] has a physical network in name for each NUMA node;
        see :mod:`nova_perfvm.scheduler.steering`
    """

    shape: str = "2x20"
    memory_gb: int = 500
    dedicated: str | None = None
    shared: str | None = None
    vcpu_pin_set: str | None = None
    provider_yaml: str | None = None
    cell: str = "cell1"
    named: bool = False

    def node_of(self, cpu: int) -> int:
        """Return the NUMA node of a CPU, both counted from 0."""
        return cpu // HostShape.parse(self.shape).cell_cpus("threads")

    def options(self) -> Options:
        """Return {(group or None, option): value} for this host's nova.conf."""
        cells = range(HostShape.parse(self.shape).cells if self.named else 0)
        physnets = {f"{const.CELL_PHYSNET}{cell}": cell for cell in cells}
        return {
            ("compute", "cpu_dedicated_set"): self.dedicated,
            ("compute", "cpu_shared_set"): self.shared,
            (None, "vcpu_pin_set"): self.vcpu_pin_set,
            ("neutron", "physnets"): list(physnets),
            **{
                (f"neutron_physnet_{name}", "numa_nodes"): [cell]
                for name, cell in physnets.items()
            },
        }

    def connection(self, hostname: str, directory: str) -> ShownConnection:
        """Return the pretended libvirt of a host with this hardware.

        :param directory: of the guests of all hosts
        """
        domains = f"{directory}/{hostname}/domains"
        hardware = Hardware(hostname, self.shape, self.memory_gb, domains)
        return ShownConnection(hardware)


class _GroupView:
    """One option group, as the compute running in this thread has it."""

    def __init__(self, group: Any, own: dict[str, Any]) -> None:
        self._group = group
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)


class _ConfView:
    """CONF, with the options of the compute running in this thread."""

    def __init__(self, conf: Any) -> None:
        self._conf = conf
        self._thread = threading.local()

    @contextlib.contextmanager
    def seen_with(self, options: Options) -> Iterator[None]:
        before = getattr(self._thread, "options", {})
        self._thread.options = options
        try:
            yield
        finally:
            self._thread.options = before

    def __getattr__(self, name: str) -> Any:
        options = getattr(self._thread, "options", {})
        if (None, name) in options:
            return options[None, name]
        own = {option: own for (group, option), own in options.items() if group == name}
        if not own:
            return getattr(self._conf, name)
        # Groups of networks are one host's alone.
        return _GroupView(getattr(self._conf, name, None), own)


class HostConf(fixtures.Fixture):
    """A nova.conf for every compute, though one CONF serves the process.

    The libvirt driver reads the CPU sets and the host's name anew all the time.
    While one of the driver's methods that do so runs, its thread sees the options
    of the driver's own host in place of CONF's; likewise its compute manager.
    """

    # Whatever reads a CPU set or the host's name, or calls what does.
    METHODS = (
        "_cleanup_resize",
        "_set_host_enabled",
        "check_can_live_migrate_source",
        "get_volume_connector",
        "init_host",
        "_get_pcpu_available",
        "_get_vcpu_available",
        "_get_host_numa_topology",
        "_get_guest_numa_config",
        "_get_guest_xml",
        "check_can_live_migrate_destination",
        "update_provider_tree",
    )

    def _setUp(self) -> None:  # noqa: N802
        self._starting = {}
        self._conf = _ConfView(libvirt_driver.CONF)
        for module in (libvirt_driver, hardware, compute_manager):
            self._patch(module, "CONF", self._conf)
        driver = libvirt_driver.LibvirtDriver
        self._patch(driver, "__init__", self._remembering(driver.__init__))
        owned = [(driver, name) for name in self.METHODS]
        for owner, name in [
            *owned,
            (pin_check_owner(), PIN_CHECK),
        ]:
            self._patch(owner, name, self._for_host(getattr(owner, name)))

    def starting(self, name: str, settings: HostSettings) -> None:
        """Make the driver that starts next one of a host with these settings."""
        self._starting = settings.options() | {(None, "host"): name}

    def _patch(self, owner: Any, name: str, value: Any) -> None:
        self.useFixture(fixtures.MockPatchObject(owner, name, value))

    def _remembering(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(driver: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            driver.perfvm_host_options = self._starting
            original(driver, *args, **kwargs)

        return __init__

    def _for_host(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def with_options(owner: Any, *args: Any, **kwargs: Any) -> Any:
            driver = getattr(owner, "driver", owner)
            # Ironic's driver is of no such host.
            options = getattr(driver, "perfvm_host_options", {})
            with self._conf.seen_with(options):
                return method(owner, *args, **kwargs)

        return with_options

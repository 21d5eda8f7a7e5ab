# SPDX-License-Identifier: Apache-2.0
"""The in-process cloud: what starts it and what can be seen in it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import fixtures
from nova import conf as nova_conf

from nova_perfvm import conf
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.hosts import HostRequest, generate, rendering
from nova_perfvm.generate.options import AVAILABLE_FILTERS, WEIGHT_CLASSES
from nova_perfvm.policy import HostShape
from nova_perfvm.rules.enabled_filters import FILTER, NOVA_FILTERS, NUMA_FILTER
from tests.cloud import guest
from tests.cloud.decisions import Decisions
from tests.cloud.hosts import HostSettings
from tests.cloud.log import Quiet
from tests.cloud.servers import Servers
from tests.cloud.services import Services
from tests.hypervisor.topology import pretended_topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nova_perfvm.policy import Policy
    from tests.cloud.decisions import FilterVerdict
    from tests.cloud.servers import BootedServer

DEFAULT_FILTERS = (*NOVA_FILTERS, FILTER, NUMA_FILTER)
DEFAULT_WEIGHERS = tuple(WEIGHT_CLASSES.values[0].split(","))


class ServiceExitError(PerfVMError):
    """A service of the cloud ended itself while it was starting."""


class EmbeddedCloud(fixtures.Fixture):
    """A real Nova and Placement in this process; also a context manager.

    :param enabled_filters: names of the scheduler's filters, in order
    :param weight_classes: the scheduler's weighers, as Nova's option takes them
    :param policy_file: path of a policy; without it, the built-in default
    :param disable_fallback_pcpu_query: [workarounds]; False lets pinned VMs
        onto hosts without CPU sets
    :param options: further {(group or None, option): value} for nova.conf
    :param cells: how many cells of Nova there are: ``cell1`` and so on
    :cvar SETTINGS: the type of a host's settings
    """

    SETTINGS = HostSettings

    def __init__(
        self,
        *,
        enabled_filters: Sequence[str] = DEFAULT_FILTERS,
        weight_classes: Sequence[str] = DEFAULT_WEIGHERS,
        policy_file: str | None = None,
        disable_fallback_pcpu_query: bool = True,
        options: Any = None,
        cells: int = 1,
    ) -> None:
        super().__init__()
        self._options = {
            ("filter_scheduler", "available_filters"): list(AVAILABLE_FILTERS.values),
            ("filter_scheduler", "enabled_filters"): list(enabled_filters),
            ("filter_scheduler", "weight_classes"): list(weight_classes),
            ("workarounds", "disable_fallback_pcpu_query"): disable_fallback_pcpu_query,
            ("quota", "driver"): "nova.quota.NoopQuotaDriver",
            # On a starved machine a compute may take its time.
            (None, "rpc_response_timeout"): 900,
            (None, "long_rpc_timeout"): 1800,
            # It checks Nova's answers, not us, and takes a tenth of the time.
            ("api", "response_validation"): "ignore",
            # multiqueue is for KVM only
            ("libvirt", "virt_type"): "kvm",
            ("libvirt", "cpu_mode"): "none",
            ("perfvm", "policy_file"): policy_file,
            # What is frozen stays, and clouds come and go in one process.
            ("perfvm", "freeze_objects"): False,
        } | (options or {})
        self._cells = cells
        self._settings = {}
        self._connections = {}

    def setUp(self) -> None:
        """Start all services but the computes.

        :raises ServiceExitError: when a service ended itself, as nova-scheduler
            does with a bad policy; the error's text is what the service said
        """
        try:
            super().setUp()
        except fixtures.MultipleExceptions as errors:
            # The first is the cause, the others come of cleaning up after it.
            raise errors.args[0][1] from None

    def _setUp(self) -> None:  # noqa: N802
        # Services of a cloud without PerfVMFilter know the option, too.
        conf.register_opts(nova_conf.CONF)
        self.useFixture(Quiet())
        self._services = Services(self, self._options, self._cells)
        self._decisions = self.useFixture(Decisions())
        try:
            self._services.start()
        except SystemExit as exit_:
            # A process of its own would end; this one runs other things too.
            raise ServiceExitError(str(exit_)) from exit_
        self.api = self._services.admin_api
        self._guests = self.useFixture(fixtures.TempDir()).path
        self.servers = Servers(self.api, self._services.cells.states)
        self.image = self.create_image()

    def start_host(self, name: str, shape: str = "2x20", **settings: Any) -> str:
        """Start a compute host, and give its name.

        :param shape: ``2x20``: NUMA nodes x cores[x threads per core]
        :param settings: see HostSettings
        """
        settings = self.SETTINGS(shape=shape, **settings)
        self._connections[name] = settings.connection(name, self._guests)
        self._start(name, settings)
        return name

    def start_configured(
        self,
        name: str,
        policy: Policy,
        mode: str,
        shape: str = "2x20",
        memory_gb: int = 500,
        cell: str = "cell1",
        **requested: Any,
    ) -> str:
        """Start a host as ``nova-perfvm host config`` would configure it.

        :param mode: dedicated, shared, mixed or elastic
        :param cell: Nova's cell that the host is in
        :param requested: further members of HostRequest
        """
        settings = configured(policy, mode, shape, memory_gb, **requested)
        return self.start_host(name, shape, memory_gb=memory_gb, cell=cell, **settings)

    def _start(self, name: str, settings: Any) -> None:
        self._settings[name] = settings
        self._services.start_host(name, settings, self._connections[name])

    def create_flavor(
        self,
        name: str,
        vcpus: int,
        memory_mb: int,
        root_gb: int = 0,
        extra_specs: dict[str, str] | None = None,
    ) -> str:
        """Create a flavor through the API, and give its name, also its id.

        :raises OpenStackApiException: 400 for extra specs that Nova refuses
        """
        body = {
            "flavor": {
                "id": name,
                "name": name,
                "vcpus": vcpus,
                "ram": memory_mb,
                "disk": root_gb,
            },
        }
        self.api.post_flavor(body)
        if extra_specs:
            self.api.post_extra_spec(name, {"extra_specs": extra_specs})
        return name

    def create_image(self, **properties: Any) -> str:
        """Create an image with these properties, and give its id."""
        image = {
            "id": str(uuid.uuid4()),
            "name": "image",
            "status": "active",
            "container_format": "bare",
            "disk_format": "raw",
            "size": 25165824,
            "min_ram": 0,
            "min_disk": 0,
            "protected": False,
            "visibility": "public",
            "properties": properties,
        }
        return self._services.glance.create(None, image)["id"]

    def boot(self, flavor: str, *, image: str | None = None, **options: Any) -> Any:
        """Create servers; see Servers.boot for the options."""
        return self.servers.boot(flavor, image=image or self.image, **options)

    def guest(self, server: BootedServer) -> guest.EmbeddedGuest:
        """Return the guest that Nova generated for a server on its host.

        :raises KeyError: when the server is on no host
        """
        server = self.servers.show(server)
        xml = self._connections[server.host].xml()[server.id]
        return guest.parse(xml, self._settings[server.host].node_of)

    def verdicts(self, server: BootedServer) -> list[FilterVerdict]:
        """Return PerfVMFilter's Verdicts on a server's requests, oldest first."""
        return self._decisions.of(server.id)


def configured(
    policy: Policy, mode: str, shape: str, memory_gb: int, **requested: Any
) -> dict[str, Any]:
    """Return the members of HostSettings that a generated configuration gives."""
    topology = pretended_topology(HostShape.parse(shape), memory_gb)
    config = generate(HostRequest(policy, topology, mode=mode, **requested))
    options = {setting.option: setting.values for setting in config.nova}
    return {
        "dedicated": "".join(options.get("cpu_dedicated_set", ())) or None,
        "shared": "".join(options.get("cpu_shared_set", ())) or None,
        "vcpu_pin_set": "".join(options.get("vcpu_pin_set", ())) or None,
        "named": "physnets" in options,
        "provider_yaml": rendering.as_files(config).get(rendering.PROVIDER_YAML),
    }

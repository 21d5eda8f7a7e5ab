# SPDX-License-Identifier: Apache-2.0
"""The in-process cloud: what starts it and what can be seen in it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import fixtures
from nova import conf as nova_conf
from nova.tests import fixtures as nova_fixtures

from nova_perfvm import conf
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.hosts import HostRequest, generate, rendering
from nova_perfvm.generate.options import (
    AVAILABLE_FILTERS,
    FILTER,
    NOVA_FILTERS,
    NOVAS_NUMA_FILTER,
    NUMA_FILTER,
    WEIGHT_CLASSES,
)
from nova_perfvm.policy import HostShape
from nova_perfvm.sandbox.embedded import guest
from nova_perfvm.sandbox.embedded.decisions import Decisions
from nova_perfvm.sandbox.embedded.hosts import HostSettings
from nova_perfvm.sandbox.embedded.log import Log, Quiet
from nova_perfvm.sandbox.embedded.servers import ServerOperations, at_once, until
from nova_perfvm.sandbox.embedded.services import Services
from nova_perfvm.sandbox.embedded.volumes import Reimaging
from nova_perfvm.sandbox.topology import pretended_topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nova_perfvm.policy import Policy
    from nova_perfvm.sandbox.embedded.decisions import FilterVerdict
    from nova_perfvm.sandbox.embedded.servers import BootedServer

DEFAULT_FILTERS = (*NOVA_FILTERS, FILTER, NUMA_FILTER)
FILTERS_WITHOUT_PERFVM = (*NOVA_FILTERS, NOVAS_NUMA_FILTER)
DEFAULT_WEIGHERS = tuple(WEIGHT_CLASSES.values[0].split(","))
NOVA_WEIGHERS = DEFAULT_WEIGHERS[:1]


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
    """

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
        self._stdlog = None
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
        self.log = self.useFixture(Log())
        self._decisions = self.useFixture(Decisions())
        try:
            self._services.start()
        except SystemExit as exit_:
            # A process of its own would end; this one runs other things too.
            raise ServiceExitError(str(exit_)) from exit_
        finally:
            # The services forget it when they are cleaned up.
            self._stdlog = vars(self._services).get("stdlog")
        self.api = self._services.admin_api
        self.member_api = self._services.api_fixture.api
        self.member_api.microversion = self.api.microversion
        self._guests = self.useFixture(fixtures.TempDir()).path
        self.useFixture(Reimaging(self._services.cinder, self.api))
        network = nova_fixtures.NeutronFixture.network_1["id"]
        self.servers = ServerOperations(
            self.api, self._allocations, self._services.cells.states, network
        )
        self.image = self.create_image()

    def start_host(self, name: str, shape: str = "2x20", **settings: Any) -> str:
        """Start a compute host, and give its name.

        :param shape: ``2x20``: NUMA nodes x cores[x threads per core]
        :param settings: see HostSettings
        """
        settings = HostSettings(shape=shape, **settings)
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
        configured = _configured(policy, mode, shape, memory_gb, **requested)
        return self.start_host(
            name, shape, memory_gb=memory_gb, cell=cell, **configured
        )

    def restart_configured(self, name: str, policy: Policy, mode: str) -> None:
        """Start a host's compute again, as another policy has it configured."""
        was = self._settings[name]
        self.restart_host(name, **_configured(policy, mode, was.shape, was.memory_gb))

    def domains(self, host: str) -> dict[str, str]:
        """Return {server's id: the XML that Nova generated} of a host's domains."""
        return dict(sorted(self._connections[host].xml().items()))

    def restart_host(self, name: str, **changes: Any) -> None:
        """Start a host's compute again, with other settings if given."""
        settings = self._settings[name]
        if changes:
            settings = type(settings)(**(vars(settings) | changes))
        self._services.stop_host(name)
        self._start(name, settings)

    def _start(self, name: str, settings: Any) -> None:
        self._settings[name] = settings
        self._services.start_host(name, settings, self._connections[name])

    def restart_scheduler(self, enabled_filters: Sequence[str]) -> None:
        """Start the scheduler again with these filters."""
        self._services.restart_scheduler(list(enabled_filters))

    def fail_host(self, name: str, *, stop: bool = False) -> None:
        """Let Nova take a host for down, as a fencing agent would.

        :param stop: end its compute, too; its guests stay as they are
        """
        self._force_down(name, forced_down=True)
        if stop:
            self._services.stop_host(name)

    def recover_host(self, name: str) -> None:
        """Start the compute of a host that was stopped, and let Nova know."""
        self._start(name, self._settings[name])
        self._services.end_deleted_guests(name)
        # Not before it has ended the guests that were evacuated.
        self._force_down(name, forced_down=False)
        until(lambda: self._service(name)["state"] == "up", f"report of {name}")

    def _force_down(self, name: str, *, forced_down: bool) -> None:
        service = self._service(name)["id"]
        self.api.put_service(service, {"forced_down": forced_down})

    def _service(self, name: str) -> dict[str, Any]:
        (service,) = self.api.get_services(host=name, binary="nova-compute")
        return service

    def label_hosts(self, class_name: str, *hosts: str) -> None:
        """Put hosts into an aggregate with metadata ``perfvm:class``."""
        self.aggregate_hosts({"perfvm:class": class_name}, *hosts)

    def aggregate_hosts(self, metadata: dict[str, str], *hosts: str) -> None:
        """Put hosts into an aggregate with some metadata."""
        body = {"aggregate": {"name": str(uuid.uuid4())}}
        aggregate = self.api.post_aggregate(body)["id"]
        self.api.api_post(
            f"/os-aggregates/{aggregate}/action",
            {"set_metadata": {"metadata": metadata}},
        )
        for host in hosts:
            self.api.add_host_to_aggregate(aggregate, host)

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

    def boot_at_once(
        self, flavors: Sequence[str], *, images: Sequence[str] | None = None
    ) -> list[BootedServer]:
        """Create a server of each flavor, all at the same time.

        :param images: one for each flavor; without them all have the cloud's own
        """
        images = images or [self.image] * len(flavors)
        return at_once(
            lambda asked: self.boot(asked[0], image=asked[1]),
            list(zip(flavors, images, strict=True)),
        )

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

    def run_periodics(self) -> None:
        """Let every compute audit its resources, as it does each minute."""
        self._services._run_periodics()  # noqa: SLF001

    def usages(self, host: str) -> dict[str, int]:
        """Return {resource class: used} of a host, from Placement."""
        return self._provider(host, "usages")["usages"]

    def capacity(self, host: str) -> dict[str, int]:
        """Return {resource class: amount that may be used}, from Placement."""
        inventories = self._provider(host, "inventories")["inventories"]
        return {
            name: int((found["total"] - found["reserved"]) * found["allocation_ratio"])
            for name, found in inventories.items()
        }

    def consumers(self, host: str) -> set[str]:
        """Return the UUIDs of servers and migrations with allocations on a host."""
        return set(self._provider(host, "allocations")["allocations"])

    def traits(self, host: str) -> set[str]:
        """Return the traits of a host, from Placement."""
        return set(self._provider(host, "traits")["traits"])

    def nova_log(self) -> str:
        """Return all that Nova's services and Placement logged, from INFO up."""
        return self._stdlog.logger.output if self._stdlog else ""

    def _provider(self, host: str, what: str) -> dict[str, Any]:
        provider = self._services.compute_rp_uuids[host]
        return self._placement(f"/resource_providers/{provider}/{what}")

    def _allocations(self, server_id: str) -> dict[str, Any]:
        return self._placement(f"/allocations/{server_id}")["allocations"]

    def _placement(self, path: str) -> dict[str, Any]:
        # Traits are known from 1.6 on.
        return self._services.placement.get(path, version="1.6").body


def _configured(
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

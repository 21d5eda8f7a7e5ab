# SPDX-License-Identifier: Apache-2.0
"""Servers of both classes on hosts that nobody else uses."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from oslo_serialization import jsonutils
from tempest import config, test
from tempest.lib import decorators
from tempest.lib import exceptions as lib_exc
from tempest.lib.common import api_version_utils
from tempest.lib.common.utils import data_utils

from nova_perfvm import constants as const
from nova_perfvm.microversions import COMPUTE, PLACEMENT
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.tempest_plugin import inventories

CONF = config.CONF

# Of NoValidHost, and of conductor when every host that was left refused.
REFUSALS = ("No valid host", "Exceeded maximum number of retries")


@decorators.serial
class PerfVMTest(test.BaseTestCase):
    """Tests with the hosts to themselves: a VM of one class may keep the other away.

    The administrator asks for everything: only they choose hosts and see them.
    """

    credentials = ("admin",)
    with_network = False

    min_microversion = COMPUTE
    max_microversion = "latest"

    @classmethod
    def skip_checks(cls) -> None:
        """Skip where the cloud is not configured for the plugin."""
        super().skip_checks()
        if not (CONF.service_available.nova and CONF.service_available.perfvm):
            raise cls.skipException(
                "[service_available]perfvm is False: nova-perfvm is not there"
            )
        if not (CONF.perfvm.high_performance_flavor and CONF.perfvm.general_flavor):
            raise cls.skipException(
                "[perfvm] names no flavors: nova-perfvm tempest config prints them"
            )
        api_version_utils.check_skip_with_microversion(
            cls.min_microversion,
            cls.max_microversion,
            CONF.compute.min_microversion,
            CONF.compute.max_microversion,
        )

    @classmethod
    def setup_credentials(cls) -> None:
        """Ask for the networks that the tests need."""
        needed = dict.fromkeys(("network", "subnet", "dhcp"), cls.with_network)
        cls.set_network_resources(**needed)
        super().setup_credentials()

    @classmethod
    def setup_clients(cls) -> None:
        """Take Tempest's clients."""
        super().setup_clients()
        cls.servers = cls.os_admin.servers_client
        cls.flavors = cls.os_admin.flavors_client
        cls.services = cls.os_admin.services_client
        cls.hypervisors = cls.os_admin.hypervisor_client
        cls.quotas = cls.os_admin.quotas_client
        cls.placement = cls.os_admin.placement_client
        cls.providers = cls.os_admin.resource_providers_client

    @classmethod
    def resource_setup(cls) -> None:
        """Find the flavors, and make room in the project's quotas."""
        super().resource_setup()
        cls.setup_api_microversion_fixture(
            compute_microversion=cls.min_microversion, placement_microversion=PLACEMENT
        )
        found = cls.flavors.list_flavors(detail=True, is_public="None")["flavors"]
        cls.flavor_of = {flavor["name"]: flavor for flavor in found}
        cls.high_performance = cls._flavor("high_performance_flavor")
        cls.general = cls._flavor("general_flavor")
        cls._lift_quotas(cls.os_admin.credentials.tenant_id)

    @classmethod
    def _lift_quotas(cls, project: str) -> None:
        """Let a project have any number of VMs until the tests are over."""
        before = cls.quotas.show_quota_set(project)["quota_set"]
        names = ("cores", "instances", "ram")
        old = {name: before[name] for name in names}
        cls.addClassResourceCleanup(
            cls.quotas.update_quota_set, project, force=True, **old
        )
        # 20 cores, Nova's default, are one VM.
        cls.quotas.update_quota_set(project, force=True, **dict.fromkeys(names, -1))

    @classmethod
    def _flavor(cls, option: str) -> str:
        """Return the id of the flavor that an option names."""
        name = CONF.perfvm[option]
        if name not in cls.flavor_of:
            raise lib_exc.InvalidConfiguration(
                f"[perfvm]{option} = {name}: the cloud has no such flavor"
            )
        return cls.flavor_of[name]["id"]

    def need_exclusive_hosts(self) -> None:
        """Skip where VMs of both classes may be on one host."""
        if CONF.perfvm.exclusive != "host":
            raise self.skipException(
                f"[perfvm]exclusive is {CONF.perfvm.exclusive}: a host may have VMs of "
                "both classes"
            )

    # Servers

    def create(self, flavor: str, host: str | None = None) -> str:
        """Ask for a server, by default without a network; return its id.

        :param flavor: id
        :param host: the only host that may take it
        """
        wish = {} if host is None else {"host": host}
        server = self.servers.create_server(
            name=data_utils.rand_name(
                prefix=CONF.resource_name_prefix, name=self.__class__.__name__
            ),
            flavorRef=flavor,
            imageRef=CONF.compute.image_ref,
            networks=self.networks(),
            **wish,
        )["server"]
        self.addCleanup(self.delete, server["id"])
        return server["id"]

    def networks(self) -> Any:
        """Return what a server asks of Neutron."""
        return "none"

    def show(self, server: str) -> dict[str, Any]:
        return self.servers.show_server(server)["server"]

    def wait(self, server: str, *states: str) -> dict[str, Any]:
        """Return a server that has come to rest in one of the states, or in ERROR.

        :raises TimeoutException: after [compute]build_timeout seconds
        """
        for _ in repeat(CONF.compute.build_timeout):
            shown = self.show(server)
            idle = shown["OS-EXT-STS:task_state"] is None
            # Nova says that it failed, and a moment later why.
            failed = shown["status"] == "ERROR" and "fault" in shown
            if idle and (failed or shown["status"] in states):
                return shown
        raise lib_exc.TimeoutException(
            f"server {server} is {shown['status']}, task "
            f"{shown['OS-EXT-STS:task_state']}, instead of {' or '.join(states)}"
        )

    def boot(self, flavor: str, host: str | None = None) -> dict[str, Any]:
        """Boot a server that has to become ACTIVE; return it."""
        server = self.wait(self.create(flavor, host), "ACTIVE")
        self.assertEqual("ACTIVE", server["status"], server.get("fault"))
        return server

    def boot_refused(self, flavor: str, host: str | None = None) -> None:
        """Ask for a server for which there has to be no host."""
        server = self.wait(self.create(flavor, host), "ACTIVE")
        self.assertEqual("ERROR", server["status"], f"it is on {host_of(server)}")
        self.assertIn("No valid host was found", server["fault"]["message"])
        self.assertIsNone(host_of(server))
        self.delete(server["id"])

    def assert_closed(self, flavor: str, host: str) -> None:
        """Judge that a host refuses the other class, if the policy says so."""
        if CONF.perfvm.exclusive == "host":
            self.boot_refused(flavor, host)

    def delete(self, server: str) -> None:
        """Delete a server, if it is there; wait until it is gone and holds nothing.

        Nova gives back what a server held after it has forgotten the server.
        """
        with contextlib.suppress(lib_exc.NotFound):
            self.servers.delete_server(server)
        for _ in repeat(CONF.compute.build_timeout):
            if self.is_gone(server):
                return
        raise lib_exc.TimeoutException(f"server {server} is not deleted")

    def is_gone(self, server: str) -> bool:
        """Return whether neither Nova nor Placement knows a server."""
        with contextlib.suppress(lib_exc.NotFound):
            self.show(server)
            return False
        return not self.placement.list_allocations(server)["allocations"]

    # Hosts

    def hosts_up(self) -> list[str]:
        """Return the enabled compute hosts whose nova-compute reports."""
        found = self.services.list_services(binary="nova-compute")["services"]
        return [
            s["host"] for s in found if (s["status"], s["state"]) == ("enabled", "up")
        ]

    def empty_hosts(self) -> list[str]:
        """Return the hosts that are up and have no server of anyone."""
        return self.await_free([h for h in self.hosts_up() if not self.servers_of(h)])

    def await_free(self, hosts: list[str]) -> list[str]:
        """Wait until nothing of hosts without servers is taken; return those.

        A VM that was deleted where it had just arrived keeps its CPUs until
        nova-compute's next periodic task, which comes once a minute.
        """
        free: list[str] = []
        for _ in repeat(CONF.compute.build_timeout):
            computes = self.computes()
            free = [h for h in hosts if h in computes and not computes[h]["vcpus_used"]]
            if free == hosts:
                break
        return free

    def computes(self) -> dict[str, dict[str, Any]]:
        """Return {host: its hypervisor, whose id is that of its provider}."""
        shown = self.hypervisors.list_hypervisors(detail=True)["hypervisors"]
        return {compute["service"]["host"]: compute for compute in shown}

    def servers_of(self, host: str) -> list[dict[str, Any]]:
        """Return every project's servers on a host."""
        return self.servers.list_servers(detail=True, all_tenants=True, host=host)[
            "servers"
        ]

    def boot_on_empty_host(self, flavor: str) -> tuple[str, dict[str, Any]]:
        """Boot a server on some empty host; return the host and the server.

        Hosts that serve the other class only refuse.
        """
        hosts = self.empty_hosts()
        for host in hosts:
            server = self.wait(self.create(flavor, host), "ACTIVE")
            if server["status"] == "ACTIVE":
                return host, server
            self.assertIn("No valid host was found", server["fault"]["message"])
            self.delete(server["id"])
        raise self.no_host_takes(flavor, f"empty are: {', '.join(hosts) or '-'}")

    def no_host_takes(self, flavor: str, why: str) -> Exception:
        """Return the exception that skips a test: no host takes a flavor."""
        name = next(n for n, one in self.flavor_of.items() if one["id"] == flavor)
        skip: Exception = self.skipException(
            f"no empty host takes flavor {name}; {why}"
        )
        return skip

    def serves(self, host: str, flavor: str) -> bool:
        """Return whether a host has what a flavor claims, whoever is on it now."""
        if flavor == self.high_performance:
            return self.room(host) > 0
        return flavor != self.general or any("VCPU" in p for p in self.tree_of(host))

    def room(self, host: str) -> int:
        """Return how many high-performance VMs a host takes when it is empty."""
        return inventories.room(
            self.tree_of(host),
            self.flavor_of[CONF.perfvm.high_performance_flavor]["extra_specs"],
            CONF.perfvm.max_per_host,
        )

    def tree_of(self, host: str) -> list[inventories.Inventories]:
        """Return the inventories of each provider of a host."""
        root = self.computes()[host]["id"]
        found = self.providers.list_resource_providers(in_tree=root)
        return [self.inventories_of(p["uuid"]) for p in found["resource_providers"]]

    def fill(self) -> tuple[str, list[str]]:
        """Fill an empty host with high-performance VMs; return it and their ids."""
        host, first = self.boot_on_empty_host(self.high_performance)
        others = [
            self.boot(self.high_performance, host)["id"]
            for _ in range(self.room(host) - 1)
        ]
        return host, [first["id"], *others]

    # What APIs show

    def pins(self, server: str) -> dict[int, list[int]]:
        """Return {NUMA node of the host: the CPUs of the server's vCPUs on it}."""
        _, body = self.servers.get(f"servers/{server}/topology")
        return {
            node["host_node"]: list(node["cpu_pinning"].values())
            for node in jsonutils.loads(body)["nodes"]
        }

    def assert_pinned(self, server: str) -> tuple[int, frozenset[int]]:
        """Judge a pinned VM's topology; return its node and its CPUs."""
        pins = self.pins(server)
        self.assertEqual(1, len(pins), f"NUMA nodes of {server}: {pins}")
        ((node, cpus),) = pins.items()
        vcpus = self.show(server)["flavor"]["vcpus"]
        self.assertEqual(vcpus, len(cpus))
        self.assertEqual(vcpus, len(set(cpus)), f"shared CPUs: {cpus}")
        if SCHEMES[CONF.perfvm.placement].steers:
            claimed = self.allocated(server, const.RC_CELL_CPU)
            self.assertEqual([node], [*map(self.node_of, claimed)])
        return node, frozenset(cpus)

    def node_of(self, provider: str) -> int:
        """Return the NUMA node of a host that a provider stands for."""
        name = self.providers.show_resource_provider(provider)["name"]
        return int(name.rpartition(const.CELL_SUFFIX)[2])

    def assert_disjoint(self, servers: list[str]) -> None:
        """Judge the pinned VMs of one host."""
        taken: dict[int, str] = {}
        for server in servers:
            _, cpus = self.assert_pinned(server)
            self.assertEqual({}, {cpu: taken[cpu] for cpu in cpus & taken.keys()})
            taken |= dict.fromkeys(cpus, server)

    def allocated(self, server: str, resource: str) -> dict[str, int]:
        """Return {resource provider: how much of a resource the server has of it}."""
        found = self.placement.list_allocations(server)["allocations"]
        return {
            provider: given["resources"][resource]
            for provider, given in found.items()
            if resource in given["resources"]
        }

    def inventories_of(self, provider: str) -> inventories.Inventories:
        """Return {resource class: its inventory} of a provider."""
        found = self.providers.list_resource_provider_inventories(provider)
        return found["inventories"]


def repeat(seconds: float) -> Iterator[None]:
    """Go through a loop's body for some time, at least once, with pauses."""
    deadline = time.monotonic() + seconds
    yield
    while time.monotonic() < deadline:
        time.sleep(CONF.compute.build_interval)
        yield


def host_of(server: dict[str, Any]) -> str | None:
    """Return the host of a server as the administrator sees it."""
    return server["OS-EXT-SRV-ATTR:host"]

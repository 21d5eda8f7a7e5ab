# SPDX-License-Identifier: Apache-2.0
"""Base class of tests that boot servers of both classes on empty hosts."""

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
from nova_perfvm.facts.children import node_of
from nova_perfvm.microversions import COMPUTE, PLACEMENT
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.tempest_plugin import inventories

CONF = config.CONF

# Messages of NoValidHost, and of nova-conductor after every alternate host refused.
REFUSALS = ("No valid host", "Exceeded maximum number of retries")


@decorators.serial
class PerfVMTest(test.BaseTestCase):
    """Base of the tests, which run serially, as a VM may keep other classes off a host.

    All requests have the administrator's credentials, which choosing and seeing hosts
    requires.
    """

    credentials = ("admin",)
    with_network = False

    min_microversion = COMPUTE
    max_microversion = "latest"

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        if not (CONF.service_available.nova and CONF.service_available.perfvm):
            raise cls.skipException(
                "[service_available]perfvm is False: the cloud has no nova-perfvm"
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
        needed = dict.fromkeys(("network", "subnet", "dhcp"), cls.with_network)
        cls.set_network_resources(**needed)
        super().setup_credentials()

    @classmethod
    def setup_clients(cls) -> None:
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
        """Set a project's quotas to unlimited until the class's tests are over."""
        before = cls.quotas.show_quota_set(project)["quota_set"]
        names = ("cores", "instances", "ram")
        old = {name: before[name] for name in names}
        cls.addClassResourceCleanup(
            cls.quotas.update_quota_set, project, force=True, **old
        )
        # Nova's default quota of 20 cores allows one high-performance VM.
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
        """Skip the test where a host may have VMs of both classes."""
        if CONF.perfvm.exclusive != "host":
            raise self.skipException(
                f"[perfvm]exclusive is {CONF.perfvm.exclusive}: a host may have VMs of "
                "both classes"
            )

    # Servers

    def create(self, flavor: str, host: str | None = None) -> str:
        """Create a server, by default without a network; return its ID.

        :param flavor: ID of the flavor
        :param host: the only host on which the server may land; None for any host
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
        """Return the ``networks`` of a request for a server."""
        return "none"

    def show(self, server: str) -> dict[str, Any]:
        return self.servers.show_server(server)["server"]

    def wait(self, server: str, *states: str) -> dict[str, Any]:
        """Wait until a server without a task is in one of the states, or in ERROR.

        :returns: the server, as Nova shows it
        :raises TimeoutException: after [compute]build_timeout seconds
        """
        for _ in repeat(CONF.compute.build_timeout):
            shown = self.show(server)
            idle = shown["OS-EXT-STS:task_state"] is None
            # Nova sets the status ERROR first, and the fault a moment later.
            failed = shown["status"] == "ERROR" and "fault" in shown
            if idle and (failed or shown["status"] in states):
                return shown
        raise lib_exc.TimeoutException(
            f"server {server} is {shown['status']}, task "
            f"{shown['OS-EXT-STS:task_state']}, instead of {' or '.join(states)}"
        )

    def boot(self, flavor: str, host: str | None = None) -> dict[str, Any]:
        """Boot a server, assert that it is ACTIVE, and return it."""
        server = self.wait(self.create(flavor, host), "ACTIVE")
        self.assertEqual("ACTIVE", server["status"], server.get("fault"))
        return server

    def boot_refused(self, flavor: str, host: str | None = None) -> None:
        """Create a server, and assert that Nova finds no valid host for it."""
        server = self.wait(self.create(flavor, host), "ACTIVE")
        self.assertEqual("ERROR", server["status"], f"it is on {host_of(server)}")
        self.assertIn("No valid host was found", server["fault"]["message"])
        self.assertIsNone(host_of(server))
        self.delete(server["id"])

    def assert_closed(self, flavor: str, host: str) -> None:
        """Assert that a host refuses a flavor, if hosts are exclusive."""
        if CONF.perfvm.exclusive == "host":
            self.boot_refused(flavor, host)

    def delete(self, server: str) -> None:
        """Delete a server, if it exists; wait until its allocations are gone, too.

        Nova deletes a server's allocations after the server.
        """
        with contextlib.suppress(lib_exc.NotFound):
            self.servers.delete_server(server)
        for _ in repeat(CONF.compute.build_timeout):
            if self.is_gone(server):
                return
        raise lib_exc.TimeoutException(f"server {server} is not deleted")

    def is_gone(self, server: str) -> bool:
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
        """Return the hosts that are up and have no servers."""
        return self.await_free([h for h in self.hosts_up() if not self.servers_of(h)])

    def await_free(self, hosts: list[str]) -> list[str]:
        """Wait until Nova counts no used vCPUs on empty hosts; return the free hosts.

        If a VM was deleted just after its move to a host, its CPUs are free only after
        nova-compute's next periodic task, which runs once a minute.
        """
        free: list[str] = []
        for _ in repeat(CONF.compute.build_timeout):
            computes = self.computes()
            free = [h for h in hosts if h in computes and not computes[h]["vcpus_used"]]
            if free == hosts:
                break
        return free

    def computes(self) -> dict[str, dict[str, Any]]:
        """Return {host: hypervisor}; a hypervisor and its provider have the same ID."""
        shown = self.hypervisors.list_hypervisors(detail=True)["hypervisors"]
        return {compute["service"]["host"]: compute for compute in shown}

    def servers_of(self, host: str) -> list[dict[str, Any]]:
        """Return every project's servers on a host."""
        return self.servers.list_servers(detail=True, all_tenants=True, host=host)[
            "servers"
        ]

    def boot_on_empty_host(self, flavor: str) -> tuple[str, dict[str, Any]]:
        """Boot a server on an empty host; return the host and the server.

        Empty hosts of the other class refuse the server: the next host is tried.
        """
        hosts = self.empty_hosts()
        for host in hosts:
            server = self.wait(self.create(flavor, host), "ACTIVE")
            if server["status"] == "ACTIVE":
                return host, server
            self.assertIn("No valid host was found", server["fault"]["message"])
            self.delete(server["id"])
        raise self.no_host_takes(flavor, f"empty hosts: {', '.join(hosts) or '-'}")

    def no_host_takes(self, flavor: str, why: str) -> Exception:
        """Return the exception that skips a test because no host takes a flavor."""
        name = next(n for n, one in self.flavor_of.items() if one["id"] == flavor)
        skip: Exception = self.skipException(
            f"no empty host takes flavor {name}; {why}"
        )
        return skip

    def serves(self, host: str, flavor: str) -> bool:
        """Return whether the host, if it were empty, would take a flavor's VM."""
        if flavor == self.high_performance:
            return self.room(host) > 0
        return flavor != self.general or any("VCPU" in p for p in self.tree_of(host))

    def room(self, host: str) -> int:
        """Return the number of high-performance VMs that a host takes if empty."""
        return inventories.room(
            self.tree_of(host),
            self.flavor_of[CONF.perfvm.high_performance_flavor]["extra_specs"],
            CONF.perfvm.max_per_host,
        )

    def tree_of(self, host: str) -> list[inventories.Inventories]:
        root = self.computes()[host]["id"]
        found = self.providers.list_resource_providers(in_tree=root)
        return [self.inventories_of(p["uuid"]) for p in found["resource_providers"]]

    def fill(self) -> tuple[str, list[str]]:
        """Fill an empty host with high-performance VMs; return the host and VM IDs."""
        host, first = self.boot_on_empty_host(self.high_performance)
        others = [
            self.boot(self.high_performance, host)["id"]
            for _ in range(self.room(host) - 1)
        ]
        return host, [first["id"], *others]

    # Pins and allocations

    def pins(self, server: str) -> dict[int, list[int]]:
        """Return {NUMA node of the host: CPUs of the server's vCPUs on the node}."""
        _, body = self.servers.get(f"servers/{server}/topology")
        return {
            node["host_node"]: list(node["cpu_pinning"].values())
            for node in jsonutils.loads(body)["nodes"]
        }

    def assert_pinned(self, server: str) -> tuple[int, frozenset[int]]:
        """Assert that a VM is pinned to one NUMA node; return the node and the CPUs."""
        pins = self.pins(server)
        self.assertEqual(1, len(pins), f"NUMA nodes of {server}: {pins}")
        ((node, cpus),) = pins.items()
        vcpus = self.show(server)["flavor"]["vcpus"]
        self.assertEqual(vcpus, len(cpus))
        self.assertEqual(vcpus, len(set(cpus)), f"shared CPUs: {cpus}")
        if SCHEMES[CONF.perfvm.placement].steers:
            claimed = self.allocated(server, const.RC_CELL_CPU)
            shown = map(self.providers.show_resource_provider, claimed)
            self.assertEqual([node], [node_of(provider["name"]) for provider in shown])
        return node, frozenset(cpus)

    def assert_disjoint(self, servers: list[str]) -> None:
        """Assert that servers of a host are pinned, and no two to the same CPU."""
        taken: dict[int, str] = {}
        for server in servers:
            _, cpus = self.assert_pinned(server)
            self.assertEqual({}, {cpu: taken[cpu] for cpu in cpus & taken.keys()})
            taken |= dict.fromkeys(cpus, server)

    def allocated(self, server: str, resource: str) -> dict[str, int]:
        """Return {resource provider: amount of a resource class in the allocation}."""
        found = self.placement.list_allocations(server)["allocations"]
        return {
            provider: given["resources"][resource]
            for provider, given in found.items()
            if resource in given["resources"]
        }

    def inventories_of(self, provider: str) -> inventories.Inventories:
        found = self.providers.list_resource_provider_inventories(provider)
        return found["inventories"]


def repeat(seconds: float) -> Iterator[None]:
    """Yield at intervals for some seconds, at least once; for polling loops."""
    deadline = time.monotonic() + seconds
    yield
    while time.monotonic() < deadline:
        time.sleep(CONF.compute.build_interval)
        yield


def host_of(server: dict[str, Any]) -> str | None:
    """Return the host of a server that was read with admin credentials."""
    return server["OS-EXT-SRV-ATTR:host"]

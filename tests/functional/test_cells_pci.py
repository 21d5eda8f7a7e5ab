# SPDX-License-Identifier: Apache-2.0
"""``placement: cells`` and PCI devices: what nova-compute can keep of a claim.

nova-compute rebuilds a server's PCI requests when it moves, by [pci]alias alone: the
NUMA policy of flavor and image is lost (ResourceTracker._move_claim).
"""

import collections
import itertools
import json

from nova import context, objects
from nova.conf import CONF
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import driver

from nova_perfvm import constants as const
from nova_perfvm.cloud import nova_database
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.verdicts import settings_for
from tests.cloud.hosts import HostSettings
from tests.embedded.servers import ActionFailedError
from tests.functional import cells
from tests.functional.cells import flavor_of
from tests.functional.minutes import MinutesPass
from tests.functional.scheduling import SchedulingMixin
from tests.functional.test_cells_enroll import Case
from tests.functional.test_pci import FILTERS, POLICIES, write_aliases

IDS = {
    "vendor_id": fakelibvirt.PCI_VEND_ID,
    "product_id": fakelibvirt.PCI_PROD_ID,
}


def with_device(policy, vcpus=4):
    """Return the name of the flavor with a device near its CPUs by a NUMA policy."""
    return f"{policy}.{vcpus}c"


class DevicesCase(Case):
    """Hosts of two NUMA nodes with PCI devices.

    :cvar DEVICES: the NUMA nodes of the devices of each host
    :cvar ALIAS_POLICY: the NUMA policy of the alias; None for Nova's default
    :cvar IN_PLACEMENT: whether Placement counts devices
    """

    HOSTS = ()
    DEVICES = {"h1": (0,), "h2": (1,)}  # noqa: RUF012
    ALIAS_POLICY = None
    IN_PLACEMENT = False

    def setUp(self):
        for option, value in (
            ("device_spec", [json.dumps({**IDS, "live_migratable": "true"})]),
            ("report_in_placement", self.IN_PLACEMENT),
        ):
            CONF.set_override(option, value, "pci")
            self.addCleanup(CONF.clear_override, option, "pci")
        self.write_alias(self.ALIAS_POLICY)
        connection = HostSettings.connection

        def with_devices(settings, name, directory):
            made = connection(settings, name, directory)
            made.pci_info = devices_on(*self.DEVICES[name])
            return made

        self.patch(HostSettings, "connection", with_devices)
        # The pretended libvirt is older than live migrations of devices need.
        self.patch(driver.LibvirtDriver, "_check_pci_whitelist", lambda _driver: None)
        super().setUp()
        self.useFixture(MinutesPass(self.cloud))
        for policy in POLICIES:
            for vcpus in (4, 8, 20):
                self.create_with_device(policy, vcpus)
        for host in self.DEVICES:
            self.start(host)
            self.enroll(host)

    def start_cloud(self, **options):
        super().start_cloud(enabled_filters=FILTERS, **options)

    def create_with_device(self, policy, vcpus):
        plain = self.cloud.api.get_flavors()
        (id_,) = (f["id"] for f in plain if f["name"] == flavor_of(vcpus))
        specs = self.cloud.api.api_get(f"/flavors/{id_}/os-extra_specs").body
        specs = specs["extra_specs"] | {
            "pci_passthrough:alias": "dev:1",
            "hw:pci_numa_affinity_policy": policy,
        }
        memory_mb = cells.MEMORY_GB * 1024
        name = with_device(policy, vcpus)
        self.cloud.create_flavor(name, vcpus, memory_mb, 0, specs)

    def write_alias(self, policy):
        alias = {"name": "dev", "live_migratable": "true", **IDS}
        if policy:
            alias["numa_policy"] = policy
        write_aliases(self, [alias], in_placement=self.IN_PLACEMENT)

    def occupy(self, host, node, vcpus=4):
        """Boot a server without a device on a NUMA node of a host."""
        others = []
        while True:
            server = self.boot(flavor_of(vcpus), host=host)
            if self.nodes(server) == [node]:
                break
            others.append(server)
        for other in others:
            self.servers.delete(other)
        return server

    def devices(self, server, host):
        """Return addresses and NUMA nodes of a server's devices of a host."""
        admin = context.get_admin_context()
        cell = objects.InstanceMapping.get_by_instance_uuid(admin, server.id)
        with context.target_cell(admin, cell.cell_mapping) as targeted:
            node = objects.ComputeNode.get_by_host_and_nodename(targeted, host, host)
            found = objects.PciDeviceList.get_by_instance_uuid(targeted, server.id)
            mine = [device for device in found if device.compute_node_id == node.id]
            return [(device.address, device.numa_node) for device in mine]

    def assert_kept(self, server, host, node, *, near=True):
        """Look that Nova and Placement have a server on a node, and its device."""
        now = self.servers.show(server)
        self.assertEqual((host, ""), (now.host, now.fault))
        self.assertEqual([node], self.nodes(server))
        # After an evacuation it has those of the failed host, too.
        held = [n for n in self.allocations(server) if n.startswith(f"{host}_")]
        held.remove(f"{host}_perfvm_cell_{node}")
        ((address, numa_node),) = self.devices(server, host)
        self.assertEqual(near, numa_node == node)
        counted = [f"{host}_{address}"] if self.IN_PLACEMENT else []
        self.assertEqual(counted, held)


def devices_on(*nodes):
    """Return devices of a host, one on each of these NUMA nodes."""
    found = fakelibvirt.HostPCIDevicesInfo(num_pci=0, num_pfs=0, num_vfs=0)
    for number, node in enumerate(nodes):
        found.add_device(
            dev_type="PCI",
            bus=0x81,
            slot=number,
            function=0,
            iommu_group=40 + number,
            numa_node=node,
        )
    return found


class MovesCase(DevicesCase):
    """Every way to move, from a device on one node to one on the other, and back.

    Of each host the node without the device is the fuller one.
    """

    def setUp(self):
        super().setUp()
        self.occupy("h1", 1)
        self.occupy("h2", 0)

    def move(self, policy):
        """Move a server of a NUMA policy, and look after each move."""
        server = self.boot(with_device(policy), host="h1")
        self.at(server, "h1")
        for there, back in (("h2", "h1"), ("h1", "h2")):
            moved = self.servers.cold_migrate(server)
            self.at(moved, there)
            self.servers.revert(moved)
            self.at(server, back)
            self.cloud.run_periodics()
            moved = self.servers.cold_migrate(server)
            self.servers.confirm(moved)
            self.at(server, there)
            self.cloud.run_periodics()
        for vcpus, there in ((8, "h2"), (4, "h1")):
            resized = self.servers.resize(server, with_device(policy, vcpus))
            self.servers.confirm(resized)
            self.at(server, there)
            self.cloud.run_periodics()
        for there in ("h2", "h1"):
            self.servers.live_migrate(server)
            self.at(server, there)
            self.cloud.run_periodics()
        for there in ("h2", "h1"):
            shelved = self.servers.shelve(server)
            self.cloud.run_periodics()
            self.servers.unshelve(shelved, there)
            self.at(server, there)
        for back, there in (("h1", "h2"), ("h2", "h1")):
            self.cloud.fail_host(back, stop=True)
            self.servers.evacuate(server)
            self.at(server, there)
            self.cloud.recover_host(back)
            self.cloud.run_periodics()
        self.assertEqual(set(), self.found())

    def at(self, server, host):
        self.assert_kept(server, host, self.DEVICES[host][0])


class TestMoves(MovesCase):
    """tests/long has the other policies, and devices in Placement."""

    def test_preferred(self):
        self.move("preferred")


class TestFullNodes(DevicesCase):
    """The node beside h2's device has no CPUs free."""

    def setUp(self):
        super().setUp()
        self.blocker = self.occupy("h2", 1, 20)

    def plan(self):
        """Drain h1 by cold migrations; return the exit status and what was said."""
        status, rows, said = self.run_json(
            "plan",
            "drain",
            "h1",
            "--cold",
            "--from-nova-db",
            "--execute",
            "--yes",
            *self.policy_file(),
        )
        return status, [row["State"] for row in rows], said

    def assert_stays(self, server):
        """Look that explain, plans and the scheduler refuse to move a server."""
        asked = ("explain", "--server", server.id, "--from-nova-db")
        status, rows, said = self.run_json(*asked, *self.policy_file())
        reasons = {host: row["Reason"] for row in rows for host in row["Hosts"]}
        self.assertEqual(const.NOVA_PCI_NUMA, reasons.get("h2"), (status, rows, said))
        status, states, said = self.plan()
        self.assertEqual([], states, said)
        self.assertIn("no host was found for it", said)
        for move in (self.servers.cold_migrate, self.resize):
            error = self.assertRaises(ActionFailedError, move, server)
            self.assertIn("No valid host", error.detail)
            self.assert_kept(server, "h1", 0)
            self.assertEqual("ACTIVE", self.servers.show(server).status)

    def resize(self, server):
        return self.servers.resize(server, with_device("preferred", 8))

    def test_no_move_breaks_a_server(self):
        server = self.boot(with_device("preferred"), host="h1")
        self.assert_stays(server)
        # nova-compute unshelves by the policy of the flavor.
        shelved = self.servers.shelve(server)
        self.cloud.run_periodics()
        self.servers.unshelve(shelved, "h2")
        self.assert_kept(server, "h2", 0, near=False)
        self.cloud.run_periodics()
        self.servers.cold_migrate(server)
        self.servers.confirm(server)
        self.assert_kept(server, "h1", 0)
        self.cloud.run_periodics()
        # After a move its record has the policy of the alias.
        self.assert_stays(server)
        shelved = self.servers.shelve(server)
        self.cloud.run_periodics()
        self.assertRaises(ActionFailedError, self.servers.unshelve, shelved, "h2")
        self.servers.unshelve(shelved, "h1")
        self.assert_kept(server, "h1", 0)

        self.servers.delete(self.blocker)
        self.cloud.run_periodics()
        status, states, said = self.plan()
        self.assertEqual((0, ["done"]), (status, states), said)
        self.assert_kept(server, "h2", 1)
        self.assertEqual(set(), self.found())


class TestOrder(DevicesCase):
    """VMs with devices come to these, and leave room for others with devices."""

    DEVICES = {"h1": (1,), "h2": (0, 1)}  # noqa: RUF012

    def test_order(self):
        for policy in POLICIES:
            server = self.boot(with_device(policy), host="h1")
            self.assert_kept(server, "h1", 1)
            self.servers.delete(server)
            self.cloud.run_periodics()
        plain = self.boot(flavor_of(4), host="h1")
        self.assertEqual([0], self.nodes(plain))
        large = self.boot(with_device("required", 20), host="h1")
        self.assert_kept(large, "h1", 1)
        several = self.cloud.boot(with_device("required"), host="h2", count=2)
        several.sort(key=self.nodes)
        for server, node in zip(several, self.DEVICES["h2"], strict=True):
            self.assert_kept(server, "h2", node)
            self.servers.delete(server)
        self.cloud.run_periodics()
        # The fuller one of two nodes with devices.
        first, second = [self.boot(with_device("legacy"), host="h2") for _ in range(2)]
        self.assert_kept(first, "h2", 0)
        self.assert_kept(second, "h2", 1)
        self.assertEqual(set(), self.found())


class TestAgreement(SchedulingMixin, DevicesCase):
    """explain beside the scheduler, for a server that is to move to h2."""

    ROUNDS = tuple(itertools.product(("preferred", "socket"), ("legacy", "required")))

    def test_explain_agrees_with_the_scheduler(self):
        counts = collections.Counter()
        for full in (None, 0, 1):
            blocker = None if full is None else self.occupy("h2", full, 20)
            self.cloud.run_periodics()
            for own, alias in self.ROUNDS:
                self.write_alias(alias)
                server = self.boot(with_device(own), host="h1")
                taken = self.agree(server)
                if full != 1:
                    self.assertTrue(taken)
                elif {own, alias} & {"legacy", "required"}:
                    self.assertFalse(taken)
                counts[taken] += 1
                self.servers.delete(server)
                self.cloud.run_periodics()
            if blocker:
                self.servers.delete(blocker)
        self.assertGreater(min(counts[True], counts[False]), 1, counts)

    def agree(self, server):
        """Return whether explain and the scheduler let a server move to h2."""
        seen = nova_database.with_cells(
            read_snapshot(self.admin_api),
            nova_database.compute_nodes([]),
            devices=nova_database.server_devices([]),
        )
        request, _ = explain.request_of(seen, server=server.id)
        found = explain.explain(self.policy, seen, request, settings_for(self.policy))
        (verdict,) = (v for v in found.verdicts if v.view.host == "h2")
        admin = self.admin()
        spec = objects.RequestSpec.get_by_instance_uuid(admin, server.id)
        spec.requested_resources = []
        spec.request_level_params = objects.RequestLevelParams()
        spec.generate_request_groups_from_pci_requests()
        taken = self.takes(admin, spec, "h2")
        self.assertEqual(taken, verdict.accepted, verdict.reasons)
        return taken

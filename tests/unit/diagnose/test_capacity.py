# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm.diagnose import capacity, overview
from nova_perfvm.facts import PagePool
from nova_perfvm.facts.snapshot import Aggregate, Inventory
from nova_perfvm.generate.properties import Properties
from nova_perfvm.policy import Disk, FlavorSize, FlavorTemplate
from tests.unit.diagnose.explain.test_explain import UNITS, UnitsCase
from tests.unit.facts.snapshot.clouds import POLICY, Cloud
from tests.unit.generate import plugins
from tests.unit.rules import hosts


def figures(found):
    return {s.name: (s.total, s.used, s.free, s.unfit) for s in found}


class CapacityCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()

    def hosts(self):
        return capacity.host_capacity(POLICY, self.cloud.snapshot())

    def test_huge_pages_that_are_set_aside(self):
        """70 GiB of 250 on each NUMA node: one VM of 64 GiB, whatever CPUs are free."""
        self.cloud.add_host("h", shape="2x20")
        found = self.cloud.snapshot()
        (host,) = found.hosts
        pools = PagePool(4, 180 << 18), PagePool(1048576, 70)
        cells = [
            dataclasses.replace(cell, memory_mb=256000, mempages=pools)
            for cell in host.cells
        ]
        host = dataclasses.replace(host, cells=tuple(cells))
        found = dataclasses.replace(found, hosts=(host,))
        for pages in ("1GB", "large"):
            policy = hosts.policy(mem_page_size=pages, vcpus=5, max_per_host=None)
            policy = dataclasses.replace(policy, placement="none")
            (slots,) = capacity.host_capacity(policy, found)
            self.assertEqual((2, 0, 2, 0), figures([slots])["h"], pages)

    def test_every_slot_is_used_free_or_unfit(self):
        for name in ("empty", "half", "full", "odd", "off"):
            self.cloud.add_host(name)
        self.cloud.add_host("smt", shape="2x20x2")
        self.cloud.add_host("g1", "shared")
        self.cloud.add_hp("h", "half")
        self.cloud.add_hp("f1", "full")
        self.cloud.add_hp("f2", "full", first=20, node=1)
        self.cloud.add_hp(
            "o", "odd", count=8, vcpus=8, extra_specs={"hw:cpu_policy": "dedicated"}
        )
        off = dataclasses.replace(self.cloud.hosts["off"], enabled=False)
        self.cloud.hosts["off"] = off
        self.assertEqual(
            {
                "empty": (2, 0, 2, 0),
                "half": (2, 1, 1, 0),
                "full": (2, 2, 0, 0),
                # Pins of no class: the other cell is not given either.
                "odd": (2, 0, 0, 2),
                "off": (2, 0, 0, 2),
                "smt": (2, 0, 2, 0),
                "g1": (0, 0, 0, 0),
            },
            figures(self.hosts()),
        )
        (total,) = capacity.cloud_capacity(self.hosts())
        self.assertEqual((12, 3, 5, 4), figures([total])["all hosts"])
        reasons = {slots.name: slots.why for slots in self.hosts() if slots.why}
        self.assertEqual({"odd", "off"}, reasons.keys())
        self.assertIn("disabled", reasons["off"])
        self.assertEqual(f"odd: {reasons['odd']}, off: {reasons['off']}", total.why)

    def test_what_every_new_nova_asks_of_a_host(self):
        """As explain, which refuses hosts without the trait."""
        for name in ("old", "new"):
            self.cloud.add_host(name)
            host = self.cloud.hosts[name]
            self.cloud.hosts[name] = dataclasses.replace(host, service_version=73)
        traits = self.cloud.providers["new"].traits | {"OWNER_NOVA"}
        self.cloud.change_provider("new", traits=traits)
        found = figures(self.hosts())
        self.assertEqual({"old": (2, 0, 0, 2), "new": (2, 0, 2, 0)}, found)

    def test_huge_pages_that_no_api_shows(self):
        policy = hosts.policy(mem_page_size="1GB")
        self.cloud = Cloud(policy)
        self.cloud.add_host("h1")
        snapshot = self.cloud.snapshot()
        (slots,) = capacity.host_capacity(policy, snapshot)
        self.assertEqual((2, 0), (slots.total, slots.free))
        said = (
            "huge pages of 1 host are not known and count as none: --from-nova-db "
            "reads them on a controller"
        )
        self.assertIn(f"; {said}", slots.why)
        self.assertEqual((said,), capacity.notes(policy, snapshot))
        self.assertEqual((), capacity.notes(POLICY, snapshot))

    def test_what_placement_has_no_room_for_is_not_free(self):
        self.cloud.add_host("hp1")
        self.cloud.allocate("leaked", "hp1", {const.RC_SLOT: 1})
        self.assertEqual({"hp1": (2, 0, 1, 1)}, figures(self.hosts()))
        before = self.cloud.providers["hp1"].inventories
        self.cloud.change_provider(
            "hp1", inventories={**before, const.RC_SLOT: Inventory(1, 1)}
        )
        self.assertEqual({"hp1": (1, 0, 0, 1)}, figures(self.hosts()))

    def test_root_disk_of_servers_that_boot_from_an_image(self):
        for source, slots in (("image", (1, 0, 1, 0)), ("volume", (2, 0, 2, 0))):
            template = FlavorTemplate("hp", (FlavorSize(20, 64, 100),))
            policy = hosts.policy(disk=Disk(source), flavors=template)
            self.cloud = Cloud(policy)
            self.cloud.add_host("h1")
            self.cloud.change_inventories("h1", DISK_GB=Inventory(150, 150))
            self.assertEqual({"h1": slots}, self.of(policy), source)

    def test_generators_of_a_plugin(self):
        """Slots are those of the flavors that are generated with them."""
        self.cloud.add_host("empty")
        asks = {"trait:CUSTOM_ACME": "required"}
        snapshot = self.cloud.snapshot()
        with plugins.installed(acme=lambda *_: Properties(asks)):
            found = capacity.host_capacity(POLICY, snapshot)
            slots = overview.look(POLICY, snapshot).slots
        self.assertEqual({"empty": (2, 0, 0, 2)}, figures(found))
        self.assertEqual(found, slots)

    def test_by_aggregate(self):
        for name in ("a", "b", "c"):
            self.cloud.add_host(name)
        self.cloud.add_hp("h", "a")
        self.cloud.parts["aggregates"] = tuple(
            Aggregate(n, str(n), name, {}, frozenset(hosts))
            for n, (name, hosts) in enumerate([("x", "ab"), ("y", "bc"), ("z", "")])
        )
        found = capacity.aggregate_capacity(self.cloud.snapshot(), self.hosts())
        self.assertEqual({"x": (4, 1, 3, 0), "y": (4, 0, 4, 0)}, figures(found))

    def test_cells_with_other_vms_are_not_filled(self):
        """Where a class wants its cell for itself."""
        policy = hosts.policy(exclusive="cell", max_per_host=None)
        self.cloud = Cloud(policy)
        self.cloud.add_host("h1", shape="2x40")
        self.assertEqual({"h1": (4, 0, 4, 0)}, self.of(policy))
        specs = {"hw:cpu_policy": "dedicated"}
        self.cloud.add_hp("o", "h1", count=4, vcpus=4, extra_specs=specs)
        self.cloud.allocate("i-o", "h1", {"PCPU": 4})
        self.assertEqual({"h1": (4, 0, 2, 2)}, self.of(policy))
        self.cloud.add_hp("a", "h1", first=40, node=1)
        self.assertEqual({"h1": (4, 1, 1, 2)}, self.of(policy))

    def test_threads_that_vms_require_of_cores(self):
        """Nova gives a VM both threads of its cores, which leaves whole cores."""
        policy = hosts.policy(
            vcpus=8,
            smt="threads",
            cpu_thread_policy="require",
            max_per_host=None,
            flavors=FlavorTemplate("hp", sizes=(FlavorSize(8, 16, 0),)),
        )
        self.cloud = Cloud(policy)
        self.cloud.add_host("h1", shape="2x20x2")
        traits = self.cloud.providers["h1"].traits | {"HW_CPU_HYPERTHREADING"}
        self.cloud.change_provider("h1", traits=traits)
        snapshot = self.cloud.snapshot()
        (host,) = snapshot.hosts
        cores = [frozenset({n, n + 40}) for n in range(40)]
        cells = tuple(
            dataclasses.replace(
                cell, pcpuset=frozenset().union(*mine), siblings=tuple(mine)
            )
            for cell, mine in zip(host.cells, (cores[:20], cores[20:]), strict=True)
        )
        host = dataclasses.replace(host, cells=cells)
        snapshot = dataclasses.replace(snapshot, hosts=(host,))
        found = figures(capacity.host_capacity(policy, snapshot))
        self.assertEqual({"h1": (10, 0, 10, 0)}, found)

    def test_the_cpu_of_isolated_emulator_threads_is_on_one_node(self):
        for shape, most, placement, expected in (
            ("2x40", 2, "slots", (2, 0, 2, 0)),
            # The third VM has its first node where another VM has its second.
            ("4x21", None, "none", (3, 0, 3, 0)),
        ):
            policy = dataclasses.replace(
                hosts.policy(
                    numa_nodes=2,
                    emulator_threads="isolate",
                    exclusive="none",
                    max_per_host=most,
                ),
                placement=placement,
            )
            self.cloud = Cloud(policy)
            self.cloud.add_host("h1", shape=shape)
            self.assertEqual({"h1": expected}, self.of(policy), shape)

    def test_vms_of_a_former_size_hide_no_unfit_slot(self):
        """Two of them leave a whole NUMA node free."""
        policy = hosts.policy(max_per_host=None, former_vcpus=(10,))
        policy = dataclasses.replace(policy, placement="none")
        self.cloud = Cloud(policy)
        for name in ("h1", "off"):
            self.cloud.add_host(name)
        off = dataclasses.replace(self.cloud.hosts["off"], enabled=False)
        self.cloud.hosts["off"] = off
        for name, first in (("a", 0), ("b", 10)):
            self.cloud.add_hp(name, "h1", first, count=10, vcpus=10)
            self.cloud.allocate(f"i-{name}", "h1", {"PCPU": 10})
        expected = {"h1": (3, 2, 1, 0), "off": (2, 0, 0, 2)}
        self.assertEqual(expected, self.of(policy))
        found = capacity.host_capacity(policy, self.cloud.snapshot())
        total = figures(capacity.cloud_capacity(found))
        self.assertEqual({"all hosts": (5, 2, 1, 2)}, total)

    def of(self, policy):
        return figures(capacity.host_capacity(policy, self.cloud.snapshot()))


class ElasticCapacityTest(UnitsCase):
    def test_slots_of_elastic_hosts(self):
        self.add_elastic()
        self.assertEqual({"e1": (2, 0, 2, 0)}, self.figures())
        self.add_general_to("e1", "g")
        self.assertEqual({"e1": (2, 0, 0, 2)}, self.figures())
        # One of general VMs only has none.
        self.add_elastic("e2", slots=0)
        self.assertEqual((0, 0, 0, 0), self.figures()["e2"])

    def figures(self):
        return figures(capacity.host_capacity(UNITS, self.cloud.snapshot()))

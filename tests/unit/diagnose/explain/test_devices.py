# SPDX-License-Identifier: Apache-2.0
"""PCI devices and ports with resources; tests/functional asks Nova's own filters."""

import dataclasses

from nova_perfvm import constants as const
from nova_perfvm.changes.migrations import goals
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.diagnose import words as wording
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts import snapshot as snapshots
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.snapshot import Inventory, Provider
from nova_perfvm.facts.snapshot.pci import PCIPool, PCIRequest
from tests.unit.diagnose.explain.test_explain import ExplainCase
from tests.unit.facts.snapshot.clouds import GENERAL, HP

IDS = {"vendor_id": "10de", "product_id": "1db4"}
GPU = PCIRequest("gpu", 1, (IDS,), policy="required")
VF = PCIRequest("vf", 1, ({**IDS, "dev_type": "type-VF"},))
CARD = PCIRequest("card", 1, ({**IDS, "dev_type": "type-PF"},))
PCI, NUMA = const.NOVA_PCI, const.NOVA_PCI_NUMA


class DevicesCase(ExplainCase):
    def setUp(self):
        super().setUp()
        for name in ("h1", "h2"):
            self.cloud.add_host(name)
            self.pools(name)
        self.cloud.parts["pci_aliases"] = {a.name: a for a in (GPU, VF, CARD)}
        self.asks("gpu:1")

    def pools(self, host, *pools, **tags):
        """Let a host have free devices: (number, NUMA node)."""
        made = tuple(PCIPool(*pool, {**IDS, **tags}) for pool in pools)
        host_ = self.cloud.hosts[host]
        self.cloud.hosts[host] = dataclasses.replace(host_, pci_pools=made)

    def asks(self, alias, **specs):
        before = self.cloud.flavors[HP].extra_specs
        specs = {**before, "pci_passthrough:alias": alias, **specs}
        self.cloud.change_flavor(HP, extra_specs=specs)

    def codes(self, **what):
        return [verdict.code for verdict in self.explain(**what).verdicts]

    def plan(self, **wishes):
        cloud = self.cloud.snapshot()
        options = PlanOptions(**wishes)
        planning = Planning(self.POLICY, cloud, settings_for(self.POLICY), options)
        return goals.drain(planning, "h1")


class DevicesTest(DevicesCase):
    def test_where_cpus_are_free_beside_them(self):
        self.pools("h1", (1, 0), (2, None))
        self.cloud.add_hp("a", "h1", pci_requests=())
        self.assertEqual([NUMA, PCI], self.codes())
        _, said = self.verdict()
        words = "PCI gpu (required): need 1, free by NUMA node: 1 on 0, 2 on no node; "
        self.assertEqual(f"{words}NUMA nodes with CPUs and memory for the VM: 1", said)
        # Who is in the way, and what gives devices back.
        self.assertEqual("host h1: migrate a (i-a)", str(self.explain().fixes[0]))
        self.asks("gpu:1", **{"hw:pci_numa_affinity_policy": "legacy"})
        self.assertEqual(["", PCI], self.codes())

    def test_nobody_looked(self):
        host = self.cloud.hosts["h1"]
        self.cloud.hosts["h1"] = dataclasses.replace(host, pci_pools=None)
        self.assertEqual(const.PCI_UNKNOWN, self.code())
        self.assertIn("--from-nova-db", self.verdict()[1])
        self.cloud.parts["pci_aliases"] = None
        found = self.explain()
        self.assertEqual(2, len(found.accepting))
        self.assertEqual(("pci_passthrough:alias",), found.unjudged)

    def test_what_nova_api_refuses(self):
        for alias in ("other:1", "gpu", "gpu:x", "", "gpu:-1", "gpu:2147483647"):
            self.asks(alias)
            error = self.assertRaises(RequestError, self.explain)
            self.assertIn("that [pci]alias has: card, gpu, vf", str(error))

    def test_blanks_as_nova_api_takes_them(self):
        self.pools("h1", (1, 0))
        self.asks("gpu:1")
        expected = self.codes()
        self.asks(" gpu: 1 ")
        self.assertEqual(expected, self.codes())

    def test_a_snapshot_keeps_them(self):
        self.pools("h1", (1, 0), (2, None), dev_type="type-PCI")
        device = PCIPool(1, 0, IDS)
        self.cloud.add_hp("a", "h1", pci_requests=(GPU,), pci_devices=(device,))
        cloud = self.cloud.snapshot()
        self.assertEqual(cloud, snapshots.loads(snapshots.dumps(cloud)))

    def test_many_that_placement_counts(self):
        """Not all ways to give them are tried."""
        asked = dataclasses.replace(GPU, resource_class="CUSTOM_PCI")
        self.cloud.parts["pci_aliases"] = {"gpu": asked}
        pools = []
        for number in range(8):
            uuid = f"card{number}"
            inventory = {"CUSTOM_PCI": Inventory(32, 32)}
            self.cloud.providers[uuid] = Provider(
                uuid, uuid, 1, inventory, parent="p-h1", root="p-h1"
            )
            pools.append(PCIPool(32, 0, {**IDS, "rp_uuid": uuid}))
        host = self.cloud.hosts["h1"]
        self.cloud.hosts["h1"] = dataclasses.replace(host, pci_pools=tuple(pools))
        self.asks("gpu:256")
        self.assertEqual("", self.code())
        self.cloud.allocate("i-x", "card7", {"CUSTOM_PCI": 1})
        self.assertEqual(
            const.PLACEMENT_GROUPS, self.explain().verdicts[0].placement[0].code
        )


class MovesTest(DevicesCase):
    def add(self, name, asked=GPU, node=0, **tags):
        device = PCIPool(1, node, {**IDS, **tags})
        more = {"pci_requests": (asked,), "pci_devices": (device,)}
        self.cloud.add_hp(name, "h1", 20 * node, node, **more)

    def test_cold_to_where_some_are_free(self):
        self.add("a")
        self.add("b", node=1)
        self.pools("h2", (1, 1))
        self.assertIn(
            "PCI devices (gpu) Nova migrates it cold only: --cold",
            self.plan().reasons[0],
        )
        plan = self.plan(cold=True)
        self.assertEqual((1, False), (plan.gained, plan.moves[0].live))
        self.assertIn("no host was found for it", plan.reasons[0])
        hosts = {host.host: host for host in plan.after.hosts}
        self.assertEqual((1, 0), tuple(len(hosts[h].pci_pools) for h in ("h1", "h2")))
        moved = plan.after.server_by_id[plan.moves[0].server]
        self.assertEqual((1, 1), (moved.cells[0].host_node, moved.pci_devices[0].node))

    def test_cold_with_a_tpm(self):
        self.add("a", dataclasses.replace(GPU, port=True))
        self.pools("h2", (1, 1))
        prefix = "COMPUTE_SECURITY_TPM"
        names = ("TIS", "2_0", "SECRET_SECURITY_USER", "SECRET_SECURITY_HOST")
        for host in ("h1", "h2"):
            traits = self.cloud.providers[host].traits
            more = frozenset(f"{prefix}_{name}" for name in names)
            self.cloud.change_provider(host, traits=traits | more)
        specs = self.cloud.servers["a"].extra_specs
        secret = {"hw:tpm_version": "2.0"}
        self.cloud.change_server("a", extra_specs=specs | secret)
        words = "(hw:tpm_secret_security=user): Nova migrates it cold only: --cold"
        self.assertIn(words, " ".join(self.plan().reasons))
        secret["hw:tpm_secret_security"] = "host"
        self.cloud.change_server("a", extra_specs=specs | secret)
        self.assertNotIn("tpm", " ".join(self.plan().reasons))

    def test_live_where_nova_can(self):
        for asked in (
            dataclasses.replace(GPU, port=True),
            dataclasses.replace(GPU, specs=({**IDS, "live_migratable": "true"},)),
        ):
            self.add("a", asked)
            self.pools("h2", (1, 0), live_migratable="true")
            plan = self.plan()
            self.assertEqual((1, True), (plan.gained, plan.moves[0].live))

    def test_a_card_is_whole_or_divided(self):
        where = {"address": "0000:81:00.0"}
        self.add("a", VF, dev_type="type-VF")
        self.add("b", CARD, node=1, dev_type="type-PF")
        card = [PCIPool(1, 0, {**IDS, **where, "dev_type": "type-PF"})]
        parts = [PCIPool(8, 0, {**IDS, **where, "dev_type": "type-VF"})]
        host = self.cloud.hosts["h2"]
        pools = (*card, *parts)
        self.cloud.hosts["h2"] = dataclasses.replace(host, pci_pools=pools)
        plan = self.plan(cold=True)
        self.assertEqual(1, plan.gained)
        (left,) = (h.pci_pools for h in plan.after.hosts if h.host == "h2")
        kinds = [(pool.tags["dev_type"], pool.count) for pool in left]
        self.assertIn(kinds, ([], [("type-VF", 7)]))


class ClaimsTest(DevicesCase):
    """nova-compute claims for a move by the alias, whatever the flavor says."""

    def move(self, own, alias, **changes):
        """Return the codes of h2, whose device is on the node that is taken."""
        gpu = dataclasses.replace(GPU, policy=alias)
        self.cloud.parts["pci_aliases"] = {"gpu": gpu}
        self.asks("gpu:1", **{"hw:pci_numa_affinity_policy": own})
        record = dataclasses.replace(GPU, policy=own)
        changes = {"pci_requests": (record,), "pci_devices": (PCIPool(1, 0, IDS),)} | (
            changes
        )
        self.cloud.add_hp("a", "h1", **changes)
        self.cloud.add_hp("b", "h2", 20, 1, pci_requests=())
        self.pools("h2", (1, 1))
        return self.codes(server="a")[1]

    def test_flavor_and_alias(self):
        for own, alias, expected in (
            ("preferred", "legacy", NUMA),
            ("preferred", "preferred", ""),
            ("required", "preferred", NUMA),
            ("preferred", "required", NUMA),
        ):
            self.assertEqual(expected, self.move(own, alias))

    def test_what_is_said_and_planned(self):
        self.assertEqual(NUMA, self.move("preferred", "legacy"))
        said = wording.words(self.explain(server="a").verdicts[1].reasons[0])
        words = "PCI gpu (preferred, legacy to nova-compute in a move): need 1, free"
        self.assertIn(words, said)
        plan = self.plan(cold=True)
        self.assertEqual((0, ()), (plan.gained, plan.moves))
        # A new server is claimed as its flavor says.
        self.assertEqual("", self.codes()[1])

    def test_a_record_of_before_the_last_move(self):
        """A move leaves the alias's policy in the record, and the flavor's counts."""
        record = (dataclasses.replace(GPU, policy="legacy"),)
        found = self.move("required", "preferred", pci_requests=record)
        self.assertEqual(NUMA, found)

    def test_an_unshelve_goes_by_the_record(self):
        for policy, expected in (("preferred", ""), ("legacy", NUMA)):
            record = (dataclasses.replace(GPU, policy=policy),)
            found = self.move(
                "preferred",
                "legacy",
                pci_requests=record,
                pci_devices=(),
                status="SHELVED_OFFLOADED",
            )
            self.assertEqual(expected, found)


class PortsTest(DevicesCase):
    """Servers whose ports have a minimum bandwidth."""

    def setUp(self):
        super().setUp()
        for name in ("s1", "s2", "s3"):
            self.cloud.add_host(name, "shared")
            self.cloud.change_inventories(name, DISK_GB=Inventory(500, 500))
        self.cloud.add_general("a", "s1")
        self.links("s1", "PUBLIC")
        self.cloud.allocate("i-a", "s1_br", {"NET_BW_EGR_KILOBIT_PER_SEC": 600})

    def links(self, host, network, total=1000):
        name = f"{host}_br"
        self.cloud.providers[name] = Provider(
            name,
            name,
            1,
            {"NET_BW_EGR_KILOBIT_PER_SEC": Inventory(total, total)},
            frozenset({f"CUSTOM_PHYSNET_{network}", "CUSTOM_VNIC_TYPE_NORMAL", "X"}),
            parent=f"p-{host}",
            root=f"p-{host}",
        )

    def codes(self, **what):
        found = self.explain(**what).verdicts
        return {verdict.view.host: verdict.placement for verdict in found}

    def test_the_network_and_its_bandwidth(self):
        self.links("s2", "PUBLIC", total=500)
        self.links("s3", "OTHER")
        found = self.codes(server="a")
        codes = {host: [r.code for r in found[host]] for host in ("s2", "s3")}
        self.assertEqual(
            {"s2": [const.PLACEMENT_RESOURCE], "s3": [const.PLACEMENT_TRAIT_MISSING]},
            codes,
        )
        self.assertEqual("CUSTOM_PHYSNET_PUBLIC", found["s3"][0].data["trait"])
        # Of a new server nothing is known.
        self.assertEqual((), self.codes(flavor=GENERAL)["s3"])

    def test_plans(self):
        self.links("s2", "PUBLIC")
        self.cloud.add_general("b", "s1")
        before = self.cloud.providers["s1_br"]
        held = {"NET_BW_EGR_KILOBIT_PER_SEC": 500}
        allocations = {**before.allocations, "i-b": held}
        self.cloud.change_provider("s1_br", allocations=allocations)
        cloud = self.cloud.snapshot()
        planning = Planning(self.POLICY, cloud, settings_for(self.POLICY))
        plan = goals.drain(planning, "s1")
        self.assertEqual((1, "s2"), (plan.gained, plan.moves[0].target))
        after = plan.after.provider_by_uuid
        (moved,) = after["s2_br"].allocations
        self.assertEqual(plan.moves[0].server, moved)
        self.assertEqual(1, len(after["s1_br"].allocations))

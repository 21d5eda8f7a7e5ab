# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import random

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.changes.steps import with_changes
from nova_perfvm.diagnose import audit, capacity, words
from nova_perfvm.diagnose.arrivals import arrived
from nova_perfvm.diagnose.residents import divide
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts import NUMACell, PagePool
from nova_perfvm.facts.children import node_of
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.facts.snapshot import INVENTORY_FILE, Flavor, ServerCell, Snapshot
from nova_perfvm.facts.snapshot.pci import PCIPool, PCIRequest
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.placement.candidates import ask
from nova_perfvm.placement.host_schemes.cells import HOSTS, inventories_of
from nova_perfvm.placement.host_schemes.residents import Resident
from nova_perfvm.placement.schemes.cells import CELLS
from nova_perfvm.policy import HostShape, loader, policy_mistakes
from tests.unit.facts.snapshot.clouds import Cloud

CPU, MEMORY = const.RC_CELL_CPU, const.RC_CELL_MEMORY
CLASS = """
  c{0}:
    vcpus: {0}
    cpu_policy: dedicated
    numa_nodes: {1}
    disk: {{source: volume}}
    flavors: {{name: "c{0}.{{memory_gb}}g", memory_gb: [{2}], root_gb: 0}}
"""
SIZES = ((4, 1, 16), (8, 1, 32), (16, 1, 64), (20, 1, 200), (24, 2, 64))


def policy_of(*sizes, **changes):
    """Return a policy with a class for each (vCPUs, NUMA nodes, GiB)."""
    text = 'schema_version: "1.0"\nhost_shape: 2x20\nplacement: cells\nclasses:'
    text += "".join(itertools.starmap(CLASS.format, sizes))
    found = loader.parse(f"{text}  general: {{default: true}}\n")
    first, *rest = found.classes
    first = dataclasses.replace(first, **changes)
    return dataclasses.replace(found, classes=(first, *rest))


POLICY = policy_of(*SIZES)


class PolicyTest(testtools.TestCase):
    def test_a_flavor_asks_for_each_numa_node_of_the_vm(self):
        flavors = {f.name: f.extra_specs for f in generate_flavors(POLICY)}
        group = "_perfvm_cell_"
        for name, nodes, cpus, mb in (
            ("c4.16g", 1, "4", "16384"),
            ("c20.200g", 1, "20", "204800"),
            ("c24.64g", 2, "12", "32768"),
        ):
            found = flavors[name]
            asked = {k: v for k, v in found.items() if k.startswith("resources")}
            self.assertEqual(2 * nodes, len(asked))
            for node in range(nodes):
                self.assertEqual(cpus, asked[f"resources{group}{node}:{CPU}"])
                self.assertEqual(mb, asked[f"resources{group}{node}:{MEMORY}"])
            policy = "isolate" if nodes > 1 else "none"
            self.assertEqual(policy, found["group_policy"])
            traits = {key for key in found if key.startswith("trait")}
            wanted = {f"trait{group}{n}:{const.TRAIT_CELLS}" for n in range(nodes)}
            self.assertEqual(wanted, traits)

    def test_cpus_that_nobody_else_gets(self):
        for changes, shape, expected in (
            ({"emulator_threads": "isolate"}, "2x20", 6),
            ({"cpu_thread_policy": "require", "smt": "threads"}, "2x20x2", 6),
            (
                {"cpu_thread_policy": "require", "smt": "threads"},
                "[2x20, 2x20x2]",
                6,
            ),
            ({}, "2x20", 5),
        ):
            policy = policy_of((5, 1, 16), **changes)
            shapes = dataclasses.replace(
                policy,
                host_shapes=loader.parse(
                    f'schema_version: "1.0"\nhost_shape: {shape}\n'
                ).host_shapes,
            )
            amounts = CELLS.amounts(shapes, shapes.pinned_classes[0], 16384)
            self.assertEqual(expected, amounts[CPU])

    def test_the_core_of_emulator_threads(self):
        """It may be of no use to VMs of other sizes."""
        threads = {"cpu_thread_policy": "require", "smt": "threads"}
        policy = policy_of((4, 1, 16), emulator_threads="isolate", **threads)
        shapes = (HostShape.parse("2x20x2"),)
        policy = dataclasses.replace(policy, host_shapes=shapes)
        amounts = CELLS.amounts(policy, policy.pinned_classes[0], 16384)
        self.assertEqual(6, amounts[CPU])

    def test_a_limit_per_host_is_counted_beside(self):
        policy = policy_of(*SIZES[:2], max_per_host=3)
        first, second = policy.pinned_classes
        self.assertEqual(1, CELLS.amounts(policy, first, 1)["CUSTOM_PERFVM_SLOT_C4"])
        self.assertEqual({CPU, MEMORY}, {*CELLS.amounts(policy, second, 1)})
        offer = HOSTS.offers(policy, first, "dedicated", 3)
        self.assertEqual(3, offer.inventories["CUSTOM_PERFVM_SLOT_C4"].total)

    def test_what_cells_cannot_say(self):
        for changes, key in (
            ({"exclusive": "host"}, "exclusive"),
            ({"exclusive": "cell"}, "exclusive"),
            ({"emulator_threads": "isolate", "numa_nodes": 2}, "emulator_threads"),
        ):
            found = policy_mistakes(policy_of(*SIZES, **changes))
            self.assertIn(("classes", "c4", key), [one.path for one in found])
        for changes in ({"mem_page_size": "1GB"}, {"smt": "threads"}):
            found = policy_mistakes(policy_of(*SIZES, **changes))
            self.assertEqual(
                [("classes", name, *changes) for name in ("c8", "c16", "c20", "c24")],
                [one.path for one in found],
            )
        for one, other, use in (
            ("1GB", None, "use 1GB, as c4 has"),
            (None, "1GB", "use null, as c4 has"),
            # Both are of the same memory.
            ("small", None, ""),
            (None, "small", ""),
        ):
            policy = policy_of(*SIZES[:2], mem_page_size=one)
            first, second, *rest = policy.classes
            second = dataclasses.replace(second, mem_page_size=other)
            policy = dataclasses.replace(policy, classes=(first, second, *rest))
            said = "".join(mistake.message for mistake in policy_mistakes(policy))
            self.assertEqual((bool(use), True), (bool(said), said.endswith(use)), said)
            self.assertNotIn("None", said)
        self.assertEqual([], policy_mistakes(policy_of(SIZES[3], exclusive="host")))


class NodeTest(testtools.TestCase):
    def test_what_a_node_has(self):
        cell = NUMACell(
            *(0, set(), set(range(8)), {1}, 65536, 100),
            siblings=[{n, n + 4} for n in range(4)],
            mempages=[PagePool(4, 10**6), PagePool(2048, 1000, 7), PagePool(2**20, 3)],
        )
        for changes, cpus, memory_mb in (
            ({}, 4, 65536),
            ({"smt": "threads"}, 8, 65536),
            ({"mem_page_size": "small"}, 4, 65536),
            ({"mem_page_size": "2MB"}, 4, 2000),
            ({"mem_page_size": "1GB"}, 4, 3072),
            # No VM has pages of both.
            ({"mem_page_size": "large"}, 4, 3072),
        ):
            found = inventories_of(policy_of(SIZES[0], **changes), cell)
            totals = {name: one.total for name, one in found.items()}
            self.assertEqual({CPU: cpus, MEMORY: memory_mb}, totals, changes)

    def test_a_core_with_one_thread_is_in_no_sibling_set(self):
        cpus = NUMACell(0, set(), {0, 1, 4}, set(), 1024, 0, siblings=[{0, 4}])
        found = inventories_of(policy_of(SIZES[0]), cpus)
        self.assertEqual(2, found[CPU].total)


class HostTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud(POLICY)
        self.cloud.add_host("h1", "dedicated", "2x20", 500)

    def seen(self):
        """Return the cloud with the host enrolled."""
        found = self.cloud.snapshot()
        (host,) = found.hosts
        host = dataclasses.replace(host, cells_source=INVENTORY_FILE)
        found = dataclasses.replace(found, hosts=(host,))
        while plan := plan_enroll(POLICY, view_of(found, "h1"), backfill=True).changes:
            found = with_changes(found, plan)
        return found

    def request(self, vcpus):
        (vm_class,) = [c for c in POLICY.pinned_classes if c.vcpus == vcpus]
        return capacity.request_of_class(POLICY, vm_class, Snapshot(""))

    def test_an_empty_host(self):
        found = {
            slots.class_name: (slots.total, slots.free)
            for slots in capacity.host_capacity(POLICY, self.seen())
        }
        # 200 GiB of 250 on each node; 12 CPUs of each of two nodes.
        expected = {"c4": 10, "c8": 4, "c16": 2, "c20": 2, "c24": 1}
        self.assertEqual({name: (n, n) for name, n in expected.items()}, found)

    def test_any_mix_is_on_the_nodes_that_placement_gave(self):
        """Until nothing fits; and what Placement still gives has room."""
        for seed in range(20):
            rng = random.Random(seed)
            view, settings = view_of(self.seen(), "h1"), settings_for(POLICY)
            sizes = [vcpus for vcpus, *_ in SIZES]
            for number in itertools.count():
                size = rng.choice(sizes)
                after = arrived(POLICY, self.request(size), view, settings, f"{number}")
                offered = ask(view, self.request(size).demand, isolated=True)
                self.assertEqual(after is None, bool(offered.reasons), seed)
                if after is None:
                    sizes.remove(size)
                    if not sizes:
                        break
                    continue
                view = after.view
                for cell in view.facts.cells:
                    (child,) = (c for c in view.tree if node_of(c.name) == cell.id)
                    self.assertEqual(len(cell.pinned_cpus), child.used(CPU))
                    self.assertEqual(cell.memory_usage_mb, child.used(MEMORY))
            self.assertGreater(number, len(SIZES))

    def test_devices_decide_on_which_node_a_vm_lands(self):
        """Node 1 is the fuller one."""
        request, settings = self.request(4), settings_for(POLICY)
        asked = PCIRequest("card", 1, ({"product_id": "1"},), "preferred")
        asks = dataclasses.replace(request, pci=(asked,))
        near = dataclasses.replace(asks, pci_claimed=(asked,))
        for _name, one, pools, expected in (
            ("no devices", request, (), 1),
            ("away from devices", request, ((1, 1),), 0),
            ("where the fewest are", request, ((2, 1), (1, 0)), 0),
            ("near its device", asks, ((1, 0),), 0),
            ("near its device in a move", near, ((1, 0),), 0),
            ("the fuller of two near ones", asks, ((2, 0), (1, 1)), 1),
            ("a device of no node", asks, ((1, None),), 1),
        ):
            view = view_of(self.seen(), "h1")
            first, second = view.facts.cells
            cells = [first, second._replace(pinned_cpus={20, 21})]
            view = dataclasses.replace(
                view,
                facts=view.facts._replace(cells=cells),
                compute=dataclasses.replace(
                    view.compute,
                    pci_pools=tuple(
                        PCIPool(count, node, {"product_id": "1"})
                        for count, node in pools
                    ),
                ),
            )
            found = arrived(POLICY, one, view, settings, "vm")
            self.assertEqual([expected], [share.cell for share in found.shares])

    def test_where_a_vm_lands(self):
        """On the fullest nodes, or where nova-compute likes it without limits."""
        view, settings = view_of(self.seen(), "h1"), settings_for(POLICY)
        view = arrived(POLICY, self.request(4), view, settings, "first").view
        for vcpus, loses_limits, expected in (
            (4, False, [0]),
            (4, True, [1]),
            # There is no room on the other one.
            (20, False, [1]),
            (20, True, [1]),
            (24, False, [0, 1]),
            (24, True, [0, 1]),
        ):
            found = arrived(
                POLICY,
                self.request(vcpus),
                view,
                settings,
                "next",
                loses_limits=loses_limits,
            )
            self.assertEqual(expected, sorted(s.cell for s in found.shares))
            held = [c.allocations.get("next") for c in found.view.tree[1:]]
            self.assertEqual(expected, [n for n, h in enumerate(held) if h])

    def test_why_a_host_has_no_room(self):
        view = view_of(self.seen(), "h1")
        for number in range(2):
            view = arrived(
                POLICY, self.request(16), view, settings_for(POLICY), f"{number}"
            ).view
        (reason,) = [
            one
            for one in ask(view, self.request(8).demand, isolated=True).reasons
            if one.code == const.PLACEMENT_CELLS
        ]
        self.assertIn("need 8 CPUs and 32768 MiB of one", words.words(reason))
        self.assertIn("node 1 has 4 of 20 CPUs and", words.words(reason))

    def test_huge_pages_that_nobody_tells(self):
        """Without them a node would have CPUs, and no memory for them."""
        found = self.cloud.snapshot()
        (host,) = found.hosts
        pools = (PagePool(4, 10**6), PagePool(2**20, 64))
        for pages, plans in (((), False), (pools, True)):
            cells = [dataclasses.replace(c, mempages=pages) for c in host.cells]
            told = dataclasses.replace(
                host, cells=tuple(cells), cells_source=INVENTORY_FILE
            )
            view = view_of(dataclasses.replace(found, hosts=(told,)), "h1")
            plan = plan_enroll(policy_of(SIZES[0], mem_page_size="1GB"), view)
            self.assertEqual(plans, bool(plan.changes))
            refused = "ask for huge pages" in "".join(plan.refusals)
            self.assertEqual(not plans, refused)

    def test_huge_pages_of_two_sizes(self):
        """40 GiB in 2 MiB and 60 in 1 GiB hold no VM of 96; the sum would."""
        found = self.cloud.snapshot()
        (host,) = found.hosts
        small, medium = PagePool(4, 10), PagePool(2048, 20480)
        large = PagePool(2**20, 60)
        for wanted, pages, memory_mb in (
            ("large", (small, medium, large), None),
            ("2MB", (small, medium, large), 40960),
            ("1GB", (small, medium, large), 61440),
            ("large", (small, medium), 40960),
            ("large", (small, large, PagePool(2048, 0)), 61440),
        ):
            cells = [dataclasses.replace(c, mempages=pages) for c in host.cells]
            told = dataclasses.replace(
                host, cells=tuple(cells), cells_source=INVENTORY_FILE
            )
            seen = dataclasses.replace(found, hosts=(told,))
            policy = policy_of(SIZES[0], mem_page_size=wanted)
            plan = plan_enroll(policy, view_of(seen, "h1"))
            shown = audit.run(
                audit.Subject(policy, seen, wanted=frozenset({"h1"})),
                audit.Selection.PREFLIGHT,
            )
            told = [
                finding.observed
                for finding in shown.findings
                if finding.code == codes.CHILDREN_DIFFER
            ]
            if memory_mb is None:
                (refusal,) = plan.refusals
                self.assertIn("set mem_page_size: 2MB or 1GB", refusal)
                self.assertEqual([refusal], told)
            else:
                self.assertEqual((), plan.refusals)
                self.assertEqual([], told)
                self.assertIn(
                    f"{const.RC_CELL_MEMORY} {memory_mb}",
                    " ".join(map(str, plan.changes)),
                )

    def test_who_may_take_a_share(self):
        cloud = Cloud()
        cloud.add_host("h1")
        cloud.add_host("g1", "shared")
        cloud.add_hp("a", "h1")
        cloud.add_general("b", "g1")
        pinned, shared = cloud.servers["a"], cloud.servers["b"]
        of_class = POLICY.pinned_classes[0]
        for name, server, vm_class, expected in (
            ("pinned, of no class", pinned, None, True),
            ("unpinned, of no class", shared, None, False),
            ("of a class", shared, of_class, True),
            ("a migration", None, None, False),
        ):
            resident = Resident("id", server, vm_class, {})
            self.assertIs(expected, HOSTS.may_take(resident), name)

    def test_what_cannot_be_divided_is_told(self):
        specs = {const.CLASS_KEY: "c4", const.CPU_POLICY: "dedicated"}
        self.cloud.flavors["c4"] = Flavor("c4", "c4", 4, 16384, 0, specs)
        resources = {"PCPU": 4, "MEMORY_MB": 16384}
        for number in range(6):
            cpus = {n: 4 * (number % 5) + n for n in range(4)}
            cell = ServerCell(0, frozenset(range(4)), 16384, cpus)
            self.cloud.add(
                str(number), "h1", "c4", resources, cells=(cell,), pinned=True
            )
        halves = [
            ServerCell(n, frozenset({n}), 8192, {n: 20 * n + 19}) for n in range(2)
        ]
        self.cloud.add("split", "h1", "c4", resources, cells=tuple(halves), pinned=True)
        found = self.cloud.snapshot()
        (host,) = found.hosts
        host = dataclasses.replace(host, cells_source=INVENTORY_FILE)
        view = view_of(dataclasses.replace(found, hosts=(host,)), "h1")
        unknown, full = divide(POLICY, view, HOSTS.children(POLICY, view, 0)).faults
        self.assertIn("on which NUMA nodes split", unknown)
        self.assertIn(f"has 20 {CPU}, and VMs on it take 24: move some away", full)

    def test_nodes_in_names(self):
        for name, node in (
            ("h1_perfvm_cell_1", 1),
            ("h1_perfvm_cell_", None),
            ("h1_perfvm_a", None),
            ("12", None),
        ):
            self.assertEqual(node, node_of(name), name)

    def test_vms_that_were_there_before(self):
        """They get what they have; and who was allocated another node is told."""
        specs = {const.CLASS_KEY: "c4", const.CPU_POLICY: "dedicated"}
        self.cloud.flavors["c4"] = Flavor("c4", "c4", 4, 16384, 0, specs)
        cell = ServerCell(1, frozenset(range(4)), 16384, {n: 20 + n for n in range(4)})
        resources = {"PCPU": 4, "MEMORY_MB": 16384}
        self.cloud.add("a", "h1", "c4", resources, cells=(cell,), pinned=True)
        view = view_of(self.seen(), "h1")
        child = view.children[1]
        self.assertEqual(1, node_of(child.name))
        self.assertEqual({"i-a": {CPU: 4, MEMORY: 16384}}, child.held_of_child())
        shares = divide(POLICY, view, HOSTS.children(POLICY, view, 0))
        self.assertEqual(({}, ()), (shares.lacking, shares.faults))

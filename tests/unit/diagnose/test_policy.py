# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.hosts import largest_slots_on, summarize
from nova_perfvm.diagnose.policy_check import PolicyView, check_policy
from nova_perfvm.diagnose.policy_diff import compare, compare_servers
from nova_perfvm.diagnose.result import Code
from nova_perfvm.facts.snapshot import Aggregate, Inventory, Provider
from nova_perfvm.policy import Elastic, HostShape, loader
from tests.unit.facts.snapshot.clouds import Cloud

POLICY = loader.load()
UNITS = dataclasses.replace(POLICY, placement="units")
LABELLED = dataclasses.replace(POLICY, managed_hosts="labelled")
HOSTS = "Hosts offer what the policy says"
FILTERS = ("filter_scheduler", "enabled_filters")
LABEL = Aggregate(
    1, "u1", "hp", {const.CLASS_KEY: "high-performance"}, frozenset({"h1"})
)


def change_class(policy, name, **changes):
    classes = tuple(
        dataclasses.replace(c, **changes) if c.name == name else c
        for c in policy.classes
    )
    return dataclasses.replace(policy, classes=classes)


def cloud():
    """Return a cloud with a host of each kind, and VMs on both."""
    found = Cloud()
    found.add_host("h1")
    found.add_host("h2", mode="shared")
    found.add_hp("vm1", "h1")
    found.add_hp("vm2", "h1", first=20, node=1)
    found.add_general("vm3", "h2")
    return found


def enrolled(max_units, taken=None):
    """Return a snapshot of a host with child providers."""
    found = Cloud(UNITS)
    found.add_host("h1", mode="shared")
    snapshot = found.snapshot()
    children = tuple(
        Provider(
            f"c-{letter}",
            f"h1_perfvm_{letter}",
            1,
            {const.RC_UNIT: Inventory(1000, max_unit)},
            allocations={"vm": {const.RC_UNIT: 1000}} if letter == taken else {},
            parent="p-h1",
            root="p-h1",
        )
        for letter, max_unit in zip("ab", max_units, strict=True)
    )
    return dataclasses.replace(snapshot, providers=snapshot.providers + children)


def without_slots(found, host):
    """Take slots and trait from a host."""
    found.change_inventories(host, **{const.RC_SLOT: None})
    found.change_provider(host, traits=frozenset())


class SummarizeTest(testtools.TestCase):
    def test_hosts_with_slots_and_without(self):
        found = cloud()
        found.parts["aggregates"] = (LABEL,)
        first, second = summarize(POLICY, found.snapshot())
        self.assertEqual(
            ("h1", "up", "dedicated", 2, 2, 2, ("high-performance",), ("hp",)),
            (
                first.host,
                first.state,
                first.mode,
                first.cells,
                first.slots,
                first.used,
                first.classes,
                first.aggregates,
            ),
        )
        self.assertEqual("40 of 40 used, at most 40 a VM", first.inventories["h1 PCPU"])
        self.assertEqual(2, len(first.servers))
        self.assertEqual(
            ("shared", None, ("general",), ()),
            (second.mode, second.slots, second.classes, second.aggregates),
        )

    def test_elastic_hosts(self):
        for max_units, taken, expected in (
            ((1000, 1000), None, ("elastic", 2, 0)),
            ((1000, 1000), "a", ("elastic", 2, 1)),
            ((1000, 999), "a", ("elastic", 1, 1)),
            ((999, 999), None, ("shared", 0, 0)),
        ):
            (host,) = summarize(UNITS, enrolled(max_units, taken))
            self.assertEqual(expected, (host.mode, host.slots, host.used))

    def test_what_placement_does_not_know(self):
        snapshot = dataclasses.replace(cloud().snapshot(), providers=())
        (host, _) = summarize(POLICY, snapshot)
        self.assertEqual(("unknown", None), (host.mode, host.slots))

    def test_slots_of_a_shape(self):
        for shape, slots in (("2x20", 2), ("2x10", 0), ("1x40", 2), ("4x20", 2)):
            self.assertEqual(slots, largest_slots_on(POLICY, HostShape.parse(shape)))


class CheckTest(testtools.TestCase):
    def check(self, title, policy=POLICY, snapshot=None, **facts):
        (result,) = self.results(title, policy, snapshot, **facts)
        return result

    def results(self, title, policy=POLICY, snapshot=None, **facts):
        view = PolicyView(snapshot or cloud().snapshot(), **facts)
        return [r for name, r in check_policy(policy, view) if name == title]

    def test_policy(self):
        """What is inherent in a choice is a note, and no exit status."""
        for policy, noted in (
            (POLICY, [codes.NO_CPU_FOR_HOST]),
            (UNITS, [codes.NO_CPU_FOR_HOST, codes.RESTS_ON_FALLBACK]),
        ):
            digest, *notes = self.results("Policy", policy)
            self.assertEqual(f"SHA-256 {policy.digest}", digest.details[0])
            self.assertEqual(noted, [note.finding for note in notes])
            self.assertEqual({0}, {note.code.exit_code for note in notes})

    def test_what_the_policy_accepts(self):
        every = tuple(codes.SEVERITIES | codes.CHECK_SEVERITIES)
        lenient = dataclasses.replace(POLICY, accept=every)
        (result,) = self.results("Flavors", lenient, flavor_changes=("create hp",))
        self.assertEqual((Code.NOTE, 0), (result.code, result.code.exit_code))
        self.assertEqual("would create hp (accepted in the policy)", result.details[0])
        self.assertIs(Code.NOTE, self.check("Filters", lenient).code)
        for title, facts in (
            ("Flavors", {"flavor_refusals": ("hp is in use",)}),
            ("Filters", {"settings": {}}),
        ):
            self.assertIs(Code.FAILURE, self.check(title, lenient, **facts).code)

    def test_flavors(self):
        self.assertEqual(Code.SUCCESS, self.check("Flavors").code)
        result = self.check("Flavors", flavor_refusals=("hp is in use",))
        self.assertEqual(
            (Code.FAILURE, ("hp is in use",)), (result.code, result.details)
        )

    def test_classes_of_aggregates(self):
        title = "Classes of aggregates"
        found = cloud()
        found.parts["aggregates"] = (LABEL,)
        self.assertEqual(
            Code.SUCCESS, self.check(title, snapshot=found.snapshot()).code
        )
        wrong = dataclasses.replace(LABEL, metadata={const.CLASS_KEY: "general, gold"})
        found.parts["aggregates"] = (wrong,)
        result = self.check(title, snapshot=found.snapshot())
        self.assertEqual(Code.FAILURE, result.code)
        self.assertIn("no class 'gold'", result.details[0])
        self.assertEqual(Code.FAILURE, self.check(title, LABELLED).code)

    def test_isolated_aggregates(self):
        title = "General VMs keep off slots"
        self.assertEqual(Code.SUCCESS, self.check(title).code)
        result = self.check(title, isolated_aggregates=True)
        self.assertEqual(Code.FAILURE, result.code)
        self.assertIn("h1", result.details[0])
        key = f"trait:{const.TRAIT_HIGH_PERFORMANCE}"
        found = cloud()
        found.parts["aggregates"] = (
            dataclasses.replace(LABEL, metadata={key: "required"}),
        )
        result = self.check(title, snapshot=found.snapshot(), isolated_aggregates=True)
        self.assertEqual(Code.SUCCESS, result.code)

    def test_hosts_with_another_number_of_children(self):
        found = Cloud(UNITS)
        found.add_host("h1", mode="shared")
        for number, code in ((2, Code.SUCCESS), (4, Code.WARNING)):
            trait = f"{const.TRAIT_ELASTIC}_{number}"
            found.change_provider("h1", traits=frozenset({trait}))
            result = self.check(HOSTS, UNITS, found.snapshot())
            self.assertEqual(code, result.code)
        self.assertIn(f"h1 is enrolled for {trait}", result.details[0])

    def test_hosts(self):
        self.assertEqual(Code.SUCCESS, self.check(HOSTS).code)
        one = change_class(POLICY, "high-performance", max_per_host=1)
        self.assertIn("offers 2", self.check(HOSTS, one).details[0])
        self.assertIn("placement: units", self.check(HOSTS, UNITS).details[0])
        found = cloud()
        found.change_provider("h1", traits=frozenset())
        result = self.check(HOSTS, snapshot=found.snapshot())
        self.assertIn("HIGH_PERFORMANCE is missing", result.details[0])
        snapshot = dataclasses.replace(found.snapshot(), providers=())
        result = self.check(HOSTS, snapshot=snapshot)
        self.assertIn("not known to Placement", result.details[0])

    def faults(self, found, policy=POLICY):
        """Return what is said of hosts, and let the audit agree."""
        results = self.results(HOSTS, policy, found.snapshot())
        details = [detail for result in results for detail in result.details]
        subject = audit.Subject(policy, found.snapshot())
        differ = {codes.INVENTORY_DIFFERS, codes.TRAIT_DIFFERS}
        hosts = {f.subject for f in audit.run(subject).findings if f.code in differ}
        self.assertEqual(bool(hosts), bool(details))
        return " ".join(details)

    def test_hosts_without_a_label(self):
        found = Cloud()
        found.add_host("h1")
        without_slots(found, "h1")
        self.assertIn("offers 0", self.faults(found))
        self.assertEqual("", self.faults(found, LABELLED))
        found.parts["aggregates"] = (LABEL,)
        self.assertIn("has room for 2", self.faults(found, LABELLED))
        general = dataclasses.replace(LABEL, metadata={const.CLASS_KEY: "general"})
        found.parts["aggregates"] = (general,)
        self.assertEqual("", self.faults(found, LABELLED))
        # Nor is it missed where Placement has none of it.
        found.parts["aggregates"] = ()
        snapshot = dataclasses.replace(found.snapshot(), providers=())
        self.assertEqual((), self.check(HOSTS, LABELLED, snapshot).details)

    def test_hosts_with_fewer_slots_than_their_shape(self):
        reserved = Cloud()
        reserved.add_host("h1")
        reserved.change_inventories("h1", PCPU=Inventory(38, 38))
        without_slots(reserved, "h1")
        self.assertEqual("", self.faults(reserved))
        small = Cloud()
        small.add_host("h1", memory_gb=100)
        without_slots(small, "h1")
        self.assertEqual("", self.faults(small))
        kept = Cloud()
        kept.add_host("h1", memory_gb=130)
        total = 130 * 1024
        memory = Inventory(total, total, reserved=8192)
        kept.change_inventories("h1", MEMORY_MB=memory)
        self.assertIn("offers 2", self.faults(kept))
        kept.change_inventories("h1", **{const.RC_SLOT: Inventory(1, 1)})
        self.assertEqual("", self.faults(kept))

    def test_slots_of_hosts_whose_cells_are_not_known(self):
        found = cloud()
        found.change_inventories("h1", **{const.RC_SLOT: Inventory(3, 1)})
        snapshot = found.snapshot()
        bare = [dataclasses.replace(h, cells=(), shape=None) for h in snapshot.hosts]
        snapshot = dataclasses.replace(snapshot, hosts=tuple(bare))
        self.assertEqual((), self.check(HOSTS, snapshot=snapshot).details)
        # A host without PCPU has no slots, whatever its cells.
        found.change_inventories("h2", **{const.RC_SLOT: Inventory(2, 1)})
        snapshot = dataclasses.replace(found.snapshot(), hosts=tuple(bare))
        self.assertEqual(
            [f"h2: the host offers 2 {const.RC_SLOT}"],
            [
                detail.partition(" and has")[0]
                for detail in self.check(HOSTS, snapshot=snapshot).details
                if "offers" in detail
            ],
        )

    def test_filters(self):
        self.assertEqual(Code.UNKNOWN, self.check("Filters").code)
        for value, code in (
            ("ComputeFilter, PerfVMFilter,NUMATopologyFilter", Code.NOTE),
            ("PerfVMFilter,PerfVMNUMATopologyFilter", Code.SUCCESS),
            ("NUMATopologyFilter,PerfVMFilter", Code.WARNING),
            ("PerfVMNUMATopologyFilter,PerfVMFilter", Code.WARNING),
            ("NUMATopologyFilter", Code.FAILURE),
            (
                "PerfVMFilter,PerfVMNUMATopologyFilter,NUMATopologyFilter",
                Code.WARNING,
            ),
        ):
            result = self.check("Filters", settings={FILTERS: value})
            self.assertEqual(code, result.code)
        self.assertIn("judged twice", result.details[0])
        for value, said in (
            ("PerfVMFilter,NUMATopologyFilter", 1),
            ("PerfVMFilter,PerfVMNUMATopologyFilter", 0),
        ):
            result = self.check("Filters", settings={FILTERS: value})
            self.assertEqual((0, said), (result.code.exit_code, len(result.details)))
        self.assertEqual(Code.FAILURE, self.check("Filters", settings={}).code)


class DiffTest(testtools.TestCase):
    def diff(self, new, old=POLICY):
        return {(d.kind, d.name, d.what): (d.old, d.new) for d in compare(old, new)}

    def test_none(self):
        self.assertEqual([], compare(POLICY, POLICY))

    def test_fewer_on_a_host(self):
        found = self.diff(change_class(POLICY, "high-performance", max_per_host=1))
        self.assertEqual(
            {
                ("class", "high-performance", "max_per_host"): ("2", "1"),
                ("host", "2x20", "slots"): ("2", "1"),
                ("host", "2x20", const.RC_SLOT): ("2", "1"),
            },
            found,
        )

    def test_flavors(self):
        high = POLICY.get_class("high-performance")
        sizes = high.flavors.sizes[1:]
        flavors = dataclasses.replace(high.flavors, sizes=sizes)
        found = self.diff(
            change_class(
                POLICY, "high-performance", flavors=flavors, vif_multiqueue=False
            )
        )
        size = ("20 vCPUs, 65536 MiB, 0 GiB disk", "")
        self.assertEqual(size, found["flavor", "hp.20c.64g", "size"])
        key = "hw:vif_multiqueue_enabled"
        self.assertEqual(("true", ""), found["flavor", "hp.20c.128g", key])
        image = ("image", "class high-performance", "hw_vif_multiqueue_enabled")
        self.assertEqual(("true", ""), found[image])

    def test_another_scheme_and_another_shape(self):
        shapes = (HostShape.parse("1x20"),)
        found = self.diff(dataclasses.replace(UNITS, host_shapes=shapes))
        self.assertEqual(("slots", "units"), found["policy", "", "placement"])
        self.assertEqual(("2", ""), found["host", "2x20", const.RC_SLOT])
        self.assertEqual(
            ("", "1000 (at most 1000 a VM)"), found["host", "1x20", const.RC_UNIT]
        )

    def test_another_number_of_children(self):
        wide = dataclasses.replace(UNITS, elastic=Elastic(4))
        found = {d[:3]: (d.old, d.new) for d in compare(UNITS, wide)}
        traits = (f"{const.TRAIT_ELASTIC}_2", f"{const.TRAIT_ELASTIC}_4")
        self.assertEqual(("null", "4"), found["policy", "", "elastic.slots"])
        self.assertEqual(traits, found["host", "2x20", "trait"])
        new = ("", "required")
        self.assertEqual(new, found["flavor", "g.1c.2g", f"trait:{traits[1]}"])

    def test_servers_that_another_number_of_children_leaves_behind(self):
        wide = dataclasses.replace(UNITS, elastic=Elastic(4))
        cloud_of_two = Cloud(UNITS)
        cloud_of_two.add_host("h1", mode="shared")
        cloud_of_two.add_general("vm3", "h1")
        snapshot = cloud_of_two.snapshot()
        self.assertEqual([], compare_servers(UNITS, UNITS, snapshot))
        (found,) = compare_servers(UNITS, wide, snapshot)
        self.assertEqual(
            ("server", "vm3 (i-vm3)", codes.FLAVOR_LEFT_BEHIND),
            (found.kind, found.name, found.what),
        )
        self.assertIn("evacuates or unshelves it to no host", found.new)
        self.assertIn("openstack server resize --flavor", found.new)
        # It was left behind before.
        three = dataclasses.replace(UNITS, elastic=Elastic(3))
        self.assertEqual([], compare_servers(wide, three, snapshot))
        # Without elastic hosts its flavor asks for what no class takes.
        self.assertEqual(
            ["flavor.resources", "flavor.traits"],
            [found.what for found in compare_servers(UNITS, POLICY, snapshot)],
        )

    def test_a_shape_with_fewer_numa_nodes_than_a_vm(self):
        wide = change_class(POLICY, "high-performance", vcpus=40, numa_nodes=2)
        both = dataclasses.replace(
            wide, host_shapes=(HostShape(2, 20), HostShape(1, 40))
        )
        self.assertEqual([1, 0], [largest_slots_on(both, s) for s in both.host_shapes])
        found = [d for d in compare(POLICY, both) if d.name == "1x40"]
        self.assertEqual(
            [("slots", "2", "0"), (const.RC_SLOT, "2", "0")],
            [(d.what, d.old, d.new) for d in found],
        )

    def test_classes_that_come_and_go(self):
        only = dataclasses.replace(POLICY, classes=POLICY.classes[1:])
        found = self.diff(only)
        self.assertEqual(("declared", ""), found["class", "high-performance", ""])
        # Texts are as they are in the file.
        disk = dataclasses.replace(POLICY.classes[0].disk, volume_type="NVMe")
        found = self.diff(change_class(POLICY, "high-performance", disk=disk))
        key = ("class", "high-performance", "disk.volume_type")
        self.assertEqual(("nvme-tcp", "NVMe"), found[key])

    def test_servers_that_the_new_policy_would_not_allow(self):
        snapshot = cloud().snapshot()
        self.assertEqual([], compare_servers(POLICY, POLICY, snapshot))
        one = change_class(POLICY, "high-performance", max_per_host=1)
        (found,) = compare_servers(POLICY, one, snapshot)
        self.assertEqual(("host", "h1"), (found.kind, found.name))
        self.assertIn("max_per_host is 1", found.new)
        smaller = change_class(POLICY, "high-performance", vcpus=10)
        found = compare_servers(POLICY, smaller, snapshot)
        servers = {d.name for d in found if d.kind == "server"}
        self.assertEqual({"vm1 (i-vm1)", "vm2 (i-vm2)"}, servers)
        self.assertEqual([], compare_servers(one, POLICY, snapshot))

    def test_a_new_size_proposes_to_keep_the_old_one(self):
        what = "servers of 20 vCPUs cannot be moved without"
        key = ("proposal", "class high-performance", what)
        changed = change_class(POLICY, "high-performance", vcpus=18)
        self.assertEqual(("", "former_vcpus: [20]"), self.diff(changed)[key])
        again = change_class(changed, "high-performance", former_vcpus=(16,))
        self.assertEqual(("", "former_vcpus: [16, 20]"), self.diff(again)[key])
        kept = change_class(changed, "high-performance", former_vcpus=(20,))
        self.assertNotIn(key, self.diff(kept))
        # On other NUMA nodes they are not of the class in any size.
        split = change_class(changed, "high-performance", numa_nodes=2)
        self.assertNotIn(key, self.diff(split))

    def test_servers_that_keep_a_former_size(self):
        snapshot = cloud().snapshot()
        for former, code in (((), "flavor.vcpus"), ((20,), codes.FORMER_SIZE)):
            changed = change_class(
                POLICY, "high-performance", vcpus=18, former_vcpus=former
            )
            found = compare_servers(POLICY, changed, snapshot)
            self.assertEqual(
                [("server", f"vm{n} (i-vm{n})", code) for n in (1, 2)],
                [(d.kind, d.name, d.what) for d in found],
            )

    def test_hosts_that_only_one_policy_judges(self):
        """A high-performance VM and a general one, on a host without a label."""
        found = cloud()
        found.add_general("vm4", "h1")
        snapshot = found.snapshot()
        self.assertEqual([], compare_servers(LABELLED, LABELLED, snapshot))
        (mixed,) = compare_servers(LABELLED, POLICY, snapshot)
        self.assertEqual(
            ("host", "h1", codes.CLASSES_MIXED), (mixed.kind, mixed.name, mixed.what)
        )
        self.assertEqual([], compare_servers(POLICY, LABELLED, snapshot))
        one = change_class(LABELLED, "high-performance", max_per_host=1)
        self.assertEqual([], compare_servers(LABELLED, one, snapshot))
        # With one, the rules hold there under both.
        found.parts["aggregates"] = (LABEL,)
        snapshot = found.snapshot()
        self.assertEqual([], compare_servers(LABELLED, POLICY, snapshot))
        (many,) = compare_servers(LABELLED, one, snapshot)
        self.assertEqual(codes.TOO_MANY_ON_HOST, many.what)

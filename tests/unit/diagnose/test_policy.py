# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import Selection, Sync
from nova_perfvm.diagnose.hosts import inventories_of, summarize
from nova_perfvm.diagnose.policy_diff import compare, compare_servers
from nova_perfvm.facts.snapshot import Aggregate, Inventory, Provider
from nova_perfvm.findings import Level
from nova_perfvm.policy import Elastic, HostShape, loader
from tests.unit.facts.snapshot.clouds import Cloud
from tests.unit.generate import filter_lists

POLICY = loader.load()
UNITS = dataclasses.replace(POLICY, placement="units")
LABELLED = dataclasses.replace(POLICY, managed_hosts="labelled")
HOSTS = "Hosts offer what the policy says"
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
                first.view.host,
                first.view.state,
                first.mode,
                first.view.compute.shape.cells,
                first.slots,
                first.used,
                first.classes,
                tuple(a.name for a in first.view.aggregates),
            ),
        )
        self.assertEqual(
            "40 of 40 used, at most 40 a VM", inventories_of(first.view)["h1 PCPU"]
        )
        self.assertEqual(2, len(first.view.servers))
        self.assertEqual(
            ("shared", None, ("general",), ()),
            (second.mode, second.slots, second.classes, second.view.aggregates),
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


class CheckTest(testtools.TestCase):
    """What ``policy check`` says, by the titles of its checks."""

    def check(self, title, policy=POLICY, snapshot=None, **facts):
        """Return what one check found, but what holds."""
        subject = audit.Subject(policy, snapshot or cloud().snapshot(), **facts)
        results = dict(audit.run_selection(Selection.POLICY, subject))
        return [f for f in results[title] if f.level is not Level.OK]

    def codes(self, title, *arguments, **facts):
        return [finding.code for finding in self.check(title, *arguments, **facts)]

    def words(self, title, *arguments, **facts):
        found = self.check(title, *arguments, **facts)
        return "; ".join(f"{f.subject}: {f.observed}" for f in found)

    def test_policy(self):
        """What is inherent in a choice is a note, and no exit status."""
        for policy, noted in (
            (POLICY, [codes.NO_CPU_FOR_HOST]),
            (UNITS, [codes.NO_CPU_FOR_HOST, codes.RESTS_ON_FALLBACK]),
        ):
            self.assertEqual(noted, self.codes("Policy", policy))
            self.assertIs(Level.NOTE, codes.worst(self.check("Policy", policy)))

    def test_what_the_policy_accepts(self):
        lenient = dataclasses.replace(POLICY, accept=tuple(codes.LEVELS))
        sync = Sync(changes=("create hp",))
        (found,) = self.check("Flavors", lenient, sync=sync)
        self.assertIs(Level.NOTE, found.level)
        self.assertEqual("would create hp (accepted in the policy)", found.observed)
        (found,) = self.check("Filters", lenient)
        self.assertIs(Level.NOTE, found.level)
        for title, facts in (
            ("Flavors", {"sync": Sync(refusals=("hp is in use",))}),
            ("Filters", {"nova_settings": {}}),
        ):
            found = self.check(title, lenient, **facts)
            self.assertIs(Level.FAILURE, codes.worst(found))

    def test_flavors(self):
        self.assertEqual([], self.codes("Flavors"))
        sync = Sync(("create hp",), ("hp is in use",))
        self.assertEqual([codes.FLAVORS_REFUSED], self.codes("Flavors", sync=sync))

    def test_whether_a_host_is_judged(self):
        found = cloud()
        title = "Some host is judged"
        self.assertEqual([codes.NO_HOST_JUDGED], self.codes(title, LABELLED))
        self.assertEqual([], self.codes(title))
        found.parts["aggregates"] = (LABEL,)
        self.assertEqual([], self.codes(title, LABELLED, found.snapshot()))

    def test_isolated_aggregates(self):
        title = "General VMs keep off slots"
        self.assertEqual([], self.codes(title))
        (fault,) = self.check(title, isolated_aggregates=True)
        self.assertEqual((codes.GENERAL_ON_SLOTS, "h1"), (fault.code, fault.subject))
        key = f"trait:{const.TRAIT_HIGH_PERFORMANCE}"
        self.assertIn(f"{key}=required", fault.remedy)
        found = cloud()
        found.parts["aggregates"] = (
            dataclasses.replace(LABEL, metadata={key: "required"}),
        )
        snapshot = found.snapshot()
        self.assertEqual([], self.codes(title, POLICY, snapshot, isolated_aggregates=1))

    def test_hosts_that_placement_does_not_know(self):
        title = "Placement knows the hosts"
        found = cloud()
        self.assertEqual([], self.codes(title))
        snapshot = dataclasses.replace(found.snapshot(), providers=())
        self.assertEqual([codes.HOST_UNKNOWN] * 2, self.codes(title, snapshot=snapshot))
        # Nor is it missed where no host is judged.
        self.assertEqual([], self.codes(title, LABELLED, snapshot))

    def test_filters(self):
        self.assertEqual([codes.FILTERS_UNKNOWN], self.codes("Filters"))
        key = ("filter_scheduler", "enabled_filters")
        for text, expected, words in filter_lists.LISTS:
            settings = {key: text.replace(",", ", ")}
            facts = {"nova_settings": settings}
            self.assertCountEqual(expected, self.codes("Filters", **facts))
            self.assertIn(words, self.words("Filters", **facts))

    def test_hosts(self):
        self.assertEqual([], self.codes(HOSTS))
        one = change_class(POLICY, "high-performance", max_per_host=1)
        self.assertIn("offers 2", self.words(HOSTS, one))
        self.assertIn("placement: units", self.words(HOSTS, UNITS))
        found = cloud()
        found.change_provider("h1", traits=frozenset())
        words = self.words(HOSTS, snapshot=found.snapshot())
        self.assertIn("HIGH_PERFORMANCE is missing", words)

    def test_hosts_without_a_label(self):
        found = Cloud()
        found.add_host("h1")
        without_slots(found, "h1")
        general = dataclasses.replace(LABEL, metadata={const.CLASS_KEY: "general"})
        for aggregates, policy, words in (
            ((), POLICY, "offers 0"),
            ((), LABELLED, ""),
            ((LABEL,), LABELLED, "has room for 2"),
            ((general,), LABELLED, ""),
        ):
            found.parts["aggregates"] = aggregates
            said = self.words(HOSTS, policy, found.snapshot())
            self.assertIn(words, said)
            self.assertEqual(bool(words), bool(said))

    def test_hosts_with_fewer_slots_than_their_shape(self):
        reserved = Cloud()
        reserved.add_host("h1")
        reserved.change_inventories("h1", PCPU=Inventory(38, 38))
        without_slots(reserved, "h1")
        self.assertEqual("", self.words(HOSTS, snapshot=reserved.snapshot()))
        small = Cloud()
        small.add_host("h1", memory_gb=100)
        without_slots(small, "h1")
        self.assertEqual("", self.words(HOSTS, snapshot=small.snapshot()))
        kept = Cloud()
        kept.add_host("h1", memory_gb=130)
        total = 130 * 1024
        memory = Inventory(total, total, reserved=8192)
        kept.change_inventories("h1", MEMORY_MB=memory)
        self.assertIn("offers 2", self.words(HOSTS, snapshot=kept.snapshot()))
        kept.change_inventories("h1", **{const.RC_SLOT: Inventory(1, 1)})
        self.assertEqual("", self.words(HOSTS, snapshot=kept.snapshot()))


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
        self.assertIn("evacuates or unshelves it to no host enrolled", found.new)
        self.assertIn("openstack server resize --flavor", found.new)
        # It was left behind before.
        three = dataclasses.replace(UNITS, elastic=Elastic(3))
        self.assertEqual([], compare_servers(wide, three, snapshot))
        # Without elastic hosts its flavor asks for what no class takes.
        self.assertEqual(
            ["audit.contract_differs"] * 2,
            [found.what for found in compare_servers(UNITS, POLICY, snapshot)],
        )

    def test_a_shape_with_fewer_numa_nodes_than_a_vm(self):
        wide = change_class(POLICY, "high-performance", vcpus=40, numa_nodes=2)
        both = dataclasses.replace(
            wide, host_shapes=(HostShape(2, 20), HostShape(1, 40))
        )
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
        for former, code in (((), "audit.wrong_size"), ((20,), codes.FORMER_SIZE)):
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
        left = compare_servers(POLICY, LABELLED, snapshot)
        self.assertEqual(["audit.host_not_managed"] * 2, [d.what for d in left])
        one = change_class(LABELLED, "high-performance", max_per_host=1)
        self.assertEqual([], compare_servers(LABELLED, one, snapshot))
        # With one, the rules hold there under both.
        found.parts["aggregates"] = (LABEL,)
        snapshot = found.snapshot()
        self.assertEqual([], compare_servers(LABELLED, POLICY, snapshot))
        (many,) = compare_servers(LABELLED, one, snapshot)
        self.assertEqual(codes.TOO_MANY_ON_HOST, many.what)

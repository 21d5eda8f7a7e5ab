# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import hosts as host_checks
from nova_perfvm.facts.recorded_policy import RecordedPolicy
from nova_perfvm.facts.snapshot import (
    CREATED,
    NOVA_DATABASE,
    Aggregate,
    Image,
    Inventory,
    Migration,
    Provider,
    Server,
)
from nova_perfvm.findings import LEVELS, Level
from nova_perfvm.placement.schemes import units
from nova_perfvm.policy import Disk
from tests.unit.facts.snapshot.clouds import GENERAL, HP, POLICY, Cloud
from tests.unit.rules import hosts

RIGHT = {("placement", "allocation_conflict_retry_count"): "1"}
ELASTIC = dataclasses.replace(POLICY, placement="units")
TRAIT = units.UNITS.enrolled_trait(ELASTIC)


def small():
    """Return a cloud of one host of either kind, with VMs, that is in order."""
    cloud = Cloud()
    cloud.add_host("hp1")
    cloud.add_host("g1", "shared")
    cloud.add_hp("a", "hp1", 0)
    cloud.add_hp("b", "hp1", 20, node=1)
    cloud.add_general("c", "g1")
    cloud.parts["images"] = (Image("image", "cirros"),)
    return cloud


def named(finding):
    return finding.code, finding.subject


class AuditTest(testtools.TestCase):
    def audit(self, cloud, policy=None, settings=RIGHT):
        subject = audit.Subject(policy or cloud.policy, cloud.snapshot(), settings)
        return audit.run(subject)

    def found(self, cloud, policy=None, settings=RIGHT):
        """Return (code, subject), each finding having been looked at."""
        findings = self.audit(cloud, policy, settings).findings
        for finding in findings:
            self.assertIn(finding.code, LEVELS)
            self.assertTrue(finding.observed)
            self.assertRegex(finding.remedy, r"^(openstack|nova-\w+|crudini) ")
        return [named(finding) for finding in findings]

    def observed(self, cloud, **options):
        return " ".join(f.observed for f in self.audit(cloud, **options).findings)


class CleanTest(AuditTest):
    def test_nothing_is_found(self):
        report = self.audit(small())
        self.assertEqual((), report.findings)
        self.assertEqual(0, report.exit_code(strict=True))
        self.assertEqual((2, 3), (report.hosts, report.servers))

    def test_nor_in_an_empty_cloud_nor_under_other_schemes(self):
        self.assertEqual([], self.found(Cloud()))
        none = Cloud(dataclasses.replace(POLICY, placement="none"))
        none.add_host("h1")
        none.add_hp("a", "h1", 0)
        self.assertEqual([], self.found(none))
        self.assertEqual([], self.found(elastic_cloud()))

    def test_what_is_under_way(self):
        cloud = small()
        cloud.allocate("m", "g1", {"VCPU": 2})
        cloud.add_general("building", None)
        cloud.change_server("building", status="BUILD")
        cloud.parts["migrations"] = (Migration("m", "i-c", "migration", "finished"),)
        self.assertEqual([], self.found(cloud))

    def test_what_an_evacuation_leaves_on_the_host_that_failed(self):
        cloud = small()
        cloud.allocate("i-c", "hp1", {"MEMORY_MB": 1})
        source = {"source": "hp1", "destination": "g1"}
        evacuation = Migration("m", "i-c", "evacuation", "done", **source)
        cloud.parts["migrations"] = (evacuation,)
        self.assertEqual([], self.found(cloud))
        cloud.change_server("c", host=None, status="SHELVED_OFFLOADED")
        self.assertEqual([(codes.LEAKED_ALLOCATION, "i-c")], self.found(cloud))
        cloud.change_provider("g1", allocations={})
        self.assertEqual([], self.found(cloud))
        cloud.change_server("c", host="g1", status="ERROR")
        self.assertEqual([(codes.ALLOCATION_MISSING, "c (i-c)")], self.found(cloud))

    def test_sizes_of_the_general_class(self):
        cloud = small()
        cloud.flavors["odd"] = dataclasses.replace(
            cloud.flavors[GENERAL], id="odd", name="odd", vcpus=7, extra_specs={}
        )
        cloud.add_general("d", "g1", "odd")
        self.assertEqual([], self.found(cloud))


def elastic_cloud():
    """Return a cloud with an enrolled host and one VM of each child."""
    cloud = Cloud(ELASTIC)
    cloud.add_host("e1", "open")
    cloud.change_provider("e1", traits=frozenset({TRAIT}))
    cloud.change_provider("e1", aggregates=frozenset({"u"}))
    for child in units.UNITS.children(ELASTIC, "e1", 2):
        cloud.providers[child.name] = Provider(
            uuid=child.name,
            name=child.name,
            generation=1,
            inventories={const.RC_UNIT: Inventory(child.total, child.max_unit)},
            traits=frozenset({child.trait}),
            parent="p-e1",
            root="p-e1",
        )
    cloud.add_hp("a", "e1", 0)
    cloud.allocate("i-a", "e1_perfvm_a", {const.RC_UNIT: 1000})
    metadata = {f"trait:{TRAIT}": "required"}
    cloud.parts["aggregates"] = (
        Aggregate(1, "u", "elastic", metadata, frozenset({"e1"})),
    )
    cloud.allocate("i-a", "e1", {"VCPU": 20})
    return cloud


class OneChangeTest(AuditTest):
    """A cloud that is in order, one thing changed, and what is found."""

    def test_each(self):
        off = Image("image", "i", {const.IMAGE_VIF_MULTIQUEUE: "False"})
        gold = {const.CLASS_KEY: "gold"}
        for change, expected in (
            (lambda c: c.add_general("d", "hp1"), {(codes.CLASSES_MIXED, "hp1")}),
            (
                lambda c: c.change_server("b", cells=c.servers["a"].cells),
                {(codes.PINS_OVERLAP, "hp1"), (codes.TOO_MANY_ON_CELL, "hp1")},
            ),
            (
                lambda c: c.change_server("a", vcpus=16, flavor="old"),
                {("audit.slot_stranded", "hp1"), ("audit.wrong_size", "a (i-a)")},
            ),
            (
                lambda c: c.change_server("c", extra_specs=gold, flavor="old"),
                {(codes.CLASS_UNKNOWN, "c (i-c)")},
            ),
            (
                lambda c: c.parts.update(images=(off,)),
                {(codes.IMAGE_CONFLICT, "image i")},
            ),
            (
                lambda c: c.allocate("i-c", "g1", {"VCPU": 500}),
                {(codes.OVER_INVENTORY, "g1")},
            ),
        ):
            cloud = small()
            change(cloud)
            with self.subTest(expected):
                self.assertEqual(expected, set(self.found(cloud)))


class ServersTest(AuditTest):
    def test_classes_mixed_on_a_cell(self):
        """Of 2x40 with dedicated and shared CPUs, by where the cells are known from."""
        cloud = Cloud(hosts.policy(exclusive="cell"))
        cloud.add_host("h1", "shared", "2x40")
        cloud.add_hp("a", "h1")
        cloud.add_general("b", "h1")
        cloud.parts["images"] = (Image("image", "cirros"),)
        slots = {const.RC_SLOT: Inventory(2, 1), "PCPU": Inventory(40, 40)}
        cloud.change_inventories("h1", **slots)
        trait = frozenset({const.TRAIT_HIGH_PERFORMANCE})
        cloud.change_provider("h1", traits=trait)
        for vcpus, expected in ((40, []), (30, [(codes.CELLS_UNKNOWN, "h1")])):
            cloud.change_inventories("h1", VCPU=Inventory(vcpus, vcpus))
            self.assertEqual(expected, self.found(cloud))
        found = cloud.snapshot()
        (host,) = found.hosts
        known = dataclasses.replace(host, cells_source=NOVA_DATABASE)
        found = dataclasses.replace(found, hosts=(known,))
        (finding,) = audit.run(audit.Subject(cloud.policy, found, RIGHT)).findings
        self.assertEqual((codes.CLASSES_MIXED, "h1"), named(finding))
        self.assertEqual("openstack server migrate i-b", finding.remedy)

    def test_three_on_a_host_and_two_on_a_cell(self):
        """On an SMT host, which has the threads for more than its cores."""
        cloud = Cloud()
        cloud.add_host("hp1", shape="2x20x2")
        for index, name in enumerate("abc"):
            cloud.add_hp(name, "hp1", 20 * index, node=min(index, 1))
        self.assertEqual(
            {
                (codes.TOO_MANY_ON_HOST, "hp1"),
                (codes.TOO_MANY_ON_CELL, "hp1"),
                (codes.OVER_INVENTORY, "hp1"),
            },
            set(self.found(cloud)),
        )

    def test_split_over_cells(self):
        cloud = small()
        (cell,) = cloud.servers["b"].cells
        halves = [
            dataclasses.replace(
                cell,
                host_node=node,
                vcpus=frozenset(range(10 * node, 10 * node + 10)),
                cpu_pinning={v: 20 + v for v in range(10 * node, 10 * node + 10)},
            )
            for node in (0, 1)
        ]
        cloud.change_server("b", cells=tuple(halves))
        found = self.found(cloud)
        self.assertIn((codes.NOT_IN_ONE_CELL, "b (i-b)"), found)

    def test_not_pinned(self):
        cloud = small()
        cloud.change_server("a", cells=(), pinned=False)
        self.assertEqual([(codes.NOT_PINNED, "a (i-a)")], self.found(cloud))
        (finding,) = self.audit(cloud).findings
        # Nova refuses the flavor that it has.
        again = "openstack perfvm flavor sync --prefix new-"
        resize = f"openstack server resize --flavor new-{HP} i-a"
        self.assertEqual(f"{again}\n{resize}", finding.remedy)

        cloud.change_server("a", flavor="old")
        (finding,) = self.audit(cloud).findings
        self.assertEqual(f"openstack server resize --flavor {HP} i-a", finding.remedy)

    def test_no_cells(self):
        cloud = small()
        cloud.hosts["hp1"] = dataclasses.replace(cloud.hosts["hp1"])
        found = cloud.snapshot()
        bare = [dataclasses.replace(h, cells=(), shape=None) for h in found.hosts]
        found = dataclasses.replace(found, hosts=tuple(bare))
        report = audit.run(audit.Subject(POLICY, found, RIGHT))
        self.assertEqual(
            [(codes.CELLS_UNKNOWN, "hp1")], [named(f) for f in report.findings]
        )
        self.assertEqual([0, 1], [report.exit_code(strict=s) for s in (False, True)])

    def test_reserved_and_not_managed_hosts(self):
        cloud = small()
        label = {const.CLASS_KEY: "high-performance"}
        cloud.parts["aggregates"] = (
            Aggregate(1, "u", "a", label, frozenset({"hp1", "g1"})),
        )
        self.assertEqual([("audit.host_reserved", "c (i-c)")], self.found(cloud))
        labelled = dataclasses.replace(POLICY, managed_hosts="labelled")
        cloud.parts["aggregates"] = ()
        self.assertEqual(
            [
                *(("audit.host_not_managed", f"{name} (i-{name})") for name in "ab"),
                (codes.LABEL_MISSING, "hp1"),
            ],
            self.found(cloud, labelled),
        )


class ClaimsTest(AuditTest):
    def specs(self, cloud, name, **changes):
        """Change the extra specs that are embedded in a server, and the flavor's."""
        specs = dict(cloud.servers[name].extra_specs)
        for key, value in changes.items():
            del specs[key]
            if value is not None:
                specs[key] = value
        cloud.change_server(name, extra_specs=specs, flavor="old")

    def test_former_size(self):
        cloud = Cloud(hosts.policy(vcpus=18, former_vcpus=(20,)))
        cloud.flavors |= Cloud().flavors
        cloud.add_host("hp1")
        cloud.add_hp("a", "hp1")
        found = [f for f in self.audit(cloud).findings if f.subject == "a (i-a)"]
        self.assertEqual([codes.FORMER_SIZE], [finding.code for finding in found])
        self.assertIs(Level.NOTE, found[0].level)
        self.assertIn("20 vCPUs, a former size", found[0].observed)
        undeclared = hosts.policy(vcpus=18)
        self.assertIn(("audit.wrong_size", "a (i-a)"), self.found(cloud, undeclared))

    def test_no_multiqueue(self):
        cloud = small()
        self.specs(cloud, "a", **{const.VIF_MULTIQUEUE: None})
        self.assertEqual([("audit.no_multiqueue", "a (i-a)")], self.found(cloud))
        image = Image("i", "tuned", {const.IMAGE_VIF_MULTIQUEUE: "yes"})
        cloud.parts["images"] = (image,)
        cloud.change_server("a", image="i")
        self.assertEqual([("audit.not_of_class", "a (i-a)")], self.found(cloud))
        self.assertIn("boot from a volume", self.observed(cloud))

    def test_image_trait(self):
        cloud = small()
        image = Image("i", "mine", {f"trait:{TRAIT}": "required"})
        cloud.parts["images"] = (image,)
        cloud.change_server("c", image="i")
        self.assertEqual([("audit.image_trait", "c (i-c)")], self.found(cloud))
        (finding,) = self.audit(cloud).findings
        self.assertIn(const.TRAIT_ELASTIC, finding.observed)
        self.assertIn("server rebuild --image IMAGE i-c", finding.remedy)

    def test_pinned_of_no_class(self):
        cloud = small()
        cloud.servers.pop("b")
        cloud.change_provider("hp1", allocations={"i-a": {"PCPU": 20}})
        self.specs(cloud, "a", **{const.CLASS_KEY: None})
        self.assertEqual([("audit.classless_pinned", "a (i-a)")], self.found(cloud))

    def test_flavor_changed(self):
        cloud = small()
        specs = cloud.flavors[GENERAL].extra_specs | {"hw:watchdog_action": "reset"}
        cloud.change_flavor(GENERAL, memory_mb=8192, extra_specs=specs)
        self.assertEqual([(codes.FLAVOR_CHANGED, "c (i-c)")], self.found(cloud))
        self.assertIn("ram was 4096, is 8192", self.observed(cloud))
        self.assertIn("was (not set), is reset", self.observed(cloud))
        (finding,) = self.audit(cloud).findings
        identity = cloud.flavors[GENERAL].id
        resize = "openstack server resize --flavor"
        self.assertEqual(f"{resize} {identity} i-c", finding.remedy)

        # Changed in place, it is the flavor that the server has, to Nova.
        cloud.change_flavor(GENERAL, memory_mb=4096)
        (finding,) = self.audit(cloud).findings
        create, specify, again = finding.remedy.splitlines()
        self.assertEqual(
            f"openstack flavor show new-{GENERAL} >/dev/null 2>&1 || openstack flavor "
            f"create --vcpus 2 --ram 4096 --disk 40 new-{GENERAL}",
            create,
        )
        self.assertTrue(specify.startswith("openstack flavor set --property "))
        self.assertIn(" --property hw:watchdog_action=reset ", specify)
        self.assertTrue(specify.endswith(f" new-{GENERAL}"))
        self.assertEqual(f"{resize} new-{GENERAL} i-c", again)

        # A private one is not shown to everybody.
        cloud.change_flavor(GENERAL, public=False)
        (finding,) = self.audit(cloud).findings
        create, *_ = finding.remedy.splitlines()
        self.assertIn(f" --private --project PROJECT new-{GENERAL}", create)

    def test_flavor_differs(self):
        cloud = Cloud()
        for change, words in (
            ({"hw:cpu_policy": "shared"}, "hw:cpu_policy is shared, should be"),
            ({"hw:numa_nodes": "2"}, "hw:numa_nodes is 2, should be 1"),
            ({"hw:cpu_thread_policy": "isolate"}, "is isolate, should be prefer"),
            ({"hw:cpu_dedicated_mask": "0-3"}, "0-3, should not be set"),
            ({f"resources:{const.RC_SLOT}": "2"}, "is 2, should be 1"),
        ):
            with self.subTest(words):
                given = Cloud().flavors[HP].extra_specs
                cloud.change_flavor(HP, extra_specs={**given, **change})
                self.assertEqual(
                    [(codes.FLAVOR_DIFFERS, f"flavor {HP}")], self.found(cloud)
                )
                self.assertIn(words, self.observed(cloud))
        cloud = Cloud()
        cloud.change_flavor(HP, vcpus=16)
        self.assertIn("16 vCPUs, should be 20", self.observed(cloud))
        sync = "openstack perfvm flavor sync"
        for name, remedy in (
            (HP, sync),
            (f"dc1-{HP}", f"{sync} --prefix dc1-"),
            # What is not listed is not synced.
            ("by-hand", f"openstack flavor delete {HP}"),
        ):
            cloud.flavors[HP] = dataclasses.replace(cloud.flavors[HP], name=name)
            (finding,) = self.audit(cloud).findings
            self.assertEqual(
                (f"flavor {name}", remedy), (finding.subject, finding.remedy)
            )
        # Where aggregates isolate the hosts, flavors need not.
        cloud = Cloud()
        specs = dict(cloud.flavors[GENERAL].extra_specs)
        self.assertEqual(
            "forbidden", specs.pop(f"trait:{const.TRAIT_HIGH_PERFORMANCE}")
        )
        cloud.change_flavor(GENERAL, extra_specs=specs)
        self.assertEqual([], self.found(cloud))
        # One that operators have extended is still the policy's.
        specs = cloud.flavors[HP].extra_specs
        cloud.change_flavor(HP, extra_specs={**specs, "hw:watchdog_action": "reset"})
        self.assertEqual([], self.found(cloud))
        cloud.change_flavor(GENERAL, extra_specs={const.CLASS_KEY: "gold"})
        self.assertEqual(
            [(codes.CLASS_UNKNOWN, f"flavor {GENERAL}")], self.found(cloud)
        )

    def test_near_misses(self):
        for key in ("prefvm:class", "perfvm_class", "perfvm:clas", "Perfvm:Class"):
            cloud = Cloud()
            cloud.flavors["x"] = dataclasses.replace(
                cloud.flavors[GENERAL], id="x", name="x", extra_specs={key: "general"}
            )
            self.assertEqual([(codes.NEAR_MISS, "flavor x")], self.found(cloud))
        cloud = small()
        cloud.parts["images"] = (Image("image", "i", {"perfvm_class": "general"}),)
        metadata = {
            "perfvm_class": "x",
            "perfvm_weight_multiplier": "2",
            **CREATED,
            **RecordedPolicy("0").as_metadata(),
        }
        cloud.parts["aggregates"] = (Aggregate(1, "u", "a", metadata, frozenset()),)
        specs = {"prefvm:class": "high-performance"}
        cloud.change_server("c", extra_specs=specs, flavor="old")
        self.assertEqual(
            [
                (codes.NEAR_MISS, "c (i-c)"),
                (codes.NEAR_MISS, "aggregate a"),
                (codes.NEAR_MISS, "image i"),
            ],
            self.found(cloud),
        )

    def test_what_image_sync_writes_is_no_near_miss(self):
        cloud = Cloud()
        properties = {
            const.IMAGE_RECORD: const.IMAGE_VIF_MULTIQUEUE,
            const.IMAGE_VIF_MULTIQUEUE: "true",
        }
        cloud.parts["images"] = (Image("image", "i", properties),)
        self.assertEqual([], self.found(cloud))

    def test_remedies_can_be_pasted(self):
        cloud = Cloud()
        cloud.flavors["x"] = dataclasses.replace(
            cloud.flavors[GENERAL],
            id="my flavor; reboot",
            name="x",
            extra_specs={"prefvm:class": "$(reboot)"},
        )
        (finding,) = self.audit(cloud).findings
        self.assertEqual(
            "openstack flavor unset --property prefvm:class 'my flavor; reboot'\n"
            "openstack flavor set --property 'perfvm:class=$(reboot)' "
            "'my flavor; reboot'",
            finding.remedy,
        )

    def test_images_of_tenants_are_noted(self):
        cloud = small()
        properties = {const.IMAGE_VIF_MULTIQUEUE: "no", "perfvm_class": "general"}
        image = Image("image", "i", properties, owner="tenant", visibility="shared")
        cloud.parts["images"] = (image,)
        self.assertEqual([(codes.TENANT_IMAGE, "image i")] * 2, self.found(cloud))
        report = self.audit(cloud)
        self.assertEqual([0, 0], [report.exit_code(strict=s) for s in (False, True)])
        # What counts comes first, and nothing hides it.
        cloud.parts["gaps"] = ("images: some",)
        report = self.audit(cloud)
        self.assertEqual(codes.NOT_SEEN, report.findings[0].code)
        self.assertEqual([0, 1], [report.exit_code(strict=s) for s in (False, True)])
        cloud.parts["project"] = "tenant"
        self.assertEqual(1, self.audit(cloud).exit_code())


class HostsTest(AuditTest):
    def test_slots_and_trait(self):
        cloud = small()
        inventories = cloud.providers["hp1"].inventories
        cloud.change_provider(
            "hp1", inventories={**inventories, const.RC_SLOT: Inventory(3, 1)}
        )
        self.assertEqual([(codes.INVENTORY_DIFFERS, "hp1")], self.found(cloud))
        self.assertIn("room for 2", self.observed(cloud))
        cloud.change_provider(
            "hp1", inventories={**inventories, const.RC_SLOT: Inventory(2, 2)}
        )
        self.assertEqual([(codes.INVENTORY_DIFFERS, "hp1")], self.found(cloud))
        cloud.change_provider("hp1", inventories=inventories, traits=frozenset())
        self.assertEqual([(codes.TRAIT_DIFFERS, "hp1")], self.found(cloud))

    def test_slots_where_there_should_be_none(self):
        cloud = small()
        cloud.change_provider(
            "g1",
            inventories={
                **cloud.providers["g1"].inventories,
                const.RC_SLOT: Inventory(2, 1),
            },
            traits=frozenset({const.TRAIT_HIGH_PERFORMANCE}),
        )
        self.assertEqual(
            [(codes.INVENTORY_DIFFERS, "g1"), (codes.TRAIT_DIFFERS, "g1")],
            self.found(cloud),
        )
        none = dataclasses.replace(POLICY, placement="none")
        cloud = Cloud(none)
        cloud.add_host("h1")
        cloud.change_provider("h1", inventories={const.RC_SLOT: Inventory(2, 1)})
        self.assertEqual([(codes.INVENTORY_DIFFERS, "h1")], self.found(cloud))

    def test_memory_that_is_kept_back(self):
        """What holds two VMs by its cells and one by what is left over."""
        cloud = Cloud()
        cloud.add_host("h1", memory_gb=130)
        self.assertEqual([], self.found(cloud))
        inventories = dict(cloud.providers["h1"].inventories)
        total = 130 * 1024
        inventories["MEMORY_MB"] = Inventory(total, total, reserved=8192)
        cloud.change_provider("h1", inventories=inventories)
        self.assertIn("room for 1", self.observed(cloud))

    def test_what_goes_together_where_cells_are_not_known(self):
        cloud = small()
        inventories = cloud.providers["hp1"].inventories
        for changes, expected in (
            ({}, []),
            ({const.RC_SLOT: Inventory(3, 1)}, []),
            ({const.RC_SLOT: Inventory(2, 2)}, [(codes.INVENTORY_DIFFERS, "hp1")]),
            ({const.RC_SLOT: None}, [(codes.TRAIT_DIFFERS, "hp1")]),
            # Without PCPU it has no slots, whatever its cells.
            (
                {"PCPU": None},
                [(codes.INVENTORY_DIFFERS, "hp1"), (codes.TRAIT_DIFFERS, "hp1")],
            ),
        ):
            cloud.change_provider("hp1", inventories=inventories)
            cloud.change_inventories("hp1", **changes)
            found = cloud.snapshot()
            bare = [dataclasses.replace(h, cells=(), shape=None) for h in found.hosts]
            found = dataclasses.replace(found, hosts=tuple(bare), servers=())
            subject = audit.Subject(POLICY, found, RIGHT)
            self.assertEqual(
                expected, [named(f) for f in host_checks.check_offers(subject)]
            )

    def test_iops(self):
        policy = hosts.policy(disk=Disk("volume", read_iops=5000))
        cloud = Cloud(policy)
        cloud.add_host("h1")
        self.assertIn("0 CUSTOM_PERFVM_READ_IOPS", self.observed(cloud))

    def test_label_unknown(self):
        cloud = small()
        label = {const.CLASS_KEY: "gold, high-performance"}
        cloud.parts["aggregates"] = (Aggregate(1, "u", "a", label, frozenset({"hp1"})),)
        self.assertEqual([(codes.LABEL_UNKNOWN, "aggregate a")], self.found(cloud))
        self.assertIn("nothing comes to hp1", self.observed(cloud))

    def test_what_nova_knows_of_a_host_makes_no_sense(self):
        for change, words in (
            ({"unreadable": "KeyError: 'cells'", "cells": ()}, "KeyError: 'cells'"),
            ({"vcpus_used": -4}, "-4 vCPUs used"),
        ):
            cloud = Cloud(POLICY)
            cloud.add_host("hp1")
            found = cloud.snapshot()
            odd = tuple(dataclasses.replace(h, **change) for h in found.hosts)
            subject = audit.Subject(
                POLICY, dataclasses.replace(found, hosts=odd), RIGHT
            )
            (finding,) = host_checks.check_offers(subject)
            self.assertEqual((codes.HOST_UNREADABLE, "hp1"), named(finding))
            self.assertIn(words, finding.observed)


class LabelMissingTest(AuditTest):
    """``managed_hosts: labelled``: hosts with slots that the filter leaves alone."""

    def remedies(self, cloud, policy):
        policy = dataclasses.replace(policy, managed_hosts="labelled")
        return {
            f.subject: f.remedy
            for f in self.audit(cloud, policy).findings
            if f.code == codes.LABEL_MISSING
        }

    def test_hosts_that_offer_slots(self):
        cloud = Cloud()
        for name in ("hp1", "hp2", "bare"):
            cloud.add_host(name)
        cloud.add_host("g1", "shared")
        cloud.change_inventories("bare", **{const.RC_SLOT: None})
        self.assertEqual([], self.found(small()))
        create = (
            "openstack aggregate create --property perfvm:class=high-performance "
            "perfvm-high-performance"
        )
        add = "openstack aggregate add host perfvm-high-performance {}"
        # The trait alone draws VMs, too.
        self.assertEqual(
            {name: f"{create}\n{add.format(name)}" for name in ("hp1", "hp2", "bare")},
            self.remedies(cloud, POLICY),
        )
        # Somebody has made it for something else.
        cloud.parts["aggregates"] = (
            Aggregate(1, "u", "perfvm-high-performance", {}, frozenset()),
        )
        self.assertEqual(
            f"{create.replace('create', 'set')}\n{add.format('hp1')}",
            self.remedies(cloud, POLICY)["hp1"],
        )
        label = {const.CLASS_KEY: "high-performance"}
        cloud.parts["aggregates"] = (
            Aggregate(1, "u", "my own", label, frozenset({"hp1", "bare"})),
        )
        self.assertEqual(
            {"hp2": "openstack aggregate add host 'my own' hp2"},
            self.remedies(cloud, POLICY),
        )

    def test_enrolled_hosts(self):
        self.assertEqual(
            {"e1": "openstack perfvm host enroll e1"},
            self.remedies(elastic_cloud(), ELASTIC),
        )


class PlacementTest(AuditTest):
    def test_leaked(self):
        cloud = small()
        cloud.allocate("nobody", "g1", {"VCPU": 2})
        self.assertEqual([(codes.LEAKED_ALLOCATION, "nobody")], self.found(cloud))
        cloud = small()
        cloud.change_server("c", host=None, status="ERROR")
        self.assertEqual([(codes.LEAKED_ALLOCATION, "i-c")], self.found(cloud))
        self.assertIn("c (i-c) is in ERROR and on no host", self.observed(cloud))

    def test_missing_and_elsewhere(self):
        cloud = small()
        cloud.add_host("g2", "shared")
        cloud.change_server("c", host="g2", node="g2")
        self.assertEqual(
            [
                (codes.ALLOCATION_MISSING, "c (i-c)"),
                (codes.ALLOCATION_ELSEWHERE, "c (i-c)"),
            ],
            self.found(cloud),
        )
        cloud.change_server("c", status="VERIFY_RESIZE")
        self.assertEqual([], self.found(cloud))

    def test_what_is_lost_is_given_back(self):
        """In place of a resize, where the host has it."""
        heal = "openstack perfvm audit --heal"
        cloud = small()
        held = {"PCPU": 20, "MEMORY_MB": 65536}
        cloud.change_provider("hp1", allocations={"i-a": held})
        remedies = {named(f): f.remedy for f in self.audit(cloud).findings}
        self.assertEqual(heal, remedies[codes.NOT_CLAIMED, "a (i-a)"])
        inventories = dict(cloud.providers["hp1"].inventories)
        del inventories[const.RC_SLOT]
        cloud.change_provider("hp1", inventories=inventories, allocations={})
        remedies = {named(f): f.remedy for f in self.audit(cloud).findings}
        self.assertEqual(heal, remedies[codes.ALLOCATION_MISSING, "a (i-a)"])
        self.assertIn("server resize", remedies[codes.NOT_CLAIMED, "a (i-a)"])

    def test_elsewhere_on_a_child_as_well(self):
        cloud = small()
        cloud.add_host("g2", "shared")
        cloud.allocate("i-c", "g2", {"VCPU": 2})
        units = {const.RC_UNIT: Inventory(1000, 1000)}
        for name in ("g2_perfvm_a", "g2_perfvm_b"):
            cloud.providers[name] = Provider(
                name, name, 1, units, parent="p-g2", root="p-g2"
            )
        cloud.allocate("i-c", "g2_perfvm_b", {const.RC_UNIT: 1})
        findings = self.audit(cloud, ELASTIC).findings
        (finding,) = (f for f in findings if f.code == codes.ALLOCATION_ELSEWHERE)
        self.assertEqual(
            "openstack resource provider allocation unset --provider p-g2 "
            "--provider g2_perfvm_b i-c",
            finding.remedy,
        )

    def test_orphans(self):
        cloud = small()
        gone = Provider("p", "old", 1, {"PCPU": Inventory(40, 40)}, root="p")
        child = Provider("c", "old_perfvm_a", 1, parent="p", root="p")
        share = Provider("s", "nfs", 1, {"DISK_GB": Inventory(9, 9)}, root="s")
        below = Provider("x", "hp1_perfvm_a", 1, parent="p-hp1", root="p-hp1")
        # Taken out of its host's tree, for nova-compute to forget.
        detached = Provider("d", "g1_perfvm_a", 1, root="d")
        for provider in (gone, child, share, below, detached):
            cloud.providers[provider.name] = provider
        self.assertEqual(
            [
                (codes.ORPHANED_PROVIDER, "old"),
                (codes.ORPHANED_CHILD, "old_perfvm_a"),
                (codes.ORPHANED_CHILD, "hp1_perfvm_a"),
            ],
            self.found(cloud),
        )

    def test_hosts_of_a_cell_that_is_down_are_no_orphans(self):
        cloud = small()
        gone = Provider("p", "old", 1, {"PCPU": Inventory(40, 40)}, root="p")
        cloud.providers["old"] = gone
        cloud.servers["lost"] = Server("lost", "lost", None, "UNKNOWN", 0, {})
        cloud.allocate("lost", "old", {"PCPU": 20})
        # Its server was in no list, either.
        cloud.allocate("nobody", "old", {"PCPU": 20})
        child = Provider("c", "hp1_perfvm_a", 1, parent="p-hp1", root="p-hp1")
        cloud.providers["child"] = child
        cloud.allocate("leak", "g1", {"VCPU": 1})
        cloud.parts |= {
            "gaps": ("cells: Nova cannot reach the cell of host h1: nothing is known",),
            "unseen_hosts": ("h1",),
        }
        self.assertEqual(
            [
                (codes.LEAKED_ALLOCATION, "leak"),
                (codes.ORPHANED_CHILD, "hp1_perfvm_a"),
                (codes.CELL_DOWN, "cells"),
            ],
            self.found(cloud),
        )
        report = self.audit(cloud)
        self.assertEqual((1, 3), (report.exit_code(), report.servers))

    def test_enrolled_hosts_of_a_cell_that_is_down(self):
        cloud = Cloud(ELASTIC)
        traits = frozenset({TRAIT})
        cloud.providers["old"] = Provider("p", "old", 1, traits=traits, root="p")
        stray = (codes.HOST_NOT_ISOLATED, "Placement")
        self.assertIn(stray, self.found(cloud))
        cloud.parts["unseen_hosts"] = ("old",)
        self.assertNotIn(stray, self.found(cloud))

    def test_more_slots_than_the_class_takes(self):
        cloud = small()
        cloud.servers.pop("b")
        taken = {"PCPU": 20, const.RC_SLOT: 2}
        cloud.change_provider("hp1", allocations={"i-a": taken})
        self.assertEqual([(codes.CLAIMED_TOO_MUCH, "a (i-a)")], self.found(cloud))
        (finding,) = self.audit(cloud).findings
        self.assertEqual(1, self.audit(cloud).exit_code())
        self.assertIn("take 1 CUSTOM_PERFVM_SLOT", finding.observed)
        self.assertIn("holds 1 CUSTOM_PERFVM_SLOT more", finding.observed)
        self.assertIn("openstack server resize ", finding.remedy)
        # While it is resized it may hold what both flavors take.
        cloud.change_server("a", status="VERIFY_RESIZE")
        self.assertEqual([], self.found(cloud))

    def test_a_slot_of_a_general_vm(self):
        cloud = small()
        cloud.allocate("i-c", "g1", {"VCPU": 2, const.RC_SLOT: 1})
        (finding,) = self.audit(cloud).findings
        self.assertEqual((codes.CLAIMED_TOO_MUCH, "c (i-c)"), named(finding))
        self.assertEqual(
            "openstack resource provider allocation unset --resource-class "
            "CUSTOM_PERFVM_SLOT i-c",
            finding.remedy,
        )

    def test_who_has_what_is_allocated_too_much(self):
        blamed = "allocation_conflict_retry_count"
        slot = {const.RC_SLOT: 1}
        for consumer, taken, words, code in (
            ("i-c", slot, "c (i-c), which Nova has on g1, holds 1", "elsewhere"),
            ("nobody", slot, "consumer nobody, a migration or what", "leaked"),
            ("i-b", {const.RC_SLOT: 2}, "b (i-b) holds 1 more than its class", "much"),
        ):
            cloud = small()
            cloud.allocate(consumer, "hp1", taken)
            found = self.audit(cloud).findings
            self.assertEqual([codes.OVER_INVENTORY], [f.code for f in found[:1]])
            self.assertIn(
                f"3 of 2 {const.RC_SLOT} allocated: {words}", found[0].observed
            )
            self.assertNotIn(blamed, found[0].observed)
            self.assertTrue(any(code in f.code for f in found[1:]), found)

        # The rest is Placement's.
        cloud.allocate("nobody", "hp1", slot)
        cloud.allocate("i-a", "hp1", {"PCPU": 20, const.RC_SLOT: 1})
        cloud.change_inventories("hp1", **{const.RC_SLOT: Inventory(1, 1)})
        over = self.audit(cloud).findings[0].observed
        self.assertIn("b (i-b) holds 1 more than its class takes; consumer nob", over)
        self.assertIn(blamed, over)

    def test_migrations_are_no_strays(self):
        cloud = small()
        cloud.allocate("m", "hp1", {const.RC_SLOT: 1})
        cloud.parts["migrations"] = (Migration("m", "i-c", "migration", "finished"),)
        (finding,) = self.audit(cloud).findings
        self.assertNotIn("holds", finding.observed)
        self.assertIn("allocation_conflict_retry_count", finding.observed)

    def test_helpers_of_the_storms(self):
        (finding,) = audit.check_usage([audit.Usage("h", "PCPU", 40, 41)])
        self.assertEqual(Level.FAILURE, finding.level)


class ElasticTest(AuditTest):
    def test_units_lacking(self):
        cloud = elastic_cloud()
        cloud.add_general("forced", "e1")
        self.assertEqual(
            {(codes.CLASSES_MIXED, "e1"), (codes.UNITS_LACKING, "e1")},
            set(self.found(cloud)),
        )

    def test_a_stray_trait_and_children_of_an_ordinary_host(self):
        cloud = elastic_cloud()
        cloud.add_host("x")
        cloud.providers["stray"] = Provider(
            "s", "s", 1, traits=frozenset({TRAIT}), root="s"
        )
        cloud.providers["x_perfvm_a"] = Provider(
            "c", "x_perfvm_a", 1, parent="p-x", root="p-x"
        )
        found = set(self.found(cloud))
        self.assertLessEqual(
            {
                (codes.HOST_NOT_ISOLATED, "Placement"),
                (codes.ORPHANED_PROVIDER, "s"),
                (codes.ORPHANED_CHILD, "x_perfvm_a"),
            },
            found,
        )

    def test_flavors_without_units(self):
        cloud = elastic_cloud()
        cloud.add_host("x", "shared")
        cloud.add_general("old", "x")
        cloud.change_server("old", flavor="gone", extra_specs={})
        self.assertEqual(
            [(codes.FLAVOR_WITHOUT_UNITS, "old (i-old)")], self.found(cloud)
        )
        # Not on a host without a label, unless it is enrolled.
        labelled = dataclasses.replace(ELASTIC, managed_hosts="labelled")
        label = {const.CLASS_KEY: "high-performance, general"}
        before = cloud.parts["aggregates"]
        one = Aggregate(2, "l", "l", label, frozenset({"e1"}))
        cloud.parts["aggregates"] = (*before, one)
        self.assertEqual([], self.found(cloud, labelled))
        both = dataclasses.replace(one, hosts=frozenset({"e1", "x"}))
        cloud.parts["aggregates"] = (*before, both)
        self.assertEqual(
            [(codes.FLAVOR_WITHOUT_UNITS, "old (i-old)")], self.found(cloud, labelled)
        )
        cloud.parts["aggregates"] = before
        cloud.change_server("a", flavor="gone", extra_specs={})
        self.assertIn(
            (codes.FLAVOR_WITHOUT_UNITS, "a (i-a)"), self.found(cloud, labelled)
        )

    def test_units_of_nobody_on_a_host_that_is_not_enrolled(self):
        """Where a compute service comes back that was deleted, its host is not."""
        cloud = elastic_cloud()
        cloud.add_host("x")
        cloud.add_hp("b", "x")
        cloud.add_general("c", "x", cells=())
        lacking = (codes.NOT_CLAIMED, "b (i-b)")
        found = [f for f in self.audit(cloud).findings if f.subject == "b (i-b)"]
        self.assertEqual([lacking], [named(f) for f in found])
        self.assertIs(Level.FAILURE, found[0].level)
        self.assertIn("it lacks 1000 CUSTOM_PERFVM_UNIT", found[0].observed)
        self.assertEqual("openstack perfvm host enroll x --backfill", found[0].remedy)
        # Hosts that are not managed may hold what they will.
        labelled = dataclasses.replace(ELASTIC, managed_hosts="labelled")
        self.assertNotIn(lacking, self.found(cloud, labelled))
        # It may be about to get them.
        cloud.change_server("b", status="VERIFY_RESIZE")
        self.assertNotIn(lacking, self.found(cloud))

    def test_units_of_the_other_class(self):
        """Such a VM leaves a child whole to one of the other class."""
        cloud = elastic_cloud()
        cloud.servers.pop("a")
        cloud.change_provider("e1", allocations={})
        cloud.change_provider("e1_perfvm_a", allocations={})
        cloud.add_general("c", "e1")
        for child, held, expected in (
            ("e1_perfvm_a", 1, []),
            ("e1_perfvm_b", 1, []),
            ("e1_perfvm_a", 1000, [(codes.CLAIMED_TOO_MUCH, "c (i-c)")]),
        ):
            cloud.allocate("i-c", child, {const.RC_UNIT: held})
            found = [named(f) for f in self.audit(cloud).findings]
            self.assertEqual(
                expected, [f for f in found if f[0] == codes.CLAIMED_TOO_MUCH]
            )
        cloud.change_provider("e1_perfvm_b", allocations={})
        self.assertEqual([(codes.CLAIMED_TOO_MUCH, "c (i-c)")], self.found(cloud))

        cloud = elastic_cloud()
        for child in ("e1_perfvm_a", "e1_perfvm_b"):
            cloud.allocate("i-a", child, {const.RC_UNIT: 1})
        (finding,) = self.audit(cloud).findings
        self.assertEqual((codes.NOT_CLAIMED, "a (i-a)"), named(finding))
        self.assertIn("it lacks 998 CUSTOM_PERFVM_UNIT", finding.observed)
        self.assertIn("openstack server resize ", finding.remedy)

    def test_nor_those_of_a_flavor_that_asks_for_none(self):
        cloud = elastic_cloud()
        cloud.add_host("x")
        cloud.add_hp("b", "x")
        claims = {
            key: value
            for key, value in cloud.servers["b"].extra_specs.items()
            if "CUSTOM_PERFVM" not in key
        }
        cloud.change_server("b", flavor="gone", extra_specs=claims)
        self.assertEqual(
            {
                (codes.NOT_CLAIMED, "b (i-b)"),
                (codes.FLAVOR_WITHOUT_UNITS, "b (i-b)"),
            },
            set(self.found(cloud)),
        )
        self.assertEqual(2, self.audit(cloud).exit_code())


class SettingsTest(AuditTest):
    def test_gaps(self):
        cloud = small()
        for gap, code, remedy, status in (
            ("images: Glance does not answer", codes.NOT_SEEN, "catalog list", 0),
            ("hypervisors: none of h1", codes.NOT_SEEN, "list_cells", 0),
            ("cells: nothing of h1", codes.CELL_DOWN, "list_cells", 1),
        ):
            cloud.parts["gaps"] = (gap,)
            report = self.audit(cloud)
            (finding,) = report.findings
            found = (finding.code, f"{finding.subject}: {finding.observed}")
            self.assertEqual((code, gap), found)
            self.assertIn(remedy, finding.remedy)
            self.assertEqual(status, report.exit_code())

    def test_one_wrong_flavor_is_one_finding_of_its_server(self):
        """That says what it lacks; the flavor itself is another subject."""
        for placement in ("slots", "units"):
            policy = dataclasses.replace(POLICY, placement=placement)
            cloud = Cloud(policy)
            add = cloud.add_elastic if placement == "units" else cloud.add_host
            add("e1")
            cloud.change_flavor(HP, vcpus=16)
            cloud.add_hp("vm1", "e1", count=16, vcpus=16)
            if placement == "units":
                cloud.allocate("i-vm1", "e1_perfvm_a", {const.RC_UNIT: 1000})
            found = audit.run(audit.Subject(policy, cloud.snapshot())).findings
            (mine,) = (f for f in found if f.subject == "vm1 (i-vm1)")
            self.assertEqual("audit.wrong_size", mine.code)
            self.assertIn(
                "16 vCPUs, its class exactly 20; the request's", mine.observed
            )
            self.assertNotIn(codes.FLAVOR_WITHOUT_UNITS, {f.code for f in found})

    def test_what_is_accepted_hides_nothing_else_of_its_server(self):
        cloud = small()
        flawed = {"hw:vif_multiqueue_enabled": "false"}
        specs = cloud.flavors[HP].extra_specs | flawed
        cloud.change_server("a", vcpus=16, flavor="old", extra_specs=specs)
        (joined,) = (f for f in self.audit(cloud).findings if f.subject == "a (i-a)")
        self.assertIn("16 vCPUs", joined.observed)
        self.assertIn("queue", joined.observed)
        cloud.policy = dataclasses.replace(cloud.policy, accept=(joined.code,))
        found = [f for f in self.audit(cloud).findings if f.subject == "a (i-a)"]
        self.assertEqual([True, False], sorted(f.accepted for f in found)[::-1])
        (other,) = (f for f in found if not f.accepted)
        self.assertIn("queue", other.observed)

    def test_what_breaks_a_guarantee_is_never_accepted(self):
        """Even if a policy that nobody loaded says so."""
        cloud = small()
        cloud.allocate("nobody", "g1", {"VCPU": 200})
        accept = (codes.OVER_INVENTORY, codes.LEAKED_ALLOCATION)
        cloud.policy = dataclasses.replace(cloud.policy, accept=accept)
        report = self.audit(cloud)
        self.assertEqual(2, report.exit_code())
        self.assertEqual(0, report.by_code()[codes.LEAKED_ALLOCATION])
        self.assertEqual(1, report.accepted_by_code()[codes.LEAKED_ALLOCATION])
        self.assertNotIn(codes.OVER_INVENTORY, report.accepted_by_code())

    def test_the_worst_comes_first(self):
        cloud = small()
        cloud.allocate("nobody", "g1", {"VCPU": 200})
        report = self.audit(cloud, settings=None)
        self.assertEqual(2, report.exit_code())
        self.assertEqual(
            ["failure", "warning", "unknown"],
            [finding.level.value for finding in report.findings],
        )
        self.assertEqual(
            [1, 1, 1, 0, 0], [report.count(level) for level in reversed(Level)]
        )
        self.assertEqual("1 failure, 1 warning, 1 unknown, 0 note", report.counts)
        self.assertEqual(1, report.by_code()[codes.OVER_INVENTORY])
        self.assertEqual(0, report.by_code()[codes.NEAR_MISS])

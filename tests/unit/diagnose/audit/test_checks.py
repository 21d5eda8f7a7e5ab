# SPDX-License-Identifier: Apache-2.0
"""Clouds that are in order, something changed in each, and what an audit finds."""

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit, moves
from nova_perfvm.diagnose.audit import claims, offers
from nova_perfvm.facts.recorded_policy import RecordedPolicy
from nova_perfvm.facts.snapshot import (
    CREATED,
    NOVA_DATABASE,
    Aggregate,
    Image,
    Inventory,
    Migration,
    Provider,
    RootVolume,
    Server,
)
from nova_perfvm.findings import LEVELS, Level
from nova_perfvm.placement.schemes import units
from nova_perfvm.policy import Disk, FlavorSize, FlavorTemplate
from tests.unit.facts.snapshot.clouds import GENERAL, HP, POLICY, Cloud, blind
from tests.unit.rules import hosts

RIGHT = {("placement", "allocation_conflict_retry_count"): "1"}
ELASTIC = dataclasses.replace(POLICY, placement="units")
TRAIT = units.UNITS.enrolled_trait(ELASTIC)
LABELLED = dataclasses.replace(POLICY, managed_hosts="labelled")
HEAL = "openstack perfvm audit --heal"
SLOT = {const.RC_SLOT: 1}
MIGRATION = Migration("m", "i-c", "migration", "finished")


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


def elastic_cloud():
    """Return a cloud with an enrolled host and one VM of its first child."""
    cloud = Cloud(ELASTIC)
    cloud.add_elastic("e1")
    cloud.add_hp("a", "e1", 0)
    cloud.allocate("i-a", "e1_perfvm_a", {const.RC_UNIT: 1000})
    cloud.allocate("i-a", "e1", {"VCPU": 20})
    return cloud


def labels(text, *names, key=const.CLASS_KEY):
    """Return an aggregate of hosts with metadata."""
    return {"aggregates": (Aggregate(1, "u", "a", {key: text}, frozenset(names)),)}


def provider(name, below=None, **facts):
    """Return a provider of nobody, or one below a host's."""
    root = f"p-{below}" if below else name
    parent = root if below else None
    return Provider(name, name, 1, root=root, parent=parent, **facts)


def with_providers(cloud, *found):
    cloud.providers |= {one.name: one for one in found}


def with_image(cloud, **properties):
    """Give a VM an image with properties, and its facts from before."""
    image = Image("i", "i", properties)
    cloud.parts["images"] = (image,)
    cloud.change_server("c", image="i")


def embedded(cloud, name, **changes):
    """Change the extra specs that are embedded in a server; None for none."""
    specs = dict(cloud.servers[name].extra_specs) | changes
    specs = {key: value for key, value in specs.items() if value is not None}
    cloud.change_server(name, extra_specs=specs, flavor="old")


def split(cloud):
    """Let a VM own CPUs of both nodes."""
    (cell,) = cloud.servers["b"].cells
    halves = [range(10), range(10, 20)]
    cells = [
        dataclasses.replace(
            cell,
            host_node=node,
            vcpus=frozenset(half),
            cpu_pinning={vcpu: 20 + vcpu for vcpu in half},
        )
        for node, half in enumerate(halves)
    ]
    cloud.change_server("b", cells=tuple(cells))


def named(finding):
    """Return code and subject without what is the same in all."""
    return f"{finding.code} {finding.subject.partition(' (i-')[0]}".removeprefix(
        "audit."
    )


class AuditTest(testtools.TestCase):
    def audit(self, cloud, policy=None, settings=RIGHT):
        subject = audit.Subject(policy or cloud.policy, cloud.snapshot(), settings)
        return audit.run(subject)

    def found(self, cloud, policy=None, settings=RIGHT):
        """Return codes and subjects, each finding having been looked at."""
        findings = self.audit(cloud, policy, settings).findings
        for finding in findings:
            self.assertIn(finding.code, LEVELS)
            self.assertTrue(finding.observed)
            self.assertRegex(finding.remedy, r"^(openstack|nova-\w+|crudini) ")
        return [named(finding) for finding in findings]

    def only(self, cloud, policy=None, **chosen):
        """Return the finding of a subject or code."""
        ((key, value),) = chosen.items()
        findings = self.audit(cloud, policy).findings
        (found,) = (f for f in findings if getattr(f, key) == value)
        return found

    def one(self, change, expected, *words, make=small):
        """Look what is found in a cloud after a change, and in which words."""
        cloud = make()
        change(cloud)
        self.assertCountEqual(expected, self.found(cloud), words)
        found = self.audit(cloud).findings
        said = " ".join(f"{f.observed} {f.remedy}" for f in found)
        for part in words:
            self.assertIn(part, said)


class CleanTest(AuditTest):
    def test_nothing_is_found(self):
        report = self.audit(small())
        self.assertEqual((), report.findings)
        self.assertEqual(0, report.exit_code(strict=True))
        self.assertEqual((2, 3), (report.hosts, report.servers))
        none = Cloud(dataclasses.replace(POLICY, placement="none"))
        none.add_host("h1")
        none.add_hp("a", "h1", 0)
        for cloud in (Cloud(), none, elastic_cloud()):
            self.assertEqual([], self.found(cloud))

    def test_what_is_as_it_should_be(self):
        def under_way(cloud):
            cloud.allocate("m", "g1", {"VCPU": 2})
            cloud.add_general("building", None)
            cloud.change_server("building", status="BUILD")
            cloud.parts["migrations"] = (MIGRATION,)

        def any_size(cloud):
            cloud.flavors["odd"] = dataclasses.replace(
                cloud.flavors[GENERAL], id="odd", name="odd", vcpus=7, extra_specs={}
            )
            cloud.add_general("d", "g1", "odd")

        def resized(cloud):
            cloud.allocate("i-a", "hp1", {"PCPU": 20, const.RC_SLOT: 2})
            cloud.servers.pop("b")
            cloud.change_provider("hp1", allocations={"i-a": {const.RC_SLOT: 2}})
            cloud.change_server("a", status="VERIFY_RESIZE")

        def isolated(cloud):
            """Where aggregates isolate the hosts, flavors need not."""
            specs = dict(cloud.flavors[GENERAL].extra_specs)
            del specs[f"trait:{const.TRAIT_HIGH_PERFORMANCE}"]
            cloud.servers.clear()
            cloud.change_provider("g1", allocations={})
            cloud.change_provider("hp1", allocations={})
            cloud.change_flavor(GENERAL, extra_specs=specs)

        def extended(cloud):
            specs = cloud.flavors[HP].extra_specs | {"hw:watchdog_action": "reset"}
            cloud.change_flavor(HP, extra_specs=specs)
            for name in "ab":
                cloud.change_server(name, extra_specs=specs)

        def synced(cloud):
            """As ``image sync`` leaves images."""
            recorded = const.IMAGE_VIF_MULTIQUEUE
            with_image(cloud, **{const.IMAGE_RECORD: recorded, recorded: "true"})

        for change in (under_way, any_size, resized, isolated, extended, synced):
            self.one(change, [])

    def test_a_shelved_server_asks_for_what_its_flavor_says(self):
        """It has a NUMA topology on a host alone, and no host's labels."""
        pinned, general = POLICY.classes
        paged = dataclasses.replace(pinned, mem_page_size="1GB")
        for policy in (
            LABELLED,
            dataclasses.replace(POLICY, classes=(paged, general)),
        ):
            cloud = Cloud(policy)
            cloud.add_host("hp1")
            cloud.add_hp("a", "hp1")
            shelved = {"host": None, "status": "SHELVED_OFFLOADED", "cells": None}
            cloud.change_server("a", **shelved)
            self.assertEqual([], self.not_of_class(cloud, policy))
            specs = cloud.flavors[HP].extra_specs | {
                "hw:mem_page_size": "2MB",
                "hw:cpu_policy": "shared",
            }
            cloud.change_server("a", extra_specs=specs)
            self.assertNotEqual([], self.not_of_class(cloud, policy))

    def test_flavors_without_a_key_of_their_class(self):
        pinned, general = POLICY.classes
        own = {"extra_specs": {"accounting:code": "7"}, "pmu": False}
        policy = dataclasses.replace(
            POLICY, classes=(dataclasses.replace(pinned, **own), general)
        )
        cloud = small()
        found = audit.Subject(policy, cloud.snapshot(), RIGHT)
        said = [one.observed for one in claims.check_flavors(found)]
        for words in ("accounting:code is (not set), should be 7", "hw:pmu is (not"):
            self.assertIn(words, said[0])
        # Keys of others contradict nothing; those that break the promise do.
        for key, wrong in (("quota:cpu_shares", False), ("hw:numa_mem.0", True)):
            cloud = small()
            specs = cloud.flavors[HP].extra_specs | {key: "1"}
            cloud.change_flavor(HP, extra_specs=specs)
            subject = audit.Subject(POLICY, cloud.snapshot(), RIGHT)
            self.assertEqual(wrong, bool(list(claims.check_flavors(subject))), key)

    def not_of_class(self, cloud, policy):
        return [t for t in self.found(cloud, policy) if t.startswith("not_of_class")]

    def test_a_move_that_nova_has_left(self):
        """Its record never ends: the server may lose its allocation, or keep two."""
        old, young = "2025-12-31T23:29:00.000000", "2025-12-31T23:31:00.000000"
        for updated, status, found in (
            (old, "ACTIVE", ["leaked_allocation m", "allocation_missing c"]),
            (old, "ERROR", ["leaked_allocation m", "allocation_missing c"]),
            # The server may have begun to move after it was read.
            (young, "ACTIVE", []),
            # Snapshots of earlier versions do not say.
            ("", "ACTIVE", []),
            (old, "VERIFY_RESIZE", []),
        ):
            cloud = small()
            cloud.change_server("c", status=status)
            cloud.change_provider("g1", allocations={"m": {"MEMORY_MB": 1}})
            left = dataclasses.replace(MIGRATION, updated=updated)
            cloud.parts["migrations"] = (left,)
            self.assertEqual(sorted(found), sorted(self.found(cloud)), updated)

    def test_what_an_evacuation_leaves_on_the_host_that_failed(self):
        cloud = small()
        cloud.allocate("i-c", "hp1", {"MEMORY_MB": 1})
        source = {"source": "hp1", "destination": "g1"}
        evacuation = Migration("m", "i-c", "evacuation", "done", **source)
        cloud.parts["migrations"] = (evacuation,)
        self.assertEqual([], self.found(cloud))
        cloud.change_server("c", host=None, status="SHELVED_OFFLOADED")
        self.assertEqual(["leaked_allocation i-c"], self.found(cloud))
        cloud.change_provider("g1", allocations={})
        self.assertEqual([], self.found(cloud))
        cloud.change_server("c", host="g1", status="ERROR")
        self.assertEqual(["allocation_missing c"], self.found(cloud))


class OneChangeTest(AuditTest):
    """A cloud that is in order, one thing changed, and what is found."""

    def test_servers(self):
        self.one(lambda c: c.add_general("d", "hp1"), ["classes_mixed hp1"])
        self.one(
            lambda c: c.change_server("b", cells=c.servers["a"].cells),
            ["pins_overlap hp1", "too_many_on_cell hp1"],
        )
        words = "16 vCPUs, its class exactly 20"
        self.one(
            lambda c: c.change_server("a", vcpus=16, flavor="old"),
            ["slot_stranded hp1", "wrong_size a"],
            words,
        )
        self.one(split, ["not_in_one_cell b", "too_many_on_cell hp1"])
        # Nova refuses the flavor that it has.
        words = ("perfvm flavor sync --prefix new-\n", f"resize --flavor new-{HP} i-a")
        none = {"cells": (), "pinned": False}
        self.one(lambda c: c.change_server("a", **none), ["not_pinned a"], *words)
        gold, unnamed = ({const.CLASS_KEY: name} for name in ("gold", None))
        self.one(lambda c: embedded(c, "c", **gold), ["class_unknown c"])
        expected = ["classless_pinned a", "classes_mixed hp1"]
        self.one(lambda c: embedded(c, "a", **unnamed), expected)
        queues, words = {const.VIF_MULTIQUEUE: None}, f"resize --flavor {HP} i-a"
        self.one(lambda c: embedded(c, "a", **queues), ["no_multiqueue a"], words)
        odd, words = {"prefvm:class": "general"}, "openstack server resize"
        self.one(lambda c: embedded(c, "c", **odd), ["near_miss c"], words)
        trait = {f"trait:{TRAIT}": "required"}
        words = (const.TRAIT_ELASTIC, "server rebuild --image IMAGE i-c")
        self.one(lambda c: with_image(c, **trait), ["image_trait c"], *words)
        label = labels("high-performance", "hp1", "g1")
        self.one(lambda c: c.parts.update(label), ["host_reserved c"])

    def test_flavors_and_images(self):
        off = {const.IMAGE_VIF_MULTIQUEUE: "False"}
        words = f"{const.IMAGE_VIF_MULTIQUEUE}=true i"
        self.one(lambda c: with_image(c, **off), ["image_conflict image i"], words)
        odd = {"perfvm_class": "general"}
        self.one(lambda c: with_image(c, **odd), ["near_miss image i"])
        # Of other sizes it is another flavor, to Nova; with others specs it is not.
        specs = {"extra_specs": Cloud().flavors[GENERAL].extra_specs | {"hw:x": "1"}}
        for change, said, flavor in (
            ({"memory_mb": 8192}, "ram was 4096, is 8192", GENERAL),
            (specs, "hw:x was (not set), is 1", f"new-{GENERAL}"),
        ):
            words = (said, f"openstack server resize --flavor {flavor} i-c")
            self.one(
                lambda c, change=change: c.change_flavor(GENERAL, **change),
                ["flavor_changed c"],
                *words,
            )

        def changed(cloud):
            """One of no class, whose owner wants what it is today."""
            flavor = dataclasses.replace(cloud.flavors[GENERAL], id="odd", name="odd")
            flavor = dataclasses.replace(flavor, extra_specs={})
            cloud.flavors["odd"] = flavor
            cloud.add_general("d", "g1", "odd")
            cloud.change_flavor("odd", memory_mb=9)

        words = ("ram was 4096, is 9", "openstack server resize --flavor odd i-d")
        self.one(changed, ["flavor_changed d"], *words)

        def edited(cloud):
            """Nova refuses a resize to the flavor that it has."""
            changed(cloud)
            specs = {"hw:x": "1"}
            cloud.change_flavor("odd", memory_mb=4096, extra_specs=specs)

        words = ("hw:x was", "openstack server resize --flavor FLAVOR i-d")
        self.one(edited, ["flavor_changed d"], *words)

    def test_placement_and_hosts(self):
        over, much = "usage_exceeds_inventory {}", "claimed_too_much {}"
        vcpus, two = {"VCPU": 500}, {const.RC_SLOT: 2}
        for consumer, host, taken, expected, *words in (
            ("i-c", "g1", vcpus, [over.format("g1")], "500 of 160 VCPU allocated"),
            ("nobody", "g1", {"VCPU": 2}, ["leaked_allocation nobody"]),
            # Somebody else's slot is told, and where there is none left, too.
            ("i-c", "hp1", SLOT, [over.format("hp1"), "allocation_elsewhere c"]),
            (
                *("i-b", "hp1", two, [over.format("hp1"), much.format("b")]),
                *("holds 1 CUSTOM_PERFVM_SLOT more", "openstack server resize "),
            ),
            (
                *("i-c", "g1", {"VCPU": 2, **SLOT}, [much.format("c")]),
                "allocation unset --resource-class CUSTOM_PERFVM_SLOT i-c",
            ),
        ):
            given = (consumer, host, taken)
            self.one(lambda c, given=given: c.allocate(*given), expected, *words)

        def migrated(cloud):
            """What a migration holds is no leak."""
            cloud.allocate("m", "hp1", SLOT)
            cloud.parts["migrations"] = (MIGRATION,)

        def orphaned(cloud):
            with_providers(
                cloud,
                provider("old", inventories={"PCPU": Inventory(40, 40)}),
                provider("nfs", inventories={"DISK_GB": Inventory(9, 9)}),
                provider("old_perfvm_a", "old"),
                provider("hp1_perfvm_a", "hp1"),
                # Taken out of its host's tree, for nova-compute to forget.
                provider("g1_perfvm_a"),
            )

        self.one(migrated, [over.format("hp1")])
        children = ("old_perfvm_a", "hp1_perfvm_a")
        expected = [f"orphaned_child {name}" for name in children]
        unenroll = "openstack perfvm host unenroll hp1"
        self.one(orphaned, ["orphaned_provider old", *expected], unenroll)
        # Only what nobody can report is to be deleted.
        delete = "openstack resource provider delete old"
        show = "openstack resource provider show --allocations old"
        self.one(orphaned, ["orphaned_provider old", *expected], delete)
        for key, words in (("unlisted", "belong to old"), ("recent", "last hour")):

            def living(cloud, key=key):
                orphaned(cloud)
                cloud.parts[key] = ("old",)

            alive = ["orphaned_provider old", *expected]
            self.one(living, alive, words, show)
        failed, words = {"host": None, "status": "ERROR"}, "in ERROR and on no host"
        leaked = ["leaked_allocation i-c"]
        self.one(lambda c: c.change_server("c", **failed), leaked, words)
        label = labels("gold, high-performance", "hp1")
        words = "nothing comes to hp1"
        self.one(lambda c: c.parts.update(label), ["label_unknown aggregate a"], words)

    def test_what_was_not_seen(self):
        for gap, code, remedy, status in (
            ("images: Glance does not answer", "not_seen", "catalog list", 0),
            ("hypervisors: none of h1", "not_seen", "list_cells", 0),
            ("cells: nothing of h1", "cell_down", "list_cells", 1),
        ):
            cloud = small()
            cloud.parts["gaps"] = (gap,)
            report = self.audit(cloud)
            (finding,) = report.findings
            subject, _, words = gap.partition(": ")
            self.assertEqual(f"{code} {subject}", named(finding))
            self.assertEqual(words, finding.observed)
            self.assertIn(remedy, finding.remedy)
            self.assertEqual(status, report.exit_code())


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
        for vcpus, expected in ((40, []), (30, ["cells_unknown h1"])):
            cloud.change_inventories("h1", VCPU=Inventory(vcpus, vcpus))
            self.assertEqual(expected, self.found(cloud))
        found = cloud.snapshot()
        (host,) = found.hosts
        known = dataclasses.replace(host, cells_source=NOVA_DATABASE)
        found = dataclasses.replace(found, hosts=(known,))
        (finding,) = audit.run(audit.Subject(cloud.policy, found, RIGHT)).findings
        self.assertEqual("classes_mixed h1", named(finding))
        self.assertIn("openstack server migrate i-b --wait", finding.remedy)

    def test_servers_that_cannot_migrate_are_resized(self):
        """The filter refuses a server without class wherever it goes."""
        cloud = small()
        embedded(cloud, "a", **{const.CLASS_KEY: None})
        found = self.only(cloud, code=codes.CLASSES_MIXED)
        self.assertEqual(moves.resize("i-a", "ACTIVE", HP), found.remedy)
        # It needs no other host.
        cloud.change_server("a", status="SHELVED")
        found = self.only(cloud, code=codes.CLASSES_MIXED)
        self.assertEqual(moves.migrate("i-a", "SHELVED"), found.remedy)

    def test_no_cells(self):
        report = audit.run(audit.Subject(POLICY, blind(small().snapshot()), RIGHT))
        self.assertEqual(["cells_unknown hp1"], list(map(named, report.findings)))
        self.assertEqual([0, 1], [report.exit_code(strict=s) for s in (False, True)])

    def test_names_are_quoted(self):
        cloud = Cloud()
        cloud.add_host("a; reboot")
        cloud.add_hp("a", "a; reboot")
        report = audit.run(audit.Subject(POLICY, blind(cloud.snapshot()), RIGHT))
        (found,) = (f for f in report.findings if f.code == codes.CELLS_UNKNOWN)
        self.assertEqual("openstack hypervisor show 'a; reboot'", found.remedy)

    def test_hosts_that_are_not_managed(self):
        unmanaged = ["host_not_managed a", "host_not_managed b"]
        self.assertEqual(
            [*unmanaged, "label_missing hp1"], self.found(small(), LABELLED)
        )

    def test_former_size(self):
        cloud = Cloud(hosts.policy(vcpus=18, former_vcpus=(20,)))
        cloud.flavors |= Cloud().flavors
        cloud.add_host("hp1")
        cloud.add_hp("a", "hp1")
        found = self.only(cloud, subject="a (i-a)")
        self.assertEqual((codes.FORMER_SIZE, Level.NOTE), found[:2])
        self.assertIn("20 vCPUs, a former size", found.observed)
        self.assertIn("wrong_size a", self.found(cloud, hosts.policy(vcpus=18)))

    def test_multiqueue_by_the_image_alone(self):
        cloud = small()
        embedded(cloud, "a", **{const.VIF_MULTIQUEUE: None})
        with_image(cloud, **{const.IMAGE_VIF_MULTIQUEUE: "yes"})
        cloud.change_server("a", image="i")
        self.assertEqual(["not_of_class a"], self.found(cloud))

    def test_what_is_wrong_under_units_is_told_once(self):
        """A flavor that lacks its units is no other difference of its contract."""
        cloud = elastic_cloud()
        cloud.change_server("a", vcpus=16, flavor="old")
        found = [one for one in self.found(cloud) if one.endswith(" a")]
        self.assertEqual(["wrong_size a"], found)


class FlavorsTest(AuditTest):
    def test_flavor_differs(self):
        for change, words in (
            ({"hw:cpu_policy": "shared"}, "hw:cpu_policy is shared, should be"),
            ({"hw:numa_nodes": "2"}, "hw:numa_nodes is 2, should be 1"),
            ({"hw:cpu_thread_policy": "isolate"}, "is isolate, should be prefer"),
            ({"hw:cpu_dedicated_mask": "0-3"}, "is 0-3, should be (not set)"),
            ({f"resources:{const.RC_SLOT}": "2"}, "is 2, should be 1"),
            (None, "vcpus is 16, should be 20"),
        ):
            cloud = Cloud()
            if change is None:
                cloud.change_flavor(HP, vcpus=16)
            else:
                specs = {**cloud.flavors[HP].extra_specs, **change}
                cloud.change_flavor(HP, extra_specs=specs)
            self.assertEqual([f"flavor_differs flavor {HP}"], self.found(cloud))
            finding = self.only(cloud, code=codes.FLAVOR_DIFFERS)
            self.assertIn(words, finding.observed)
            self.assertEqual("openstack perfvm flavor sync", finding.remedy)
        # What is not listed is not synced; what has a prefix is.
        for name, remedy in (
            ("dc1-" + HP, "openstack perfvm flavor sync --prefix dc1-"),
            ("by-hand", f"openstack flavor delete {HP}"),
        ):
            cloud.flavors[HP] = dataclasses.replace(cloud.flavors[HP], name=name)
            finding = self.only(cloud, code=codes.FLAVOR_DIFFERS)
            self.assertEqual(remedy, finding.remedy)
        cloud.change_flavor(HP, extra_specs={const.CLASS_KEY: "gold"})
        self.assertEqual(["class_unknown flavor by-hand"], self.found(cloud))

    def test_names_that_end_alike(self):
        """A flavor is held against the listed one of its name, or of most of it."""
        sizes = (FlavorSize(2, 4, 20), FlavorSize(12, 4, 20))
        template = FlavorTemplate("{vcpus}c.{memory_gb}g", sizes=sizes)
        classes = (
            *POLICY.pinned_classes,
            dataclasses.replace(POLICY.default_class, flavors=template),
        )
        policy = dataclasses.replace(POLICY, classes=classes)
        for name, prefix in (("12c.4g", ""), ("dc1-12c.4g", "dc1-"), ("x2c.4g", "x")):
            cloud = Cloud(policy)
            listed = cloud.flavors["12c.4g"]
            specs = {**listed.extra_specs, "hw:cpu_policy": "dedicated"}
            cloud.flavors["12c.4g"] = dataclasses.replace(
                listed, name=name, extra_specs=specs
            )
            finding = self.only(cloud, policy, code=codes.FLAVOR_DIFFERS)
            option = f" --prefix {prefix}" if prefix else ""
            self.assertEqual(f"openstack perfvm flavor sync{option}", finding.remedy)
        # One that says no class has the class of its name.
        cloud = Cloud(policy)
        cloud.change_flavor("12c.4g", extra_specs={})
        self.only(cloud, policy, code=codes.FLAVOR_DIFFERS)

    def test_volumes(self):
        def volumes(**types):
            def change(cloud):
                cloud.parts["volume_types"] = ("fast", "nvme-tcp")
                cloud.parts["root_volumes"] = tuple(
                    RootVolume(f"v-{name}", f"i-{name}", volume_type)
                    for name, volume_type in types.items()
                )

            return change

        def no_type(cloud):
            cloud.parts["volume_types"] = ("fast",)

        retype = "volume set --type nvme-tcp --retype-policy on-demand v-a  #"
        self.one(volumes(a="nvme-tcp", b="nvme-tcp", c="fast"), [])
        self.one(volumes(a="fast"), ["volume_type_differs a"], retype, "is of fast")
        self.one(volumes(b=""), ["volume_type_differs b"], "is of no type")
        self.one(
            no_type,
            ["volume_type_missing class high-performance"],
            "openstack volume type create --property volume_backend_name=BACKEND "
            "nvme-tcp  #",
        )

    def test_near_misses_and_remedies_that_can_be_pasted(self):
        cloud = Cloud()
        for key in ("prefvm:class", "perfvm_class", "perfvm:clas", "Perfvm:Class"):
            cloud.flavors["x"] = dataclasses.replace(
                cloud.flavors[GENERAL],
                id="my flavor; reboot",
                name="x",
                extra_specs={key: "$(reboot)"},
            )
            self.assertEqual(["near_miss flavor x"], self.found(cloud))
        self.assertEqual(
            "openstack flavor unset --property Perfvm:Class 'my flavor; reboot'\n"
            "openstack flavor set --property 'perfvm:class=$(reboot)' "
            "'my flavor; reboot'",
            self.only(cloud, code=codes.NEAR_MISS).remedy,
        )
        cloud = Cloud()
        metadata = {
            "perfvm_class": "x",
            "perfvm_weight_multiplier": "2",
            **CREATED,
            **RecordedPolicy("0").as_metadata(),
        }
        cloud.parts["aggregates"] = (Aggregate(1, "u", "a", metadata, frozenset()),)
        self.assertEqual(["near_miss aggregate a"], self.found(cloud))

    def test_images_of_tenants_are_noted(self):
        cloud = small()
        properties = {const.IMAGE_VIF_MULTIQUEUE: "no", "perfvm_class": "general"}
        image = Image("image", "i", properties, owner="tenant", visibility="shared")
        cloud.parts["images"] = (image,)
        self.assertEqual(["tenant_image image i"] * 2, self.found(cloud))
        report = self.audit(cloud)
        self.assertEqual([0, 0], [report.exit_code(strict=s) for s in (False, True)])
        cloud.parts["project"] = "tenant"
        self.assertEqual(1, self.audit(cloud).exit_code())


class HostsTest(AuditTest):
    def test_slots_and_trait(self):
        hp = const.TRAIT_HIGH_PERFORMANCE
        slots, trait = (f"{word}_differs {{}}" for word in ("inventory", "trait"))
        both = [slots.format("g1"), trait.format("g1")]
        for host, traits, inventory, expected, words in (
            ("hp1", {hp}, Inventory(3, 1), [slots.format("hp1")], "room for 2"),
            ("hp1", {hp}, Inventory(2, 2), [slots.format("hp1")], "max_unit"),
            ("hp1", (), Inventory(2, 1), [trait.format("hp1")], "is missing"),
            ("g1", {hp}, Inventory(2, 1), both, "without room for slots"),
        ):

            def change(cloud, host=host, traits=traits, inventory=inventory):
                cloud.change_inventories(host, CUSTOM_PERFVM_SLOT=inventory)
                cloud.change_provider(host, traits=frozenset(traits))

            self.one(change, expected, words)
        cloud = Cloud(dataclasses.replace(POLICY, placement="none"))
        cloud.add_host("h1")
        cloud.change_provider("h1", inventories={const.RC_SLOT: Inventory(2, 1)})
        self.assertEqual([slots.format("h1")], self.found(cloud))
        cloud = Cloud(hosts.policy(disk=Disk("volume", read_iops=5000)))
        cloud.add_host("h1")
        words = self.only(cloud, code=codes.INVENTORY_DIFFERS).observed
        self.assertIn("0 CUSTOM_PERFVM_READ_IOPS", words)

    def test_what_nova_knows_of_a_host_makes_no_sense(self):
        for change, words in (
            ({"unreadable": "KeyError: 'cells'", "cells": ()}, "KeyError: 'cells'"),
            ({"vcpus_used": -4}, "-4 vCPUs used"),
        ):
            cloud = Cloud(POLICY)
            cloud.add_host("hp1")
            found = cloud.snapshot()
            odd = tuple(dataclasses.replace(h, **change) for h in found.hosts)
            found = dataclasses.replace(found, hosts=odd)
            subject = audit.Subject(POLICY, found, RIGHT)
            (finding,) = offers.check(subject)
            self.assertEqual("host_unreadable hp1", named(finding))
            self.assertIn(words, finding.observed)

    def remedies(self, cloud, policy=POLICY):
        """Return the remedies for labels that are missing, by host."""
        policy = dataclasses.replace(policy, managed_hosts="labelled")
        found = self.audit(cloud, policy).findings
        return {f.subject: f.remedy for f in found if f.code == codes.LABEL_MISSING}

    def test_hosts_with_slots_and_without_a_label(self):
        cloud = Cloud()
        for name in ("hp1", "hp2", "bare"):
            cloud.add_host(name)
        cloud.add_host("g1", "shared")
        # The trait alone draws VMs, too.
        cloud.change_inventories("bare", **{const.RC_SLOT: None})
        found = self.remedies(cloud)
        self.assertEqual({"hp1", "hp2", "bare"}, found.keys())
        lines = [line for remedy in found.values() for line in remedy.splitlines()]
        create, *added = [line.partition("aggregate ")[2] for line in lines]
        self.assertTrue(create.startswith("create --property perfvm:class="), create)
        into = "add host perfvm-high-performance"
        self.assertCountEqual([f"{into} {name}" for name in found], added)
        cloud.parts |= labels("high-performance", "hp1", "bare")
        self.assertEqual(
            {"hp2": "openstack aggregate add host a hp2"}, self.remedies(cloud)
        )
        enrolled = self.remedies(elastic_cloud(), ELASTIC)
        self.assertEqual({"e1": "openstack perfvm host enroll e1"}, enrolled)


class PlacementTest(AuditTest):
    def test_missing_and_elsewhere(self):
        cloud = small()
        cloud.add_host("g2", "shared")
        cloud.change_server("c", host="g2", node="g2")
        expected = ["allocation_missing c", "allocation_elsewhere c"]
        self.assertEqual(expected, self.found(cloud))
        # To take the one away would leave it without any.
        self.assertEqual({HEAL}, {f.remedy for f in self.audit(cloud).findings})
        cloud.change_server("c", status="VERIFY_RESIZE")
        self.assertEqual([], self.found(cloud))

    def test_what_is_lost_is_given_back(self):
        """In place of a resize, where the host has it."""
        cloud = small()
        held = {"PCPU": 20, "MEMORY_MB": 65536}
        cloud.change_provider("hp1", allocations={"i-a": held})
        remedies = {named(f): f.remedy for f in self.audit(cloud).findings}
        self.assertEqual(HEAL, remedies["not_claimed a"])
        cloud.change_inventories("hp1", **{const.RC_SLOT: None})
        cloud.change_provider("hp1", allocations={})
        remedies = {named(f): f.remedy for f in self.audit(cloud).findings}
        self.assertEqual(HEAL, remedies["allocation_missing a"])
        self.assertIn("server resize", remedies["not_claimed a"])

    def test_elsewhere_on_a_child_as_well(self):
        cloud = small()
        cloud.add_host("g2", "shared")
        cloud.allocate("i-c", "g2", {"VCPU": 2})
        inventories = {const.RC_UNIT: Inventory(1000, 1000)}
        children = ("g2_perfvm_a", "g2_perfvm_b")
        found = [provider(name, "g2", inventories=inventories) for name in children]
        with_providers(cloud, *found)
        cloud.allocate("i-c", "g2_perfvm_b", {const.RC_UNIT: 1})
        finding = self.only(cloud, ELASTIC, code=codes.ALLOCATION_ELSEWHERE)
        self.assertEqual(
            "openstack resource provider allocation unset --provider p-g2 "
            "--provider g2_perfvm_b i-c",
            finding.remedy,
        )

    def test_hosts_of_a_cell_that_is_down_are_no_orphans(self):
        cloud = small()
        traits = frozenset({TRAIT})
        pcpus = {"PCPU": Inventory(40, 40)}
        old = provider("old", inventories=pcpus, traits=traits)
        with_providers(cloud, old, provider("hp1_perfvm_a", "hp1"))
        cloud.servers["lost"] = Server("lost", "lost", None, "UNKNOWN", 0, {})
        cloud.allocate("lost", "old", {"PCPU": 20})
        # Its server was in no list, either.
        cloud.allocate("nobody", "old", {"PCPU": 20})
        cloud.allocate("leak", "g1", {"VCPU": 1})
        gap = "cells: Nova cannot reach the cell of host h1: nothing is known"
        cloud.parts |= {"gaps": (gap,), "unseen_hosts": ("h1",)}
        expected = [
            "leaked_allocation leak",
            "orphaned_child hp1_perfvm_a",
            "cell_down cells",
        ]
        self.assertEqual(expected, self.found(cloud))
        report = self.audit(cloud)
        self.assertEqual((1, 3), (report.exit_code(), report.servers))


class ElasticTest(AuditTest):
    def test_servers_without_their_units(self):
        def odd(cloud):
            cloud.add_host("x")
            with_providers(
                cloud,
                provider("s", traits=frozenset({TRAIT})),
                provider("x_perfvm_a", "x"),
            )

        def shared(cloud):
            for child in ("e1_perfvm_a", "e1_perfvm_b"):
                cloud.allocate("i-a", child, {const.RC_UNIT: 1})

        forced = ["classes_mixed e1", "units_lacking e1", "units_lacking e1"]
        add = {"make": elastic_cloud}
        self.one(lambda c: c.add_general("forced", "e1"), forced, **add)
        names = ("provider s", "child x_perfvm_a")
        expected = ["children_differ x", *(f"orphaned_{name}" for name in names)]
        self.one(odd, expected, **add)
        words = ("allocation lacks 998 CUSTOM_PERFVM_UNIT", "openstack server resize ")
        self.one(shared, ["not_claimed a"], *words, **add)

    def test_units_of_nobody_on_a_host_that_is_not_enrolled(self):
        """Where a compute service comes back that was deleted, its host is not."""
        cloud = elastic_cloud()
        cloud.add_host("x")
        cloud.add_hp("b", "x")
        cloud.add_general("c", "x", cells=())
        finding = self.only(cloud, subject="b (i-b)")
        lacking = "not_claimed b"
        self.assertEqual((lacking, Level.FAILURE), (named(finding), finding.level))
        self.assertIn("allocation lacks 1000 CUSTOM_PERFVM_UNIT", finding.observed)
        self.assertEqual("openstack perfvm host enroll x --backfill", finding.remedy)
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
        for name in ("e1", "e1_perfvm_a"):
            cloud.change_provider(name, allocations={})
        cloud.add_general("c", "e1")
        much = "claimed_too_much c"
        for child, held, expected in (
            ("e1_perfvm_a", 1, set()),
            ("e1_perfvm_b", 1, set()),
            ("e1_perfvm_a", 1000, {much}),
        ):
            cloud.allocate("i-c", child, {const.RC_UNIT: held})
            self.assertEqual(expected, {much} & set(self.found(cloud)), child)
        cloud.change_provider("e1_perfvm_b", allocations={})
        self.assertEqual([much], self.found(cloud))


class ReportTest(AuditTest):
    def test_what_is_accepted_hides_nothing_else_of_its_server(self):
        cloud = small()
        embedded(cloud, "a", **{const.VIF_MULTIQUEUE: None})
        cloud.change_server("a", vcpus=16)
        cloud.policy = dataclasses.replace(POLICY, accept=("audit.wrong_size",))
        found = [f for f in self.audit(cloud).findings if f.subject == "a (i-a)"]
        self.assertEqual(
            {"wrong_size a": True, "no_multiqueue a": False},
            {named(f): f.accepted for f in found},
        )

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

    def test_findings_are_counted_not_checks(self):
        cloud = small()
        for consumer in ("nobody", "nobody else"):
            cloud.allocate(consumer, "g1", {"VCPU": 1})
        report = self.audit(cloud)
        self.assertEqual(
            [codes.LEAKED_ALLOCATION] * 2, [found.code for found in report.findings]
        )
        self.assertEqual("0 failure, 2 warning, 0 unknown, 0 note", report.counts)

    def test_the_worst_comes_first(self):
        cloud = small()
        cloud.allocate("nobody", "g1", {"VCPU": 200})
        report = self.audit(cloud, settings=None)
        self.assertEqual(2, report.exit_code())
        self.assertEqual(
            ["failure", "warning", "unknown"],
            [finding.level.value for finding in report.findings],
        )
        self.assertEqual("1 failure, 1 warning, 1 unknown, 0 note", report.counts)
        self.assertEqual(1, report.by_code()[codes.OVER_INVENTORY])
        self.assertEqual(0, report.by_code()[codes.NEAR_MISS])

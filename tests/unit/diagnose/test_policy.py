# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import Selection, Sync
from nova_perfvm.diagnose.policy_diff import compare, compare_servers
from nova_perfvm.documents.mistakes import DocumentError, Mistake, UnreadableFileError
from nova_perfvm.facts.snapshot import Aggregate
from nova_perfvm.findings import Level
from nova_perfvm.policy import Elastic, HostShape, loader
from tests.unit.facts.snapshot.clouds import Cloud
from tests.unit.rules import filter_lists

POLICY = loader.load()
UNITS = dataclasses.replace(POLICY, placement="units")
LABELLED = dataclasses.replace(POLICY, managed_hosts="labelled")
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


class CheckTest(testtools.TestCase):
    """What ``policy check`` says, by the titles of its checks."""

    def check(self, title, policy=POLICY, snapshot=None, **facts):
        """Return what one check found."""
        subject = audit.Subject(policy, snapshot or cloud().snapshot(), **facts)
        return dict(audit.run(subject, Selection.POLICY).results)[title]

    def codes(self, title, *arguments, **facts):
        return [finding.code for finding in self.check(title, *arguments, **facts)]

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

    def test_codes(self):
        key = f"trait:{const.TRAIT_HIGH_PERFORMANCE}"
        isolated, labelled, empty = cloud(), cloud(), cloud()
        labelled.parts["aggregates"] = (LABEL,)
        nobody = dataclasses.replace(LABEL, hosts=frozenset())
        empty.parts["aggregates"] = (nobody,)
        isolated.parts["aggregates"] = (
            dataclasses.replace(LABEL, metadata={key: "required"}),
        )
        isolated, labelled = isolated.snapshot(), labelled.snapshot()
        unknown = dataclasses.replace(cloud().snapshot(), providers=())
        refused = {"sync": Sync(("create hp",), ("hp is in use",))}
        judged, known = "Some host is judged", "Placement knows the hosts"
        slots, isolating = "General VMs keep off slots", {"isolated_aggregates": True}
        for title, policy, snapshot, facts, expected in (
            ("Flavors", POLICY, None, {}, []),
            ("Flavors", POLICY, None, refused, [codes.FLAVORS_REFUSED]),
            (judged, LABELLED, None, {}, [codes.NO_HOST_JUDGED]),
            (judged, LABELLED, empty.snapshot(), {}, [codes.NO_HOST_JUDGED]),
            (judged, POLICY, None, {}, []),
            (judged, LABELLED, labelled, {}, []),
            (known, POLICY, None, {}, []),
            (known, POLICY, unknown, {}, [codes.HOST_UNKNOWN] * 2),
            # Nor is one missed where no host is judged.
            (known, LABELLED, unknown, {}, []),
            (slots, POLICY, None, {}, []),
            (slots, POLICY, None, isolating, [codes.GENERAL_ON_SLOTS]),
            (slots, POLICY, isolated, isolating, []),
            ("Filters", POLICY, None, {}, [codes.FILTERS_UNKNOWN]),
        ):
            found = self.codes(title, policy, snapshot, **facts)
            self.assertEqual(expected, found, f"{title} {expected}")
        (fault,) = self.check(slots, **isolating)
        self.assertEqual("h1", fault.subject)
        add = "openstack aggregate add host"
        self.assertEqual(
            f"openstack aggregate create --property {key}=required AGGREGATE\n"
            f"{add} AGGREGATE h1",
            fault.remedy,
        )
        isolating = dataclasses.replace(nobody, metadata={key: "required"})
        isolated = dataclasses.replace(isolated, aggregates=(isolating,))
        (fault,) = self.check(slots, snapshot=isolated, isolated_aggregates=True)
        self.assertIn("aggregate set ", fault.remedy)
        self.assertIn(f"{add} {isolating.name} h1", fault.remedy)

    def test_a_file_that_has_lost_a_root_provider(self):
        """Nobody can say what VMs hold of it."""
        (root, *others) = cloud().snapshot().providers
        lost = (dataclasses.replace(root, uuid="x", root=root.uuid), *others)
        snapshot = dataclasses.replace(cloud().snapshot(), providers=lost)
        found = audit.run(audit.Subject(UNITS, snapshot), Selection.AUDIT).findings
        self.assertNotIn(codes.NOT_CLAIMED, {finding.code for finding in found})

    def test_filters(self):
        key = ("filter_scheduler", "enabled_filters")
        for text, expected, words in filter_lists.LISTS:
            settings = {key: text.replace(",", ", ")}
            found = self.check("Filters", nova_settings=settings)
            self.assertCountEqual(expected, [finding.code for finding in found])
            self.assertIn(words, " ".join(finding.observed for finding in found))

    def test_whether_it_is_enforced(self):
        """By mode, file, and what the file means, not how it is written."""
        held, other = POLICY, dataclasses.replace(POLICY, managed_hosts="labelled")
        wrong = DocumentError("p.yaml", [Mistake(("x",), "is no key")], "policy")
        away = UnreadableFileError("p.yaml", "no such file or directory")
        off, unlike, unknown = (
            codes.MODE_OBSERVE,
            codes.NOT_ENFORCED,
            codes.ENFORCED_UNKNOWN,
        )
        for settings, enforced, code, *words in (
            ({"mode": "enforce"}, held, None),
            ({"policy_file": "p.yaml"}, held, None),
            ({"mode": "observe"}, held, off, "refuses nothing"),
            ({"mode": "observ"}, held, unlike, "is observ: nova-scheduler does not"),
            (
                {},
                other,
                unlike,
                "not set, which means the built-in policy",
                held.digest,
            ),
            ({"policy_file": "p.yaml"}, other, unlike, "p.yaml", other.digest),
            ({"policy_file": "p.yaml"}, wrong, unlike, "does not start: p.yaml"),
            (
                {"policy_file": "p.yaml"},
                away,
                unknown,
                "cannot be read here",
                held.digest,
            ),
        ):
            read = {("perfvm", key): value for key, value in settings.items()}
            found = self.check(
                "The policy is enforced", nova_settings=read, enforced=enforced
            )
            self.assertEqual([code] if code else [], [f.code for f in found])
            for word in words:
                self.assertIn(word, found[0].observed)
                self.assertTrue(found[0].remedy)
        (found,) = self.check("The policy is enforced")
        self.assertEqual(unknown, found.code)
        for selection in (Selection.PREFLIGHT, Selection.POLICY):
            titles = {check.title for check in audit.checks.selected(selection)}
            self.assertIn("The policy is enforced", titles)


class DiffTest(testtools.TestCase):
    def diff(self, new, old=POLICY):
        return {(d.kind, d.name, d.what): (d.old, d.new) for d in compare(old, new)}

    def high(self, policy=POLICY, **changes):
        return change_class(policy, "high-performance", **changes)

    def test_keys_and_what_follows(self):
        self.assertEqual([], compare(POLICY, POLICY))
        one = self.high(max_per_host=1)
        found = {
            ("class", "high-performance", "max_per_host"): ("2", "1"),
            ("host", "2x20", "slots"): ("2", "1"),
            ("host", "2x20", const.RC_SLOT): ("2", "1"),
        }
        self.assertEqual(found, self.diff(one))
        flavors = POLICY.get_class("high-performance").flavors
        fewer = dataclasses.replace(flavors, sizes=flavors.sizes[1:])
        shapes = (HostShape.parse("1x20"),)
        wide = dataclasses.replace(UNITS, elastic=Elastic(4))
        both = (HostShape(2, 20), HostShape(1, 40))
        both = dataclasses.replace(POLICY, host_shapes=both)
        traits = (f"{const.TRAIT_ELASTIC}_2", f"{const.TRAIT_ELASTIC}_4")
        disk = dataclasses.replace(POLICY.classes[0].disk, volume_type="NVMe")
        hp, queues = "high-performance", "vif_multiqueue_enabled"
        for old, new, expected in (
            (
                POLICY,
                self.high(flavors=fewer, vif_multiqueue=False),
                {
                    ("flavor", "hp.20c.64g", ""): ("declared", ""),
                    ("flavor", "hp.20c.128g", f"hw:{queues}"): ("true", ""),
                    ("image", f"class {hp}", f"hw_{queues}"): ("true", ""),
                },
            ),
            (
                POLICY,
                dataclasses.replace(UNITS, host_shapes=shapes),
                {
                    ("policy", "", "placement"): ("slots", "units"),
                    ("host", "2x20", const.RC_SLOT): ("2", ""),
                    ("host", "1x20", const.RC_UNIT): ("", "1000 (at most 1000 a VM)"),
                },
            ),
            (
                UNITS,
                wide,
                {
                    ("policy", "", "elastic.slots"): ("null", "4"),
                    ("host", "2x20", "trait"): traits,
                    ("flavor", "g.1c.2g", f"trait:{traits[1]}"): ("", "required"),
                },
            ),
            # A host with fewer NUMA nodes than a VM has no slots.
            (
                POLICY,
                self.high(both, vcpus=40, numa_nodes=2),
                {
                    ("host", "1x40", "slots"): ("2", "0"),
                    ("host", "1x40", const.RC_SLOT): ("2", "0"),
                },
            ),
            # Texts are as they are in the file.
            (
                POLICY,
                self.high(disk=disk),
                {("class", hp, "disk.volume_type"): ("nvme-tcp", "NVMe")},
            ),
        ):
            found = self.diff(new, old)
            self.assertEqual(expected, {key: found.get(key) for key in expected})

    def test_a_new_size_proposes_to_keep_the_old_one(self):
        what = "servers of 20 vCPUs cannot be moved without"
        key = ("proposal", "class high-performance", what)
        changed = self.high(vcpus=18)
        for policy, expected in (
            (changed, ("", "former_vcpus: [20]")),
            (self.high(changed, former_vcpus=(16,)), ("", "former_vcpus: [16, 20]")),
            (self.high(changed, former_vcpus=(20,)), None),
            # On other NUMA nodes they are not of the class in any size.
            (self.high(changed, numa_nodes=2), None),
        ):
            self.assertEqual(expected, self.diff(policy).get(key))

    def test_servers_that_the_new_policy_would_not_allow(self):
        snapshot = cloud().snapshot()
        one = self.high(max_per_host=1)
        both = {"vm1 (i-vm1)", "vm2 (i-vm2)"}
        isolate = self.high(cpu_thread_policy="isolate")
        for old, new, expected in (
            (POLICY, POLICY, set()),
            (POLICY, one, {("host", "h1", codes.TOO_MANY_ON_HOST)}),
            (one, POLICY, set()),
            # A second fault of the same kind is told, too.
            (
                isolate,
                self.high(isolate, mem_page_size="1GB"),
                {("server", name, codes.NOT_OF_CLASS) for name in both},
            ),
            (
                POLICY,
                self.high(vcpus=18),
                {("server", name, "audit.wrong_size") for name in both},
            ),
            (
                POLICY,
                self.high(vcpus=18, former_vcpus=(20,)),
                {("server", name, codes.FORMER_SIZE) for name in both},
            ),
        ):
            found = compare_servers(old, new, snapshot)
            self.assertEqual(expected, {found[:3] for found in found})
            self.assertTrue(all("openstack server" in one.new for one in found))

    def test_servers_that_lack_a_key(self):
        snapshot = cloud().snapshot()
        reset = {"hw:watchdog_action": "reset"}
        for changes, key, value in (
            ({"pmu": False}, "hw:pmu", "false"),
            ({"extra_specs": reset}, *next(iter(reset.items()))),
        ):
            found = compare_servers(POLICY, self.high(**changes), snapshot)
            self.assertEqual(
                [("server", f"{n} (i-{n})", key, "(not set)") for n in ("vm1", "vm2")],
                [one[:4] for one in found],
            )
            for one in found:
                self.assertTrue(one.new.startswith(f"{value}: openstack perfvm"))
                self.assertIn("openstack server resize --flavor", one.new)
            # They never had it.
            back = compare_servers(self.high(**changes), POLICY, snapshot)
            self.assertEqual([], back)

    def test_whether_servers_are_migrated_live(self):
        key = ("class", "high-performance", "migrated live")
        secret = self.high(extra_specs={"hw:tpm_version": "2.0"})
        old, new = self.diff(secret)[key]
        self.assertEqual("yes", old)
        self.assertIn("hw:tpm_secret_security=user", new)
        self.assertNotIn(key, self.diff(self.high(pmu=False)))

    def test_servers_that_another_number_of_children_leaves_behind(self):
        wide = dataclasses.replace(UNITS, elastic=Elastic(4))
        cloud_of_two = Cloud(UNITS)
        cloud_of_two.add_host("h1", mode="shared")
        cloud_of_two.add_general("vm3", "h1")
        snapshot = cloud_of_two.snapshot()
        self.assertEqual([], compare_servers(UNITS, UNITS, snapshot))
        (found,) = compare_servers(UNITS, wide, snapshot)
        self.assertEqual(("server", "vm3 (i-vm3)", codes.FLAVOR_LEFT_BEHIND), found[:3])
        self.assertIn("openstack server resize --flavor", found.new)
        # Without elastic hosts its flavor asks for what no class takes.
        found = compare_servers(UNITS, POLICY, snapshot)
        self.assertEqual({"audit.contract_differs"}, {one.what for one in found})

    def test_hosts_that_only_one_policy_judges(self):
        """A high-performance VM and a general one, on a host without a label."""
        found = cloud()
        found.add_general("vm4", "h1")
        snapshot = found.snapshot()
        one = change_class(LABELLED, "high-performance", max_per_host=1)
        found.parts["aggregates"] = (LABEL,)
        labelled = found.snapshot()
        for old, new, seen, expected in (
            (LABELLED, POLICY, snapshot, [codes.CLASSES_MIXED]),
            (POLICY, LABELLED, snapshot, ["audit.host_not_managed"] * 2),
            (LABELLED, one, snapshot, []),
            # With one, the rules hold there under both.
            (LABELLED, POLICY, labelled, []),
            (LABELLED, one, labelled, [codes.TOO_MANY_ON_HOST]),
        ):
            found = compare_servers(old, new, seen)
            self.assertEqual(expected, [difference.what for difference in found])

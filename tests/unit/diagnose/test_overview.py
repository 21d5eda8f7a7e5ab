# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.diagnose import explain, overview
from nova_perfvm.diagnose.capacity import host_capacity
from nova_perfvm.diagnose.verdicts import settings_for
from tests.unit.facts.snapshot.clouds import GENERAL, HP, POLICY, Cloud


class OverviewTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        for name in ("hp1", "hp2"):
            self.cloud.add_host(name)
        self.cloud.add_hp("a", "hp1")
        self.cloud.add_host("g1", "shared")

    def look(self, **options):
        return overview.look(POLICY, self.cloud.snapshot(), **options)

    def test_slots_findings_and_verdicts_are_those_of_the_other_commands(self):
        self.cloud.add_general("lost", "hp1")
        found = self.look()
        snapshot = self.cloud.snapshot()
        self.assertEqual(host_capacity(POLICY, snapshot), found.slots)
        self.assertEqual(["hp1"], [s.name for s in found.slots_by_host["hp1"]])
        self.assertEqual(1, found.report.by_code()["audit.classes_mixed"])
        flavors = {verdicts.flavor: verdicts for verdicts in found.flavors}
        self.assertEqual(set(self.cloud.flavors), set(flavors))
        request, _ = explain.request_of(snapshot, flavor=HP)
        settings = settings_for(POLICY)
        alone = explain.explain(POLICY, snapshot, request, settings)
        self.assertEqual(alone.verdicts, flavors[HP].verdicts)
        self.assertEqual(len(alone.accepting), flavors[HP].accepting)
        self.assertEqual("high-performance", flavors[HP].class_name)

    def test_hosts_are_counted_for_each_reason(self):
        found = {f.flavor: f for f in self.look().flavors}
        counts = found[HP].by_code()
        self.assertEqual(set(overview.CODES), set(counts))
        refused = {code: count for code, count in counts.items() if count}
        # PCPU and the slot: the host counts once.
        self.assertEqual(1, refused["placement.no_inventory"])
        self.assertEqual(2, found[HP].accepting)

    def test_the_clouds_flavor_is_judged_not_the_policys(self):
        self.cloud.change_flavor(HP, vcpus=16)
        del self.cloud.flavors[GENERAL]
        found = {f.flavor: f for f in self.look().flavors}
        self.assertEqual((0, ""), (found[HP].accepting, found[HP].note))
        self.assertIn("not in the cloud", found[GENERAL].note)
        self.assertEqual((), found[GENERAL].verdicts)

    def test_flavors_that_are_named(self):
        other = dataclasses.replace(self.cloud.flavors[HP], id="1", name="other")
        self.cloud.flavors["other"] = other
        found = self.look(flavors=["other"])
        self.assertEqual(["other"], [f.flavor for f in found.flavors])
        self.assertRaises(explain.NotFoundError, self.look, flavors=["none"])
        # One that nova-api refuses has a note.
        specs = {**self.cloud.flavors[HP].extra_specs, "hw:numa_nodes": "3"}
        self.cloud.change_flavor(HP, extra_specs=specs)
        (found,) = self.look(flavors=[HP]).flavors
        self.assertEqual((), found.verdicts)
        self.assertIn("do not divide by 3 NUMA nodes", found.note)

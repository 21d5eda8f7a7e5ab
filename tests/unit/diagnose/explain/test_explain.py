# SPDX-License-Identifier: Apache-2.0
"""Verdicts, fixes and groups, on clouds that are snapshots."""

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.explain import NotFoundError, settings_for
from nova_perfvm.diagnose.explain.verdicts import TENANT_OPTION
from nova_perfvm.facts.snapshot import (
    INVENTORY_FILE,
    Aggregate,
    Flavor,
    Image,
    Inventory,
    Provider,
)
from nova_perfvm.placement.schemes import units
from tests.unit.facts.snapshot.clouds import GENERAL, HP, POLICY, Cloud
from tests.unit.rules import hosts

UNITS = dataclasses.replace(POLICY, placement="units")
TRAIT = units.UNITS.enrolled_trait(UNITS)
BIG = "hp.20c.200g"


class ExplainCase(testtools.TestCase):
    POLICY = POLICY

    def setUp(self):
        super().setUp()
        self.cloud = Cloud(self.POLICY)

    def explain(self, flavor=HP, *, options=None, offered=None, host=None, **what):
        snapshot = self.cloud.snapshot()
        if "server" not in what:
            what["flavor"] = flavor
        request, self.about = explain.request_of(snapshot, **what)
        return explain.explain(
            self.POLICY,
            snapshot,
            request,
            settings_for(self.POLICY, options),
            host=host,
            offered=offered,
        )

    def add_failed(self, name):
        """Add a server that came to no host."""
        self.cloud.add_hp(name, "hp1", cells=(), status="ERROR")
        self.cloud.change_server(name, host=None, fault="No valid host.")
        self.cloud.change_provider("hp1", allocations={})

    def verdict(self, *arguments, **options):
        """Return the verdict on the first host, and what is said."""
        found = self.explain(*arguments, **options)
        return found.verdicts[0], found.say(found.verdicts[0].reasons)

    def add_spare(self):
        """Add a host that takes a VM of 64 GB, and none of 200."""
        self.cloud.add_host("spare", memory_gb=180)


class SlotsTest(ExplainCase):
    def test_an_empty_host_takes_it(self):
        self.cloud.add_host("hp1")
        found = self.explain()
        self.assertEqual(("hp1",), found.accepting)
        self.assertEqual((None,), found.fixes)
        (row,) = found.rows()
        self.assertEqual(("", ("hp1",)), (row.code, row.hosts))

    def test_a_full_host_says_what_is_full(self):
        self.cloud.add_host("hp1")
        self.cloud.add_hp("a", "hp1")
        self.cloud.add_hp("b", "hp1", first=20, node=1)
        verdict, said = self.verdict()
        self.assertEqual("placement.resource, host.no_free_slot", verdict.code)
        self.assertIn("CUSTOM_PERFVM_SLOT: need 1, 0 of 2 free", said)
        self.assertIn("PCPU: need 20, 0 of 40 free", said)
        self.assertIn("NUMA node 1: 0 of 20 pCPUs free", verdict.cells[1])

    def test_what_nova_migrates_as_it_is_goes_first(self):
        for name in ("hp1", "hp2"):
            self.cloud.add_host(name)
            self.cloud.add_hp(f"{name}-a", name, status="ERROR")
            self.cloud.add_hp(f"{name}-b", name, first=20, node=1, status="SUSPENDED")
        self.add_spare()
        words = (
            "host hp1: free 20 pCPUs on NUMA node 0: reboot hard, then migrate hp1-a"
        )
        self.assertIn(words, str(explain.smallest(self.explain(BIG).fixes)))
        self.cloud.change_server("hp2-b", status="SHUTOFF")
        self.assertEqual(
            "host hp2: free 20 pCPUs on NUMA node 1: migrate hp2-b (i-hp2-b)",
            str(explain.smallest(self.explain(BIG).fixes)),
        )

    def test_a_shelved_server_needs_no_other_host(self):
        self.cloud.add_host("hp1")
        self.cloud.add_hp("a", "hp1", status="SHELVED")
        self.cloud.add_hp("b", "hp1", first=20, node=1, status="SHELVED")
        found = self.explain()
        self.assertIn("offload a (i-a)", str(explain.smallest(found.fixes)))
        self.assertNotIn("no other host", " ".join(found.notes))

    def test_no_server_makes_room_for_itself(self):
        self.cloud.add_host("hp1")
        self.cloud.add_hp("a", "hp1", status="SHELVED")
        self.cloud.add_hp("b", "hp1", first=20, node=1, status="SHELVED")
        (fix,) = self.explain(server="a").fixes
        self.assertEqual(["b"], [server.name for server in fix.servers])
        (fix,) = self.explain(server="b").fixes
        self.assertEqual(["a"], [server.name for server in fix.servers])

    def test_a_server_of_a_former_size_is_moved(self):
        for name in ("hp1", "hp2"):
            self.cloud.add_host(name)
        self.cloud.add_hp("a", "hp1")
        self.POLICY = hosts.policy(vcpus=18, former_vcpus=(20,))
        self.assertIn("hp2", self.explain(server="a").accepting)
        # No new one comes anywhere, nor does one that failed to.
        self.assertEqual((), self.explain(HP).accepting)
        self.cloud.change_server("a", host=None, status="SHELVED_OFFLOADED")
        self.assertIn("hp2", self.explain(server="a").accepting)
        self.cloud.change_server("a", status="ERROR")
        self.assertEqual("flavor.vcpus", self.verdict(server="a")[0].code)

    def test_only_servers_that_another_host_takes_are_to_go(self):
        self.cloud.add_host("hp1")
        self.cloud.add_host("hp2")
        for host in ("hp1", "hp2"):
            self.cloud.add_hp(f"{host}-a", host)
        self.cloud.add_hp("hp1-b", "hp1", first=20, node=1)
        # An odd one that blocks a cell.
        self.cloud.add_hp("odd", "hp2", first=20, node=1, count=8, vcpus=8)
        found = self.explain(BIG)
        self.assertIsNone(explain.smallest(found.fixes))
        self.assertIn(
            "servers are in the way that no other host takes: hp1, hp2", found.notes
        )
        # The odd one would be the smallest, and is of no class: nobody takes it.
        self.add_spare()
        found = self.explain(BIG)
        self.assertEqual(
            "host hp1: free 20 pCPUs on NUMA node 0: migrate hp1-a (i-hp1-a)",
            str(explain.smallest(found.fixes)),
        )
        self.assertIn("hp1-a would fit spare", found.notes)

    def test_several_servers_and_none_too_many(self):
        self.cloud.add_host("hp1")
        self.cloud.add_hp("a", "hp1")
        for n in range(4):
            self.cloud.add_hp(
                f"s{n}", "hp1", 20 + 5 * n, 1, 5, vcpus=5, status="SHELVED"
            )
        (fix,) = self.explain().fixes
        self.assertEqual(["s0", "s1", "s2", "s3"], sorted(s.name for s in fix.servers))
        self.assertEqual("20 pCPUs on NUMA node 1", fix.frees)

    def test_services(self):
        self.cloud.add_host("hp1")
        host = self.cloud.hosts["hp1"]
        disabled = {"enabled": False, "disabled_reason": "broken fan"}
        for changes, code, words, step in (
            (disabled, const.SERVICE_DISABLED, "broken fan", "enable nova-compute"),
            ({"up": False}, const.SERVICE_DOWN, "is down", "start nova-compute"),
            (
                {"up": False, "forced_down": True},
                const.SERVICE_DOWN,
                "forced down",
                "end its being forced down",
            ),
        ):
            self.cloud.hosts["hp1"] = dataclasses.replace(host, **changes)
            found = self.explain()
            self.assertEqual(code, found.verdicts[0].code)
            self.assertIn(words, found.say(found.verdicts[0].reasons))
            self.assertIn(step, str(found.fixes[0]))

    def test_a_service_that_is_enabled_and_a_trait_that_is_not(self):
        self.cloud.add_host("hp1")
        traits = self.cloud.providers["hp1"].traits | {"COMPUTE_STATUS_DISABLED"}
        self.cloud.change_provider("hp1", traits=traits)
        verdict, said = self.verdict()
        self.assertEqual(const.PLACEMENT_TRAIT_FORBIDDEN, verdict.code)
        self.assertIn("COMPUTE_STATUS_DISABLED is on hp1", said)

    def test_zones_and_tenants(self):
        self.cloud.add_host("hp1")
        self.assertEqual(
            const.NOVA_AVAILABILITY_ZONE,
            self.verdict(availability_zone="east")[0].code,
        )
        tenant = Aggregate(
            1, "u", "theirs", {"filter_tenant_id": "p2, p3"}, frozenset({"hp1"})
        )
        self.cloud.parts["aggregates"] = (tenant,)
        self.assertEqual("", self.verdict()[0].code)
        self.assertEqual("", self.verdict(project="p3")[0].code)
        self.assertEqual(
            const.NOVA_TENANT_AGGREGATE, self.verdict(project="p1")[0].code
        )
        # Nobody looks at the metadata there.
        self.assertEqual("", self.verdict(project="p1", options={})[0].code)

    def test_projects_with_aggregates_of_their_own_stay_in_them(self):
        self.cloud.add_host("hp1")
        self.cloud.add_host("hp2")
        own = Aggregate(1, "u", "o", {"filter_tenant_id": "p1"}, frozenset({"hp2"}))
        self.cloud.parts["aggregates"] = (own,)
        options = {TENANT_OPTION: "true"}
        found = self.explain(project="p1", options=options)
        self.assertEqual(("hp2",), found.accepting)
        self.assertIn("has aggregates of its own", found.say(found.verdicts[0].reasons))
        # Of one host alone the same is said, though the aggregate has another.
        (verdict,) = self.explain(project="p1", options=options, host="hp1").verdicts
        self.assertEqual(found.verdicts[0], verdict)

    def test_projects_that_need_an_aggregate_of_their_own(self):
        self.cloud.add_host("hp1")
        needed = ("scheduler", "placement_aggregate_required_for_tenants")
        options = {needed: "true"}
        self.assertEqual("", self.verdict(project="p1", options=options)[0].code)
        options[TENANT_OPTION] = "true"
        verdict, said = self.verdict(project="p1", options=options)
        self.assertEqual(const.NOVA_TENANT_AGGREGATE, verdict.code)
        self.assertIn("has no aggregate of its own", said)
        # Of an unknown project nothing is known.
        self.assertEqual("", self.verdict(options=options)[0].code)

    def test_inventories_that_do_not_give_it(self):
        for inventory, words in (
            (Inventory(2, 0), "max_unit is 0"),
            (Inventory(2, 2, min_unit=2), "min_unit is 2"),
            (Inventory(4, 4, step_size=2), "step_size is 2"),
            (Inventory(2, 1, reserved=2), "((2 - 2 reserved))"),
            (Inventory(2, 1, allocation_ratio=0.25), "((2 - 0 reserved) x 0.25)"),
        ):
            self.cloud = Cloud()
            self.cloud.add_host("hp1")
            before = self.cloud.providers["hp1"].inventories
            self.cloud.change_provider(
                "hp1", inventories={**before, const.RC_SLOT: inventory}
            )
            verdict, said = self.verdict()
            self.assertEqual(const.PLACEMENT_RESOURCE, verdict.code)
            self.assertIn(words, said)

    def test_what_it_has_too_much_of(self):
        self.cloud.add_host("hp1")
        for n in range(3):
            self.cloud.allocate(f"leaked-{n}", "hp1", {const.RC_SLOT: 1})
        self.assertIn("0 of 2 free, 1 more used than there is", self.verdict()[1])

    def test_no_provider_no_trait_no_inventory(self):
        self.cloud.add_host("g1", "shared")
        said = self.verdict()[1]
        self.assertIn("trait CUSTOM_PERFVM_HIGH_PERFORMANCE is missing", said)
        self.assertIn("PCPU: need 20, the host has none", said)
        gone = self.cloud.providers["g1"]
        self.cloud.providers["g1"] = dataclasses.replace(
            gone, uuid="other", root="other"
        )
        self.assertEqual(
            const.PLACEMENT_NO_PROVIDER, self.verdict()[0].placement[0].code
        )

    def test_no_pcpus_are_shown_where_none_is_offered(self):
        self.cloud.add_host("g1", "shared")
        (line,) = self.verdict()[0].cells
        self.assertIn("Placement counts 40 VCPU and no PCPU", line)
        # Unless Nova asks for VCPU instead,
        verdict, _ = self.verdict(options={})
        self.assertIn("NUMA node 1: 20 of 20 pCPUs free", verdict.cells[1])
        # or the cells are known.
        snapshot = self.cloud.snapshot()
        (host,) = snapshot.hosts
        cells = tuple(
            dataclasses.replace(cell, pcpuset=frozenset()) for cell in host.cells
        )
        known = dataclasses.replace(host, cells=cells, cells_source=INVENTORY_FILE)
        self.cloud.snapshot = lambda: dataclasses.replace(snapshot, hosts=(known,))
        self.assertIn("NUMA node 1: 0 of 0 pCPUs free", self.verdict()[0].cells[1])

    def test_a_pool_that_is_shared(self):
        self.cloud.add_host("g1", "shared")
        self.assertIn("DISK_GB: need 40, the host has none", self.verdict(GENERAL)[1])
        self.cloud.change_provider("g1", aggregates=frozenset({"pool"}))
        self.cloud.providers["nfs"] = Provider(
            uuid="p-nfs",
            name="nfs",
            generation=1,
            inventories={"DISK_GB": Inventory(100, 100)},
            traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"}),
            aggregates=frozenset({"pool"}),
            root="p-nfs",
        )
        self.assertEqual("", self.verdict(GENERAL)[1])
        self.cloud.allocate("other", "nfs", {"DISK_GB": 61})
        self.assertIn("DISK_GB: need 40, 39 of 100 free", self.verdict(GENERAL)[1])

    def test_the_request_itself_is_wrong(self):
        self.cloud.add_host("hp1")
        self.cloud.change_flavor(HP, vcpus=16)
        found = self.explain()
        self.assertEqual((None,), found.fixes)
        self.assertEqual(["flavor.vcpus"], [r.code for r in found.request_reasons])

    def test_the_fallback_is_named_where_it_matters(self):
        self.cloud.add_host("g1", "shared")
        specs = {"hw:cpu_policy": "dedicated"}
        self.cloud.change_flavor(HP, extra_specs=specs, vcpus=8)
        verdict, _ = self.verdict()
        self.assertIn(
            "Placement offers it if [workarounds]disable_fallback_pcpu_query is False",
            verdict.notes[0],
        )
        verdict, _ = self.verdict(options={})
        self.assertEqual(("offered for VCPU in place of PCPU",), verdict.notes)

    def test_what_placement_itself_says_counts_and_is_told(self):
        self.cloud.add_host("hp1")
        found = self.explain(offered=frozenset())
        self.assertEqual(const.PLACEMENT_REFUSED, found.verdicts[0].code)
        self.assertIn("Placement itself does not offer it", found.notes[-1])
        self.cloud.allocate("other", "hp1", {const.RC_SLOT: 2})
        found = self.explain(offered=frozenset({"p-hp1"}))
        self.assertTrue(found.verdicts[0].accepted)
        self.assertIn("Placement itself offers it, though", found.notes[-1])

    def test_cells_that_nobody_knows(self):
        self.cloud.add_host("hp1")
        snapshot = self.cloud.snapshot()
        bare = dataclasses.replace(snapshot.hosts[0], cells=(), cells_source="unknown")
        self.cloud.snapshot = lambda: dataclasses.replace(snapshot, hosts=(bare,))
        self.assertEqual(const.CELLS_UNKNOWN, self.verdict()[0].code)

    def test_servers_images_and_hosts_by_name(self):
        self.cloud.add_host("hp1")
        self.add_failed("a")
        self.cloud.parts["images"] = (
            Image("i1", "linux", {"hw_cpu_policy": "dedicated"}),
        )
        self.assertEqual("", self.verdict(server="a")[0].code)
        self.assertEqual(("a is ERROR: No valid host.",), self.about)
        # On no host, a server shows the zone that was asked for.
        self.cloud.change_server("a", availability_zone="east")
        self.assertEqual(const.NOVA_AVAILABILITY_ZONE, self.verdict(server="a")[0].code)
        self.cloud.change_server("a", availability_zone="")
        self.cloud.change_flavor(GENERAL, extra_specs={})
        pinned = self.explain(GENERAL, image="linux").request.facts.pinned
        self.assertTrue(pinned)
        for what, words in (
            ({"server": "b"}, "openstack server list --all-projects"),
            ({"flavor": "x"}, "no flavor 'x'"),
            ({"image": "x"}, "no image 'x'"),
            ({"host": "x"}, "no compute host 'x'"),
        ):
            error = self.assertRaises(NotFoundError, self.explain, **what)
            self.assertIn(words, str(error))
        self.add_failed("a2")
        self.cloud.servers["a2"] = dataclasses.replace(
            self.cloud.servers["a2"], name="a"
        )
        error = self.assertRaises(NotFoundError, self.explain, server="a")
        self.assertIn("name the ID: i-a, i-a2", str(error))
        self.cloud.parts |= {"images": None, "gaps": ("images: no endpoint",)}
        error = self.assertRaises(NotFoundError, self.explain, image="linux")
        self.assertIn("no endpoint", str(error))

    def test_a_hidden_image_gives_way_to_one_of_its_name(self):
        self.cloud.add_host("g1", "shared")
        self.cloud.change_flavor(GENERAL, extra_specs={})
        pins = {"hw_cpu_policy": "dedicated"}
        old = Image("old", "linux", pins, hidden=True)
        for image, others, pinned in (
            ("linux", (), True),
            ("linux", (Image("new", "linux"),), False),
            ("old", (Image("new", "linux"),), True),
        ):
            self.cloud.parts["images"] = (*others, old)
            found = self.explain(GENERAL, image=image).request.facts.pinned
            self.assertEqual(pinned, found)


class LabelledTest(ExplainCase):
    """Hosts that have no label are none of the policy's."""

    POLICY = dataclasses.replace(POLICY, managed_hosts="labelled")

    def setUp(self):
        super().setUp()
        self.options = {("workarounds", "disable_fallback_pcpu_query"): "false"}
        for name, specs in (
            ("own", {"hw:cpu_policy": "dedicated"}),
            ("near", {"hw:numa_nodes": "1"}),
            ("apart", {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2"}),
        ):
            self.cloud.flavors[name] = Flavor(name, name, 22, 1024, 0, specs)

    def code(self, flavor):
        return self.verdict(flavor, options=self.options)[0].code

    def test_cells_where_no_rule_looks(self):
        self.cloud.add_host("h1")
        verdict, said = self.verdict("own", options=self.options)
        self.assertEqual(const.NOVA_NUMA_TOPOLOGY, verdict.code)
        self.assertIn("no NUMA nodes of the host for 22 pinned vCPUs", said)
        self.assertEqual("", self.code("apart"))

    def test_cells_that_are_too_small(self):
        self.cloud.add_host("h1", "shared")
        self.assertEqual(const.NOVA_NUMA_TOPOLOGY, self.code("near"))

    def test_cells_that_are_there(self):
        self.cloud.add_host("h1", "shared", "2x40")
        self.assertEqual("", self.code("near"))

    def test_cells_that_are_taken(self):
        self.cloud.add_host("h1", "dedicated", "2x40")
        self.cloud.add_hp("a", "h1")
        self.assertEqual("", self.code("own"))
        self.cloud.add_hp("b", "h1", 40, node=1)
        self.assertEqual(const.NOVA_NUMA_TOPOLOGY, self.code("own"))


class UnitsCase(ExplainCase):
    POLICY = UNITS

    def add_elastic(self, name="e1", slots=2):
        self.cloud.add_elastic(name, slots)

    def add_general_to(self, host, name):
        self.cloud.add_general(name, host)
        self.cloud.allocate_units(f"i-{name}", host)


class UnitsTest(UnitsCase):
    def test_an_empty_host_takes_either(self):
        self.add_elastic()
        self.assertEqual("", self.verdict(HP)[1])
        self.assertEqual("", self.verdict(GENERAL)[1])
        (verdict,) = self.explain(HP).verdicts
        self.assertEqual({const.RC_UNIT: 1000}, verdict.allocation["e1_perfvm_a"])

    def test_general_vms_block_it_and_have_to_go(self):
        self.add_elastic()
        for n in range(3):
            self.add_general_to("e1", f"g{n}")
        verdict, said = self.verdict(HP)
        self.assertEqual(const.PLACEMENT_UNITS, verdict.placement[0].code)
        self.assertIn("e1_perfvm_a 3 of 1000 held by 3 general VMs", said)
        self.cloud.add_elastic("e2")
        fix, _ = self.explain(HP).fixes
        self.assertIn("free 3 units of e1_perfvm_a, 3 units", str(fix))
        self.assertEqual(3, len(fix.servers))

    def test_a_high_performance_vm_blocks_general_ones(self):
        self.add_elastic()
        self.cloud.add_hp("vm1", "e1")
        self.cloud.allocate("i-vm1", "e1_perfvm_b", {const.RC_UNIT: 1000})
        said = self.verdict(GENERAL)[1]
        self.assertIn("e1_perfvm_b all 1000 held by vm1", said)

    def test_as_many_general_vms_as_there_may_be(self):
        self.add_elastic()
        for letter in "ab":
            self.cloud.change_provider(
                f"e1_perfvm_{letter}",
                allocations={f"c{n}": {const.RC_UNIT: 1} for n in range(1000)},
            )
        self.assertIn(
            "1000 of 1000 held by general VMs: as many as the host may have",
            self.verdict(GENERAL)[1],
        )

    def test_a_host_for_general_vms_only(self):
        self.add_elastic(slots=0)
        self.assertIn("it is for general VMs only", self.verdict(HP)[1])

    def test_isolated_aggregates(self):
        self.add_elastic()
        self.cloud.change_flavor(GENERAL, extra_specs={})
        verdict, said = self.verdict(GENERAL)
        lacking = "host.units_lacking"
        self.assertEqual(f"{const.PLACEMENT_ISOLATED}, {lacking}", verdict.code)
        self.assertIn("requests with trait CUSTOM_PERFVM_ELASTIC_2 only", said)
        self.assertIn(
            "[scheduler]enable_isolated_aggregate_filtering is False", verdict.notes[0]
        )
        # The filter closes the host even where Nova does not isolate aggregates.
        self.assertEqual(lacking, self.verdict(GENERAL, options={})[0].code)

    def test_groups_that_fit_one_by_one_only(self):
        self.add_elastic()
        specs = {
            "group_policy": "none",
            f"resources_x:{const.RC_UNIT}": "600",
            f"resources_y:{const.RC_UNIT}": "600",
            f"resources_z:{const.RC_UNIT}": "600",
        }
        specs[f"trait:{TRAIT}"] = "required"
        self.cloud.change_flavor(GENERAL, extra_specs=specs)
        code = f"{const.PLACEMENT_GROUPS}, {'flavor.resources'}"
        self.assertEqual(code, self.verdict(GENERAL)[0].code)
        del specs[f"resources_z:{const.RC_UNIT}"]
        self.cloud.change_flavor(GENERAL, extra_specs=specs)
        self.assertEqual("flavor.resources", self.verdict(GENERAL)[0].code)


class WordsTest(testtools.TestCase):
    def test_every_code_has_words(self):
        from nova_perfvm.diagnose.explain import words

        known = set(words.__globals__["_WORDS"]) | {const.PLACEMENT_UNITS}
        self.assertEqual(const.OUTER_CODES, known)

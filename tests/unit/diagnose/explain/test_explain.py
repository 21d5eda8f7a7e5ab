# SPDX-License-Identifier: Apache-2.0
"""Verdicts, fixes and groups, on clouds that are snapshots."""

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose import words as wording
from nova_perfvm.diagnose.explain import NotFoundError
from nova_perfvm.diagnose.verdicts import TENANT_FILTER, settings_for
from nova_perfvm.facts.snapshot import Aggregate, Flavor, Image, Inventory, Provider
from nova_perfvm.placement.schemes import units
from tests.unit.facts.snapshot.clouds import GENERAL, HP, POLICY, Cloud, blind
from tests.unit.rules import hosts

UNITS = dataclasses.replace(POLICY, placement="units")
TRAIT = units.UNITS.enrolled_trait(UNITS)
BIG = "hp.20c.200g"
TENANTS_APART = {
    (
        "filter_scheduler",
        "enabled_filters",
    ): "PerfVMFilter,AggregateMultiTenancyIsolation"
}


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

    def verdict(self, *arguments, **options):
        """Return the codes of the first host's verdict, and what is said."""
        verdict = self.explain(*arguments, **options).verdicts[0]
        return verdict.code, "; ".join(map(wording.words, verdict.reasons))

    def code(self, *arguments, **options):
        return self.verdict(*arguments, **options)[0]

    def fix(self, *arguments, **options):
        """Return the best fix, in words; "None" where there is none."""
        best, *_ = self.explain(*arguments, **options).rows()
        return str(best.fix)

    def add_full(self, host, **changes):
        self.cloud.add_host(host)
        self.cloud.add_hp(f"{host}-a", host, **changes)
        self.cloud.add_hp(f"{host}-b", host, first=20, node=1, **changes)

    def add_spare(self):
        """Add a host that takes a VM of 64 GB, and none of 200."""
        self.cloud.add_host("spare", memory_gb=180)


class FixesTest(ExplainCase):
    def test_an_empty_host_takes_it(self):
        self.cloud.add_host("hp1")
        found = self.explain()
        self.assertEqual((("hp1",), (None,)), (found.accepting, found.fixes))
        (row,) = found.rows()
        self.assertEqual(("", ("hp1",)), (row.shown.code, row.hosts))

    def test_what_nova_migrates_as_it_is_goes_first(self):
        for name in ("hp1", "hp2"):
            self.add_full(name, status="ERROR")
        self.add_spare()
        words = "host hp1: migrate hp1-a (i-hp1-a) in ERROR"
        self.assertEqual(words, self.fix(BIG))
        self.cloud.change_server("hp2-b", status="SHUTOFF")
        self.assertEqual("host hp2: migrate hp2-b (i-hp2-b)", self.fix(BIG))

    def test_a_shelved_server_needs_no_other_host_and_none_stays_on_its_own(self):
        self.add_full("hp1", status="SHELVED")
        words = "host hp1: migrate hp1-a (i-hp1-a) in SHELVED"
        self.assertEqual(words, self.fix())
        self.cloud.add_host("hp2")
        self.cloud.add_hp("a", "hp2")
        self.cloud.add_hp("b", "hp2", first=20, node=1)
        found = self.explain(server="a")
        self.assertEqual(words, str(found.fixes[0]))
        # Nova does not move it to where it is.
        self.assertEqual(((), None), (found.accepting, found.fixes[1]))
        self.assertEqual(const.NOVA_SAME_HOST, found.verdicts[1].reasons[0].code)

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
        self.assertEqual("flavor.vcpus", self.code(server="a"))

    def test_only_servers_that_another_host_takes_are_to_go(self):
        self.add_full("hp1")
        self.cloud.add_host("hp2")
        self.cloud.add_hp("hp2-a", "hp2")
        # An odd one that blocks a cell.
        self.cloud.add_hp("odd", "hp2", first=20, node=1, count=8, vcpus=8)
        found = self.explain(BIG)
        self.assertEqual((None, None), found.fixes)
        self.assertIn(
            "for which other hosts lack room are on: hp1, hp2", found.notes[-1]
        )
        # The odd one would be the smallest, and is of no class: nobody takes it.
        self.add_spare()
        self.assertEqual("host hp1: migrate hp1-a (i-hp1-a)", self.fix(BIG))

    def test_servers_stay_in_the_zone_that_nova_binds_them_to(self):
        self.add_full("hp1", availability_zone="east", bound_zone="east")
        self.add_spare()
        zone = {"availability_zone": "east"}
        self.cloud.parts["aggregates"] = (Aggregate(1, "u", "a", zone, frozenset()),)
        self.assertEqual("None", self.fix(BIG))
        self.cloud.parts["zones_told"] = True
        self.assertEqual("None", self.fix(BIG))
        self.cloud.change_server("hp1-b", bound_zone="")
        self.assertEqual("host hp1: migrate hp1-b (i-hp1-b)", self.fix(BIG))

    def test_several_servers_and_none_too_many(self):
        self.cloud.add_host("hp1")
        self.cloud.add_hp("a", "hp1")
        for n in range(4):
            self.cloud.add_hp(
                f"s{n}", "hp1", 20 + 5 * n, 1, 5, vcpus=5, status="SHELVED"
            )
        (fix,) = self.explain().fixes
        self.assertEqual(["s0", "s1", "s2", "s3"], sorted(s.name for s in fix.servers))

    def test_services(self):
        self.cloud.add_host("hp1")
        host = self.cloud.hosts["hp1"]
        disabled = {"enabled": False, "disabled_reason": "broken fan"}
        down = {"up": False}
        forced = {"up": False, "forced_down": True}
        for changes, expected, words, step in (
            (disabled, const.SERVICE_DISABLED, "broken fan", "enable nova-compute"),
            (down, const.SERVICE_DOWN, "is down", "start nova-compute"),
            (forced, const.SERVICE_DOWN, "forced down", "end its being forced down"),
        ):
            self.cloud.hosts["hp1"] = dataclasses.replace(host, **changes)
            code, said = self.verdict()
            self.assertEqual(expected, code)
            self.assertIn(words, said)
            self.assertIn(step, self.fix())

    def test_the_request_itself_is_wrong(self):
        self.cloud.add_host("hp1")
        self.cloud.change_flavor(HP, vcpus=16)
        found = self.explain()
        self.assertEqual((None,), found.fixes)
        self.assertEqual(["flavor.vcpus"], [r.code for r in found.request_reasons])


class LayersTest(ExplainCase):
    def test_a_full_host_says_what_is_full(self):
        self.add_full("hp1")
        code, said = self.verdict()
        self.assertEqual("placement.resource, host.no_free_slot", code)
        self.assertIn("CUSTOM_PERFVM_SLOT: need 1, 0 of 2 free", said)
        self.assertIn("PCPU: need 20, 0 of 40 free", said)

    def test_zones(self):
        for name, zone in (("hp1", "east"), ("hp2", "nova")):
            self.cloud.add_host(name)
            host = self.cloud.hosts[name]
            self.cloud.hosts[name] = dataclasses.replace(host, availability_zone=zone)
        east = {"availability_zone": "east"}
        aggregate = Aggregate(1, "e", "e", east, frozenset({"hp1"}))
        self.cloud.parts["aggregates"] = (aggregate,)
        self.cloud.change_provider("hp1", aggregates=frozenset({"e"}))
        self.cloud.add_hp("a", "hp1", bound_zone="east")
        self.cloud.parts["zones_told"] = True
        # For the zone of hosts that no aggregate puts into one Nova does not look.
        nova = {"availability_zone": "nova"}
        for what, expected in (
            (east, ("hp1",)),
            (nova, ("hp1", "hp2")),
            ({"server": "a"}, ()),
            ({"server": "a", **nova}, ("hp2",)),
        ):
            self.assertEqual(expected, self.explain(**what).accepting, what)
        # Placement, too, is asked for the zone.
        outside = self.code(host="hp2", offered=frozenset({"p-hp1"}), **east)
        self.assertEqual(const.NOVA_AVAILABILITY_ZONE, outside)
        for what in ({}, {"server": "a"}):
            what["availability_zone"] = "mars"
            error = self.assertRaises(NotFoundError, self.explain, **what)
            words = "there is no availability zone 'mars'; zones with hosts: east, nova"
            self.assertEqual(words, str(error))

    def test_rules_that_do_not_count(self):
        self.add_full("hp1")
        self.add_spare()
        self.cloud.change_inventories("spare", VCPU=Inventory(40, 40))
        self.assertEqual("host.mode_mixed", self.code(host="spare"))
        observing = {("perfvm", "mode"): "observe"}
        self.assertEqual("", self.code(host="spare", options=observing))
        # Servers that make way keep to them.
        self.assertEqual("None", self.fix(BIG, options=observing))
        self.cloud.change_flavor(HP, vcpus=16)
        found = self.explain(options=observing)
        self.assertEqual(((), ("spare",)), (found.request_reasons, found.accepting))

    def test_tenants(self):
        self.cloud.add_host("hp1")
        self.cloud.add_host("hp2")
        metadata = {"filter_tenant_id": "p2, p3", "filter_tenant_id_2": "p1"}
        group = Aggregate(1, "u", "o", metadata, frozenset({"hp1"}))
        self.cloud.parts["aggregates"] = (group,)
        for project, options, expected in (
            ("", None, ""),
            ("p3", None, ""),
            ("p4", TENANTS_APART, const.NOVA_TENANT_AGGREGATE),
            # Nova does not enable the filter by default.
            ("p4", {}, ""),
            ("p4", None, ""),
        ):
            found = self.code(project=project, options=options)
            self.assertEqual(expected, found, (project, options))

        for project, options, expected in (
            ("p3", None, []),
            ("p4", {}, []),
            ("p4", None, ["filter_tenant_id keeps hp1 for other projects"]),
            # It may be any.
            ("", None, ["filter_tenant_id keeps hp1 for other projects"]),
        ):
            notes = self.explain(project=project, options=options).notes
            said = [n.partition(" where ")[0] for n in notes if "tenant" in n]
            self.assertEqual(expected, said, (project, options))
        self.assertIn("AggregateMultiTenancyIsolation is enabled", notes[-1])

    def test_plans_keep_to_aggregates_of_projects(self):
        for options, expected in (
            (None, True),
            ({}, False),
            (TENANTS_APART, True),
        ):
            found = settings_for(self.POLICY, options).strict
            self.assertEqual(expected, TENANT_FILTER in found.filters, options)

    def test_inventories_that_do_not_give_it(self):
        for inventory, words in (
            (Inventory(2, 0), "max_unit is 0"),
            (Inventory(2, 2, min_unit=2), "min_unit is 2"),
            (Inventory(4, 4, step_size=2), "step_size is 2"),
            (Inventory(2, 1, reserved=2), "((2 - 2 reserved) x 1)"),
            (Inventory(2, 1, allocation_ratio=0.25), "((2 - 0 reserved) x 0.25)"),
        ):
            self.cloud = Cloud()
            self.cloud.add_host("hp1")
            before = self.cloud.providers["hp1"].inventories
            self.cloud.change_provider(
                "hp1", inventories={**before, const.RC_SLOT: inventory}
            )
            code, said = self.verdict()
            self.assertEqual(const.PLACEMENT_RESOURCE, code)
            self.assertIn(words, said)

    def test_inventories_that_just_give_it(self):
        for inventory in (
            Inventory(40, 20),
            Inventory(40, 40, min_unit=20),
            Inventory(40, 40, step_size=10),
            Inventory(40, 40, reserved=20),
            Inventory(40, 40, allocation_ratio=0.5),
        ):
            self.cloud = Cloud()
            self.cloud.add_host("hp1")
            self.cloud.change_inventories("hp1", PCPU=inventory)
            self.assertEqual("", self.code())

    def test_traits_of_a_provider_that_gives_nothing(self):
        """Placement looks for them where the unsuffixed group's resources are.

        Nested providers that give nothing of the group do not count.
        """
        trait = "CUSTOM_FAST_NIC"
        self.cloud.add_host("hp1")
        nic = Provider(
            uuid="p-nic",
            name="nic",
            generation=1,
            inventories={},
            traits=frozenset({trait}),
            parent="p-hp1",
            root="p-hp1",
        )
        self.cloud.providers["nic"] = nic
        specs = self.cloud.flavors[HP].extra_specs
        specs = specs | {f"trait:{trait}": "required"}
        self.cloud.change_flavor(HP, extra_specs=specs)
        self.assertEqual(const.PLACEMENT_GROUPS, self.code())
        self.cloud.change_inventories("nic", CUSTOM_QUEUES=Inventory(9, 9))
        self.assertEqual(const.PLACEMENT_GROUPS, self.code())
        queues = specs | {"resources:CUSTOM_QUEUES": "1"}
        self.cloud.change_flavor(HP, extra_specs=queues)
        self.assertEqual("", self.code())

    def test_groups_with_a_suffix(self):
        """Under ``isolate`` these differ, and the unsuffixed group does not count."""
        stock = {name: Inventory(9, 9) for name in ("CUSTOM_A", "CUSTOM_B")}
        self.cloud.add_host("hp1")
        self.cloud.change_inventories("hp1", **stock)
        traits = self.cloud.providers["hp1"].traits | {"CUSTOM_SLOW"}
        self.cloud.change_provider("hp1", traits=traits)
        specs = self.cloud.flavors[HP].extra_specs
        one = {"resources1:CUSTOM_A": "1"}
        two = one | {"resources2:CUSTOM_B": "1"}
        slow = {"trait1:CUSTOM_SLOW": "forbidden"}
        for groups, policy, expected in (
            (one, "isolate", ""),
            (two, "none", ""),
            (two, "isolate", const.PLACEMENT_GROUPS),
            (one | slow, "none", const.PLACEMENT_GROUPS),
        ):
            asked = specs | groups | {"group_policy": policy}
            self.cloud.change_flavor(HP, extra_specs=asked)
            self.assertEqual(expected, self.code())

    def test_equal_groups(self):
        """Each of them needs a provider of its own under ``isolate``."""
        self.cloud.add_host("hp1")
        for name in ("nic1", "nic2", "nic3"):
            self.cloud.providers[name] = Provider(
                uuid=f"p-{name}",
                name=name,
                generation=1,
                inventories={"CUSTOM_A": Inventory(1, 1)},
                parent="p-hp1",
                root="p-hp1",
            )
        specs = self.cloud.flavors[HP].extra_specs | {"group_policy": "isolate"}
        for number, expected in ((1, ""), (3, ""), (4, const.PLACEMENT_GROUPS)):
            groups = {f"resources{n}:CUSTOM_A": "1" for n in range(number)}
            self.cloud.change_flavor(HP, extra_specs=specs | groups)
            self.assertEqual(expected, self.code(), number)

    def test_resources_of_a_group_that_no_provider_has_together(self):
        self.cloud.add_host("hp1")
        nic = Provider(
            uuid="p-nic",
            name="nic",
            generation=1,
            inventories={"CUSTOM_B": Inventory(9, 9)},
            parent="p-hp1",
            root="p-hp1",
        )
        self.cloud.providers["nic"] = nic
        self.cloud.change_inventories("hp1", CUSTOM_A=Inventory(9, 9))
        specs = self.cloud.flavors[HP].extra_specs | {"group_policy": "none"}
        for group, named, unnamed in (
            ("AC", "C", "A"),
            ("CD", "CD", "AB"),
            # The host has both, but no provider of it.
            ("AB", "AB", "CD"),
        ):
            asked = {f"resources1:CUSTOM_{name}": "1" for name in group}
            self.cloud.change_flavor(HP, extra_specs=specs | asked)
            said = self.verdict()[1]
            for names, check in ((named, self.assertIn), (unnamed, self.assertNotIn)):
                for name in names:
                    check(f"CUSTOM_{name}: need 1", said)

    def test_no_provider_no_trait_no_inventory(self):
        self.cloud.add_host("g1", "shared")
        said = self.verdict()[1]
        self.assertIn("trait CUSTOM_PERFVM_HIGH_PERFORMANCE is missing", said)
        self.assertIn("PCPU: need 20, the host has none", said)
        gone = self.cloud.providers["g1"]
        self.cloud.providers["g1"] = dataclasses.replace(
            gone, uuid="other", root="other"
        )
        self.assertIn(const.PLACEMENT_NO_PROVIDER, self.code())

    def test_a_service_that_is_enabled_and_a_trait_that_is_not(self):
        self.cloud.add_host("hp1")
        traits = self.cloud.providers["hp1"].traits | {"COMPUTE_STATUS_DISABLED"}
        self.cloud.change_provider("hp1", traits=traits)
        # A nested provider does not have it.
        self.cloud.providers["nic"] = Provider(
            uuid="p-nic",
            name="nic",
            generation=1,
            inventories={},
            parent="p-hp1",
            root="p-hp1",
        )
        code, said = self.verdict()
        self.assertEqual(const.PLACEMENT_TRAIT_FORBIDDEN, code)
        self.assertIn("COMPUTE_STATUS_DISABLED is on hp1", said)
        # A disabled service is the reason, not the trait that follows from it.
        hosts = self.cloud.hosts
        hosts["hp1"] = dataclasses.replace(hosts["hp1"], enabled=False)
        self.assertEqual(const.SERVICE_DISABLED, self.code())

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

    def test_the_fallback_query(self):
        self.cloud.add_host("g1", "shared")
        specs = {"hw:cpu_policy": "dedicated"}
        self.cloud.change_flavor(HP, extra_specs=specs, vcpus=8)
        self.assertIn(const.PLACEMENT_NO_INVENTORY, self.code())
        self.assertNotIn("placement.", self.code(options={}))
        # If both queries fail, the reasons are those of the CPUs that the host has.
        self.cloud.add_host("hp1")
        self.cloud.allocate("other", "g1", {"VCPU": 156})
        self.cloud.allocate("other", "hp1", {"PCPU": 36})
        general, dedicated = (
            "; ".join(map(wording.words, verdict.reasons))
            for verdict in self.explain(options={}).verdicts
        )
        self.assertIn("VCPU: need 8, 4 of 160 free", general)
        self.assertNotIn("PCPU", general)
        self.assertIn("PCPU: need 8, 4 of 40 free", dedicated)
        self.assertNotIn("VCPU", dedicated)

    def test_what_placement_itself_says_counts(self):
        self.cloud.add_host("hp1")
        self.assertEqual(const.PLACEMENT_REFUSED, self.code(offered=frozenset()))
        self.cloud.allocate("other", "hp1", {const.RC_SLOT: 3})
        self.assertIn("-1 of 2 free", self.verdict()[1])
        self.assertEqual("", self.code(offered=frozenset({"p-hp1"})))

    def test_cells_that_nobody_knows(self):
        self.cloud.add_host("hp1")
        snapshot = blind(self.cloud.snapshot())
        self.cloud.snapshot = lambda: snapshot
        self.assertEqual(const.CELLS_UNKNOWN, self.code())

    def test_every_code_has_words(self):
        known = set(wording._WORDS)
        self.assertEqual(const.OUTER_CODES, known)


class NamesTest(ExplainCase):
    def test_servers_images_and_hosts_by_name(self):
        self.cloud.add_host("hp1")
        for name in ("a", "a2"):
            self.cloud.add_hp(name, "hp1", cells=(), status="ERROR")
            self.cloud.change_server(name, host=None, fault="No valid host.")
        self.cloud.change_provider("hp1", allocations={})
        self.cloud.parts["images"] = (
            Image("i1", "linux", {"hw_cpu_policy": "dedicated"}),
        )
        self.assertEqual("", self.code(server="a"))
        self.assertEqual(("a is ERROR: No valid host.",), self.about)
        # On no host, a server shows the zone that was asked for.
        self.cloud.change_server("a", availability_zone="east")
        # For a zone that no aggregate makes Nova does not look.
        self.assertEqual("", self.code(server="a"))
        zone = {"availability_zone": "east"}
        aggregate = Aggregate(1, "east", "east", zone, frozenset())
        self.cloud.parts["aggregates"] = (aggregate,)
        self.assertEqual(const.NOVA_AVAILABILITY_ZONE, self.code(server="a"))
        self.cloud.parts["zones_told"] = True
        self.assertEqual("", self.code(server="a"))
        self.cloud.change_server("a", bound_zone="east")
        self.assertEqual(const.NOVA_AVAILABILITY_ZONE, self.code(server="a"))
        self.cloud.change_flavor(GENERAL, extra_specs={})
        pinned = self.explain(GENERAL, image="linux").request.facts.pinned
        self.assertTrue(pinned)
        twin = dataclasses.replace(self.cloud.servers["a2"], name="a")
        self.cloud.servers["a2"] = twin
        for what, words in (
            ({"server": "b"}, "openstack server list --all-projects"),
            ({"server": "a"}, "name the ID: i-a, i-a2"),
            ({"flavor": "x"}, "no flavor 'x'"),
            ({"image": "x"}, "no image 'x'"),
            ({"host": "x"}, "no compute host 'x'"),
        ):
            error = self.assertRaises(NotFoundError, self.explain, **what)
            self.assertIn(words, str(error))
        self.cloud.parts["images"] = None
        error = self.assertRaises(NotFoundError, self.explain, image="linux")
        self.assertIn("leave --image out", str(error))


class TraitTest(ExplainCase):
    def test_some_hosts_are_not_said_to_be_novas(self):
        for name in ("hp1", "hp2"):
            self.cloud.add_host(name)
        self.assertNotIn("OWNER_NOVA", "".join(self.explain().notes))
        traits = self.cloud.providers["hp1"].traits | {"OWNER_NOVA"}
        self.cloud.change_provider("hp1", traits=traits)
        self.assertIn("no trait OWNER_NOVA on hp2: Nova 34", self.explain().notes[-1])


class LabelledTest(ExplainCase):
    """Hosts that have no label are none of the policy's."""

    POLICY = dataclasses.replace(POLICY, managed_hosts="labelled")

    def test_cells_where_no_rule_looks(self):
        options = {("workarounds", "disable_fallback_pcpu_query"): "false"}
        pinned = {"hw:cpu_policy": "dedicated"}
        for name, specs in (
            ("own", pinned),
            ("near", {"hw:numa_nodes": "1"}),
            ("apart", pinned | {"hw:numa_nodes": "2"}),
        ):
            self.cloud.flavors[name] = Flavor(name, name, 22, 1024, 0, specs)
        self.cloud.add_host("small")
        self.cloud.add_host("shared", "shared")
        self.cloud.add_host("free", "shared", "2x40")
        for name in ("large", "taken"):
            self.cloud.add_host(name, "dedicated", "2x40")
            self.cloud.add_hp(f"{name}-a", name)
        self.cloud.add_hp("c", "taken", 40, node=1)
        numa = const.NOVA_NUMA_TOPOLOGY
        for host, flavor, expected in (
            ("small", "own", numa),
            ("small", "apart", ""),
            ("shared", "near", numa),
            ("free", "near", ""),
            ("large", "own", ""),
            ("taken", "own", numa),
        ):
            code, said = self.verdict(flavor, options=options, host=host)
            self.assertEqual(expected, code, (host, flavor, said))
        self.assertEqual(
            "NUMATopologyFilter of Nova finds no NUMA nodes for 0 shared + 22 pinned "
            "vCPUs with 1024 MiB",
            said,
        )

    def test_what_numa_topology_filter_refuses(self):
        """Memory, pages, threads and emulator threads, where no rule looks."""
        pinned = {"hw:cpu_policy": "dedicated"}
        self.cloud.add_host("h1", memory_gb=480)
        for name, vcpus, memory_gb, specs, words in (
            ("memory of one node", 4, 300, {}, "4 pinned vCPUs with 307200 MiB"),
            (
                "pages that no node has",
                20,
                64,
                {"hw:mem_page_size": "large"},
                "hw:mem_page_size=large",
            ),
            (
                "a CPU for the emulator threads",
                20,
                4,
                {"hw:emulator_threads_policy": "isolate"},
                "hw:emulator_threads_policy=isolate",
            ),
        ):
            flavor = Flavor("f", "f", vcpus, memory_gb * 1024, 0, pinned | specs)
            self.cloud.flavors["f"] = flavor
            code, said = self.verdict("f")
            self.assertEqual(const.NOVA_NUMA_TOPOLOGY, code, name)
            self.assertIn(words, said, name)

    def test_pages_that_no_api_shows(self):
        """Every node has small pages; its huge pages are in Nova's database only."""
        self.cloud.add_host("h1")
        pinned = {"hw:cpu_policy": "dedicated"}
        for size, code, noted in (
            ("small", "", False),
            ("4", "", False),
            ("any", "", False),
            ("large", const.NOVA_NUMA_TOPOLOGY, True),
            ("1GB", const.NOVA_NUMA_TOPOLOGY, True),
        ):
            specs = pinned | {const.MEM_PAGE_SIZE: size}
            self.cloud.flavors["f"] = Flavor("f", "f", 4, 1024, 0, specs)
            found = self.explain("f")
            self.assertEqual(code, found.verdicts[0].code)
            said = "huge pages of 1 host are not known" in "; ".join(found.notes)
            self.assertEqual(noted, said, found.notes)

    def test_threads_that_cores_do_not_have(self):
        """The image asks for SMT, and Placement finds the host by VCPU."""
        self.cloud.add_host("h1")
        self.cloud.change_inventories("h1", PCPU=None, VCPU=Inventory(40, 40))
        specs = {"hw:cpu_policy": "dedicated"}
        self.cloud.flavors["f"] = Flavor("f", "f", 4, 1024, 0, specs)
        image = Image("i", "i", {"hw_cpu_thread_policy": "require"})
        self.cloud.parts["images"] = (image,)
        code, said = self.verdict("f", image="i", options={})
        self.assertEqual(const.NOVA_NUMA_TOPOLOGY, code)
        self.assertIn("hw:cpu_thread_policy=require", said)


class UnitsCase(ExplainCase):
    POLICY = UNITS

    def add_elastic(self, name="e1", slots=2):
        self.cloud.add_elastic(name, slots)

    def add_general_to(self, host, name):
        self.cloud.add_general(name, host)
        self.cloud.allocate_units(f"i-{name}", host)


class UnitsTest(UnitsCase):
    def test_who_holds_the_units(self):
        for slots, generals, pinned, flavor, words in (
            (2, 0, False, HP, ""),
            (2, 0, False, GENERAL, ""),
            (2, 3, False, HP, "e1_perfvm_a gives a VM 1000 at most, 3 of 1000 held by"),
            (2, 3, False, HP, "held by 3 general VMs"),
            (2, 0, True, GENERAL, "e1_perfvm_b gives a VM 1000 at most, 1000 of 1000"),
            (2, 0, True, GENERAL, "held by i-vm1"),
            (0, 0, False, HP, "e1_perfvm_a gives a VM 999 at most"),
        ):
            self.cloud = Cloud(self.POLICY)
            self.add_elastic(slots=slots)
            for n in range(generals):
                self.add_general_to("e1", f"g{n}")
            if pinned:
                self.cloud.add_hp("vm1", "e1")
                self.cloud.allocate("i-vm1", "e1_perfvm_b", {const.RC_UNIT: 1000})
            code, said = self.verdict(flavor)
            self.assertIn(words, said)
            self.assertEqual(bool(words), const.PLACEMENT_UNITS in code)

    def test_others_take_all_that_are_to_go(self):
        for name, vcpus in (("e1", 160), ("e2", 4)):
            self.add_elastic(name, slots=1)
            self.cloud.change_inventories(name, VCPU=Inventory(vcpus, vcpus))
        for name in "ab":
            self.add_general_to("e1", name)
        self.assertEqual("host e1: migrate a (i-a), b (i-b)", self.fix())
        self.cloud.change_inventories("e2", VCPU=Inventory(2, 2))
        self.assertEqual("None", self.fix())
        self.assertIn(
            "for which other hosts lack room are on: e1", self.explain().notes[-1]
        )

    def test_isolated_aggregates(self):
        self.add_elastic()
        self.cloud.change_flavor(GENERAL, extra_specs={})
        lacking = "host.units_lacking"
        code, said = self.verdict(GENERAL)
        self.assertEqual(f"{const.PLACEMENT_ISOLATED}, {lacking}", code)
        self.assertIn("requests with trait CUSTOM_PERFVM_ELASTIC_2 only", said)
        # The filter closes the host even where Nova does not isolate aggregates.
        self.assertEqual(lacking, self.code(GENERAL, options={}))

    def test_groups_that_fit_one_by_one_only(self):
        self.add_elastic()
        specs = {
            "group_policy": "none",
            f"resources_x:{const.RC_UNIT}": "600",
            f"resources_y:{const.RC_UNIT}": "600",
            f"resources_z:{const.RC_UNIT}": "600",
            f"trait:{TRAIT}": "required",
        }
        self.cloud.change_flavor(GENERAL, extra_specs=specs)
        expected = f"{const.PLACEMENT_GROUPS}, flavor.resources"
        self.assertEqual(expected, self.code(GENERAL))
        del specs[f"resources_z:{const.RC_UNIT}"]
        self.cloud.change_flavor(GENERAL, extra_specs=specs)
        self.assertEqual("flavor.resources", self.code(GENERAL))

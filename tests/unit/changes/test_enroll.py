# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm.changes import steps as do
from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.changes.unenroll import kept_aggregates, plan_forget, plan_unenroll
from nova_perfvm.diagnose.residents import divide
from nova_perfvm.facts.placement_request import elastic_traits
from nova_perfvm.facts.snapshot import (
    CREATED,
    DISABLED_REASON,
    Aggregate,
    Inventory,
    Provider,
    isolating,
)
from nova_perfvm.placement.contract import contract
from nova_perfvm.placement.host_schemes.units import children_named
from nova_perfvm.placement.schemes import units
from nova_perfvm.policy import HostShape, loader
from tests.unit.changes.elastic import (
    AGGREGATE,
    CLASS,
    FOUR,
    FOUR_TRAIT,
    ISOLATING,
    LABELLED,
    POLICY,
    ROOT,
    TRAIT,
    WIDE,
    after,
    damaged,
    having,
    high,
    in_order,
    server,
    view,
)

OFF = {"enabled": False, "disabled_reason": DISABLED_REASON}


class PlanCase(testtools.TestCase):
    def carried_out(self, seen, plan, **options):
        """Carry out a plan, look at each state on the way, and give the last.

        A run that starts from any of these states has to come to the same end.
        """
        states = [seen]
        made = plan(seen, **options)
        self.assertEqual((), made.refusals)
        for change in made.changes:
            self.assertTrue(str(change))
            states.append(after(states[-1], change))
        for state in states:
            self.assertTrue(state.closed or not state.enrolled)
            end = after(state, *plan(state, **options).changes)
            made = {a.name: a.metadata for a in states[-1].cloud.aggregates}
            # Whose an aggregate without metadata is nobody knows any more.
            bare = {a.name for a in state.cloud.aggregates if not a.metadata}
            aggregates = tuple(
                dataclasses.replace(a, metadata=made[a.name])
                if a.name in bare & made.keys()
                else a
                for a in end.cloud.aggregates
            )
            end = having(end, aggregates=aggregates)
            self.assertEqual(in_order(states[-1]), in_order(end))
        self.assertEqual((), plan(states[-1], **options).changes)
        return states[-1]

    def enrolled(self, seen, policy=POLICY, **options):
        return self.carried_out(
            seen, lambda v, **o: plan_enroll(policy, v, **o), **options
        )

    def assert_same(self, expected, seen):
        self.assertEqual(in_order(expected), in_order(seen))

    def units(self, seen):
        return [child.units() for child in seen.children]

    def slots(self, seen):
        return sum(child.gives_all_units for child in seen.children)

    def assert_refused(self, words, seen, policy=POLICY, **options):
        plan = plan_enroll(policy, seen, **options)
        self.assertEqual((), plan.changes)
        self.assertIn(words, "; ".join(plan.refusals))


class EnrollTest(PlanCase):
    def test_an_empty_host(self):
        for resource in ("VCPU", "PCPU"):
            seen = view(resource=resource)
            changes = plan_enroll(POLICY, seen).changes
            kinds = [type(change) for change in changes]
            # First it is isolated, last it is opened.
            self.assertLess(kinds.index(do.AddHost), kinds.index(do.CreateChild))
            self.assertTrue(changes[-1].opens)
            host = self.enrolled(seen)
            self.assertTrue(host.enrolled)
            self.assertEqual({"h1"}, host.cloud.aggregates[0].hosts)
            stock = {const.RC_UNIT: Inventory(1000, 1000)}
            self.assertEqual(
                [("h1_perfvm_a", stock), ("h1_perfvm_b", stock)],
                [(c.name, c.inventories) for c in host.children],
            )
            # Dedicated hosts keep general VMs away.
            has = const.TRAIT_HIGH_PERFORMANCE in host.root.traits
            self.assertEqual(resource == "PCPU", has)

    def test_another_aggregate_that_isolates(self):
        mine = Aggregate(7, "uuid-mine", "mine", ISOLATING, frozenset({"h1"}))
        host = self.enrolled(view(aggregates=(mine,)))
        self.assertEqual(("mine",), tuple(a.name for a in host.cloud.aggregates))
        self.assertEqual({"uuid-mine"}, host.root.aggregates)

    def test_a_label_where_only_such_hosts_are_judged(self):
        label = frozenset({"high-performance", "general"})
        host = self.enrolled(view(), LABELLED)
        self.assertEqual(label, host.cloud.aggregates[0].labels)
        # Enrolled when the policy said all hosts.
        seen = self.enrolled(view())
        (change,) = plan_enroll(LABELLED, seen).changes
        self.assertIn("and perfvm:class=high-performance,general on", str(change))
        self.assert_same(host, self.enrolled(seen, LABELLED))
        # One that an operator has labelled keeps his.
        own = Aggregate(7, "u7", "own", CLASS, frozenset({"h1"}))
        host = self.enrolled(view(aggregates=(own,)), LABELLED)
        self.assertEqual(
            {"own": {"high-performance"}, AGGREGATE: set()},
            {a.name: a.labels for a in host.cloud.aggregates},
        )

    def test_repairs(self):
        good = self.enrolled(view())
        child = good.children[0]
        for damage in (
            {"inventories": {const.RC_UNIT: Inventory(9000, 9000)}},
            {"inventories": {const.RC_UNIT: Inventory(1000, 1000, reserved=1)}},
            {"inventories": {}},
            {"traits": frozenset()},
            {"traits": child.traits | {units.child_trait("b")}},
        ):
            self.assert_same(good, self.enrolled(damaged(good, child.uuid, **damage)))
        surplus = Provider("u", "h1_perfvm_c", 3, parent=ROOT, root=ROOT)
        more = having(good, providers=(*good.cloud.providers, surplus))
        fewer = self.enrolled(more)
        self.assertEqual(["h1_perfvm_c"], [c.name for c in fewer.detached])
        self.assert_same(good, self.enrolled(fewer, delete_children=True))
        # Other children are not ours.
        bandwidth = {"NET_BW": Inventory(10, 10)}
        nic = Provider("n", "h1_nic", 3, bandwidth, parent=ROOT, root=ROOT)
        self.assertIn(nic, self.enrolled(view(others=(nic,))).tree)

    def test_refused(self):
        odd = {"perfvm:class": "high-performance"}
        moving = dataclasses.replace(server("m"), task="migrating")
        resized = dataclasses.replace(server("m"), status="VERIFY_RESIZE")
        taken = Provider("other", "h1_perfvm_a", 1, parent="h2", root="h2")
        used = self.enrolled(view(high("a")), backfill=True)
        child = used.children[0].uuid
        overused = damaged(used, child, allocations={"a": {const.RC_UNIT: 1001}})
        both = view()
        both.root.inventories["PCPU"] = Inventory(20, 20)
        stray = view()
        stray.root.allocations["m1"] = {"VCPU": 2}
        small = self.enrolled(view())
        (mine,) = small.cloud.aggregates
        named = dataclasses.replace(mine, name="perfvm-elastic-4")
        backfill = {"backfill": True}
        for words, seen, policy, options in (
            ("placement: slots", view(), loader.load(), {}),
            ("--slots N", view(total=38), POLICY, {}),
            ("gives a host 0 to 2", view(), POLICY, {"slots": 3}),
            ("both PCPU and VCPU", both, POLICY, {}),
            (
                "h1_perfvm_a (other) exists outside of",
                view(others=(taken,)),
                POLICY,
                {},
            ),
            # What is in use is not shrunk.
            ("move them away", used, POLICY, {"slots": 0}),
            ("and 1001 are in use by a (a)", overused, POLICY, backfill),
            (
                "is for hosts with CUSTOM_PERFVM_ELASTIC_2, and policy hosts have",
                having(small, aggregates=(named,)),
                FOUR,
                {},
            ),
            ("--backfill", view(server("a")), POLICY, {}),
            (
                "1 high-performance VMs (a (a)) and 1 gen",
                view(high("a"), server("b")),
                POLICY,
                backfill,
            ),
            ("and takes 2 of the former", view(*map(high, "abc")), POLICY, backfill),
            *(
                ("matches no class", view(found), POLICY, backfill)
                for found in (
                    server("a", 4, pinned=True),
                    server("a", 4, pinned=True, **odd),
                    server("a", 20, **odd),
                    server("a", 2, **{"perfvm:class": "gold"}),
                )
            ),
            ("is being changed (migrating)", view(moving), POLICY, backfill),
            ("is being changed (VERIFY_RESIZE)", view(resized), POLICY, backfill),
            ("what is left of one) holds units", stray, POLICY, backfill),
        ):
            self.assert_refused(words, seen, policy, **options)
        self.patch(const, "UNITS_PER_CHILD", 2)
        seen = view(*map(server, "abc"))
        self.assert_refused("2 of the latter: move the others away", seen, **backfill)


class SlotsTest(PlanCase):
    def test_by_shape(self):
        for resource, shape, total, expected in (
            ("VCPU", None, 40, 2),
            ("PCPU", None, 40, 2),
            ("VCPU", "1x20", 20, 1),
            ("VCPU", "2x20x2", 80, 2),
            ("VCPU", "4x10", 40, 0),
            ("VCPU", "4x20", 80, 2),
            # One thread of each core.
            ("PCPU", "2x20x2", 40, 2),
            ("VCPU", "2x20x2", 40, 2),
        ):
            parsed = shape and HostShape.parse(shape)
            seen = view(resource=resource, total=total, shape=parsed)
            self.assertEqual(expected, self.slots(self.enrolled(seen)))

    def test_half_of_the_threads(self):
        """With ``smt: threads`` half of the CPUs are not one of each core."""
        (vm_class, *others) = POLICY.classes
        threads = dataclasses.replace(vm_class, smt="threads")
        shape = HostShape.parse("2x20x2")
        changes = {"classes": (threads, *others), "host_shapes": (shape,)}
        policy = dataclasses.replace(POLICY, **changes)
        for resource in ("VCPU", "PCPU"):
            seen = view(resource=resource, total=40, shape=shape)
            self.assert_refused("say --slots N", seen, policy)

    def test_as_asked_and_kept(self):
        host = self.enrolled(view(), slots=1)
        self.assertEqual(1, self.slots(host))
        self.assertEqual((), plan_enroll(POLICY, host).changes)
        self.assertEqual(2, self.slots(self.enrolled(host, slots=2)))
        both = view()
        both.root.inventories["PCPU"] = Inventory(20, 20)
        self.assertEqual(0, self.slots(self.enrolled(both, slots=0)))


class BackfillTest(PlanCase):
    def test_what_vms_take(self):
        (vm_class, *others) = POLICY.classes
        vm_class = dataclasses.replace(vm_class, vcpus=18, former_vcpus=(20,))
        former = dataclasses.replace(POLICY, classes=(vm_class, *others))
        for policy, vms, expected in (
            (POLICY, (high("a"), high("b")), [{"a": 1000}, {"b": 1000}]),
            (former, (high("a"),), [{"a": 1000}, {}]),
            (POLICY, (server("a"), server("b")), [{"a": 1, "b": 1}] * 2),
        ):
            host = self.enrolled(view(*vms), policy, backfill=True)
            self.assertEqual(expected, self.units(host))
            self.assertTrue(host.compute.enabled)

    def test_the_service_is_off_meanwhile(self):
        changes = plan_enroll(POLICY, view(server("a")), backfill=True).changes
        kinds = [type(change) for change in changes]
        off, on = (i for i, kind in enumerate(kinds) if kind is do.SetService)
        self.assertLess(off, kinds.index(do.Allocate))
        self.assertEqual([do.SetService, do.SetTraits], kinds[on:])
        self.assertTrue(changes[-1].opens)
        # One that was off stays so.
        off = {"enabled": False, "disabled_reason": "a fan"}
        host = self.enrolled(view(server("a"), service=off), backfill=True)
        self.assertEqual("a fan", host.compute.disabled_reason)

    def test_servers_without_an_allocation(self):
        for found, resource, amounts, expected in (
            (high("a"), "VCPU", {"VCPU": 20}, [{"a": 1000}, {}]),
            (high("a"), "PCPU", {"PCPU": 20}, [{"a": 1000}, {}]),
            (server("a"), "VCPU", {"VCPU": 2}, [{"a": 1}, {"a": 1}]),
        ):
            pinned = {"hw:cpu_policy": "dedicated"} if found.pinned else {}
            asked = {f"resources1:{const.RC_UNIT}": "9"}
            specs = {**found.extra_specs, **pinned, **asked}
            lost = dataclasses.replace(found, extra_specs=specs)
            seen = view(lost, resource=resource)
            del seen.root.allocations["a"]
            self.assert_refused("VMs without units: a (a)", seen)
            host = self.enrolled(seen, backfill=True)
            self.assertEqual({"a": amounts}, host.root.allocations)
            self.assertEqual(expected, self.units(host))

    def test_an_allocation_that_cannot_be_made_again(self):
        lost = dataclasses.replace(server("a"), disk_gb=20, image="i")
        seen = view(lost)
        del seen.root.allocations["a"]
        self.assert_refused("has no DISK_GB", seen, backfill=True)
        # Volumes are none of Placement's.
        seen = having(seen, servers=(dataclasses.replace(lost, image=None),))
        self.assertEqual((), plan_enroll(POLICY, seen, backfill=True).refusals)
        moving = dataclasses.replace(lost, task="migrating")
        seen = having(seen, servers=(moving,))
        self.assert_refused("is being changed (migrating)", seen, backfill=True)


class AnotherNumberTest(PlanCase):
    """Hosts that were enrolled for another number of children."""

    def changed(self, seen, policy, **options):
        """Enroll anew; look that nobody is let in before all is done."""
        plan = plan_enroll(policy, seen, **options)
        self.assertEqual((), plan.refusals)
        first = next(c for c in plan.changes if not isinstance(c, do.CreateName))
        self.assertEqual(frozenset(), elastic_traits(first.traits))
        opening = [c for c in plan.changes if getattr(c, "opens", False)]
        (opened,) = opening
        later = plan.changes[plan.changes.index(opened) + 1 :]
        self.assertEqual((), later)
        host = self.enrolled(seen, policy, **options)
        trait = units.UNITS.enrolled_trait(policy)
        self.assertEqual({trait}, host.root.elastic_traits)
        (aggregate,) = host.isolated_by
        self.assertEqual({trait}, aggregate.elastic_traits)
        self.assertEqual({aggregate.uuid}, host.root.aggregates)
        return host

    def test_more_and_fewer_on_an_empty_host(self):
        two = self.enrolled(view(total=80, shape=WIDE))
        four = self.changed(two, FOUR)
        self.assertEqual((4, 4), (len(four.children), self.slots(four)))
        self.assertEqual(["perfvm-elastic-4"], [a.name for a in four.cloud.aggregates])
        back = self.changed(four, POLICY)
        self.assertEqual((2, 2), (len(back.children), self.slots(back)))
        self.assertEqual([AGGREGATE], [a.name for a in back.cloud.aggregates])
        # Slots that were chosen stay.
        for slots in (0, 1):
            two = self.enrolled(view(total=80, shape=WIDE), slots=slots)
            self.assertEqual(slots, self.slots(self.changed(two, FOUR)))

    def test_the_aggregate_has_other_hosts_or_other_metadata(self):
        good = self.enrolled(view(), FOUR)
        (old,) = good.cloud.aggregates
        for facts, left in (
            ({"hosts": frozenset({"h1", "h2"})}, {"perfvm-elastic-4", AGGREGATE}),
            ({"metadata": isolating(FOUR_TRAIT)}, {old.name, AGGREGATE}),
            ({"metadata": {**old.metadata, "ssd": "1"}}, {old.name, AGGREGATE}),
        ):
            kept = dataclasses.replace(old, **facts)
            seen = having(good, aggregates=(kept,))
            host = self.changed(seen, POLICY)
            self.assertEqual(left, {a.name for a in host.cloud.aggregates})

    def test_placement_knows_the_old_aggregate_still(self):
        """Nova only logs where it fails to tell Placement."""
        good = self.enrolled(view())
        old = Aggregate(9, "u9", "old", isolating(FOUR_TRAIT), frozenset())
        seen = having(good, aggregates=(*good.cloud.aggregates, old))
        known = good.root.aggregates
        seen = damaged(seen, ROOT, aggregates=known | {"u9"})
        self.assertEqual(known, self.enrolled(seen).root.aggregates)

    def test_general_vms_get_and_lose_units(self):
        seen = view(server("a"), server("b"), total=80, shape=WIDE)
        two = self.enrolled(seen, backfill=True)
        self.assert_refused("without units: a (a), b (b)", two, FOUR)
        four = self.changed(two, FOUR, backfill=True)
        self.assertEqual([{"a": 1, "b": 1}] * 4, self.units(four))
        self.assertTrue(four.compute.enabled)
        self.assert_refused("hold units of other children: a (a), b (b)", four)
        two = self.changed(four, POLICY, backfill=True)
        self.assertEqual([{"a": 1, "b": 1}] * 2, self.units(two))

    def test_high_performance_vms_take_a_child_that_stays(self):
        four = self.enrolled(
            view(*map(high, "abc"), total=80, shape=WIDE), FOUR, backfill=True
        )
        self.assert_refused("and takes 2 of the former", four, backfill=True)
        # A migration holds a child which is to go.
        held = {"m": {const.RC_UNIT: 1000}}
        held = damaged(four, four.children[3].uuid, allocations=held)
        self.assert_refused("what is left of one) holds units", held, backfill=True)
        gone = having(four, servers=four.servers[1:])
        gone = damaged(gone, ROOT, allocations={c: {"VCPU": 20} for c in "bc"})
        gone = damaged(gone, four.children[0].uuid, allocations={})
        two = self.changed(gone, POLICY, backfill=True)
        self.assertEqual([{"c": 1000}, {"b": 1000}], self.units(two))


class UnenrollTest(PlanCase):
    def test_all_goes(self):
        for policy in (POLICY, LABELLED):
            good = self.enrolled(view(), policy)
            changes = plan_unenroll(good, delete_children=True).changes
            kinds = [type(change) for change in changes]
            self.assertIs(do.SetTraits, kinds[0])
            self.assertEqual([do.RemoveHost, do.DeleteAggregate], kinds[-2:])
            self.assertNotIn(do.DeleteChild, kinds)
            host = self.carried_out(good, plan_unenroll)
            # nova-compute may know them still.
            self.assertEqual(
                ["h1_perfvm_a", "h1_perfvm_b"], [c.name for c in host.detached]
            )
            self.assert_same(good, self.enrolled(host, policy))
            host = self.carried_out(host, plan_unenroll, delete_children=True)
            self.assert_same(view(names=host.cloud.names), host)

    def test_vms_with_units(self):
        host = self.enrolled(view(server("a")), backfill=True)
        plan = plan_unenroll(host)
        self.assertEqual((), plan.changes)
        # What the whole cloud would lose is no remedy for one host.
        (refusal,) = plan.refusals
        self.assertEqual(
            "VMs on h1 carry units: a (a): move them away: openstack perfvm plan "
            "drain h1 --execute",
            refusal,
        )
        for where, words in (
            ("", "a (a, which is on no host yet): move"),
            ("h2", "a (a, which Nova has on h2): move"),
        ):
            moved = dataclasses.replace(server("a"), host=where)
            plan = plan_unenroll(having(host, servers=(moved,)))
            self.assertIn(words, plan.refusals[0])
        bare = self.carried_out(host, plan_unenroll, strip=True)
        self.assertEqual(((), 2), (bare.children, len(bare.detached)))

    def test_a_host_that_is_installed_anew(self):
        """Its provider is another one, and so are its children from then on."""
        good = self.enrolled(view())
        gone = self.carried_out(good, plan_unenroll)
        old = "11111111-1111-4111-8111-111111111111"
        others = [
            dataclasses.replace(p, uuid=old, root=old) if p.name == "h1_perfvm_a" else p
            for p in gone.cloud.providers
        ]
        seen = having(gone, providers=tuple(others))
        self.assertEqual(2, len(seen.detached))
        self.assert_same(good, self.enrolled(seen))

    def test_aggregates_of_others_stay(self):
        for metadata in (ISOLATING, ISOLATING | CREATED | {"ssd": "true"}):
            # Also one that would be empty, and that has the name enroll gives.
            for name in ("mine", AGGREGATE):
                hosts = frozenset({"h1"})
                mine = Aggregate(7, f"uuid-{name}", name, metadata, hosts)
                host = self.enrolled(view(aggregates=(mine,)))
                host = self.carried_out(host, plan_unenroll)
                (kept,) = host.cloud.aggregates
                (said,) = kept_aggregates([kept])
                self.assertIn(f"openstack aggregate delete {name}", said)
                emptied = view(aggregates=(kept,))
                self.assertEqual((), plan_unenroll(emptied).changes)

    def test_aggregates_that_a_run_has_left(self):
        emptied = Aggregate(7, "u", "rack2", ISOLATING | CREATED, frozenset())
        self.assertEqual(
            (do.DeleteAggregate("rack2"),),
            plan_unenroll(view(aggregates=(emptied,))).changes,
        )
        self.assertEqual([], list(kept_aggregates([emptied])))
        # Nobody can tell whether enroll was cut off, or an operator is at work.
        bare = dataclasses.replace(emptied, name=AGGREGATE, metadata={})
        isolate = do.IsolateAggregate(AGGREGATE, TRAIT)
        self.assertIn(isolate, plan_enroll(POLICY, view(aggregates=(bare,))).changes)
        self.assertEqual(1, len(list(kept_aggregates([bare]))))
        other = dataclasses.replace(bare, name="rack2")
        self.assertEqual([], list(kept_aggregates([other])))

    def test_names_are_quoted(self):
        left = view()
        cut_off = dataclasses.replace(
            left.compute,
            host="a; reboot",
            **OFF,
        )
        (said,) = dataclasses.replace(left, compute=cut_off).remains
        self.assertIn("--enable 'a; reboot' nova-compute", said)

    def test_forget(self):
        record = Aggregate(3, "p", "perfvm-policy", {"perfvm:policy": "0"}, frozenset())
        names = [const.RC_UNIT, TRAIT, const.TRAIT_HIGH_PERFORMANCE]
        changes = plan_forget(names, [record]).changes
        self.assertEqual(
            (
                do.DeleteAggregate("perfvm-policy"),
                do.DeleteName(TRAIT, "trait"),
                do.DeleteName(const.RC_UNIT, "resource class"),
            ),
            changes,
        )
        # One to which somebody has added a host stays.
        used = dataclasses.replace(record, hosts=frozenset({"h1"}))
        self.assertEqual((), plan_forget([], [used]).changes)
        self.assertEqual(1, len(list(kept_aggregates([used, record]))))


class SharesTest(testtools.TestCase):
    def test_what_enrolling_gives_is_the_contract(self):
        """By whose flavor asks for units, and by whose is given them later."""
        for policy in (POLICY, FOUR):
            slots = units.children_per_host(policy)
            children = children_named(policy, "h1", slots)
            traits = {child.name: child.trait for child in children}
            for vm_class, resident in (("high-performance", high), ("general", server)):
                shares = divide(policy, view(resident("vm")), children)

                lacking = shares.lacking["vm"]
                given = {child: sum(n.values()) for child, n in lacking.items()}
                expected = contract(policy, policy.get_class(vm_class), 65536)
                amounts = units.UNITS.amounts(policy, policy.get_class(vm_class), 65536)
                self.assertEqual(amounts, {const.RC_UNIT: sum(given.values())})
                groups = [g for g in expected.groups if const.RC_UNIT in g.resources]
                self.assertEqual(len(groups), len(given))
                for group in groups:
                    # An amount without a suffix may come of any child.
                    fits = {
                        name
                        for name in given
                        if not group.suffix or group.required <= {traits[name]}
                    }
                    self.assertIn(
                        group.resources[const.RC_UNIT], {given[n] for n in fits}
                    )

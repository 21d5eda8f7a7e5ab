# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm.changes import steps as do
from nova_perfvm.changes.enroll import plan_enroll, shared_steps
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
from nova_perfvm.placement.schemes import units
from nova_perfvm.policy import Elastic, HostShape, loader
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

    def assert_refused(self, words, seen, policy=POLICY, **options):
        plan = plan_enroll(policy, seen, **options)
        self.assertEqual((), plan.changes)
        self.assertIn(words, "; ".join(plan.refusals))


class EnrollTest(PlanCase):
    def test_an_empty_host(self):
        host = self.enrolled(view())
        self.assertTrue(host.enrolled)
        self.assertEqual({"h1"}, host.cloud.aggregates[0].hosts)
        self.assertEqual(
            [(c.name, {const.RC_UNIT: Inventory(1000, 1000)}) for c in host.children],
            [(c.name, c.inventories) for c in host.children],
        )
        self.assertEqual(
            ["h1_perfvm_a", "h1_perfvm_b"], [c.name for c in host.children]
        )

    def test_first_isolated_last_opened(self):
        changes = plan_enroll(POLICY, view()).changes
        kinds = [type(change) for change in changes]
        self.assertLess(kinds.index(do.AddHost), kinds.index(do.CreateChild))
        self.assertTrue(changes[-1].opens)

    def test_dedicated_hosts_keep_general_vms_away(self):
        for resource, expected in (("PCPU", True), ("VCPU", False)):
            host = self.enrolled(view(resource=resource))
            has = const.TRAIT_HIGH_PERFORMANCE in host.root.traits
            self.assertEqual(expected, has)

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
            with self.subTest(damage):
                self.assert_same(
                    good, self.enrolled(damaged(good, child.uuid, **damage))
                )
        surplus = Provider("u", "h1_perfvm_c", 3, parent=ROOT, root=ROOT)
        more = having(good, providers=(*good.cloud.providers, surplus))
        fewer = self.enrolled(more)
        self.assertEqual(["h1_perfvm_c"], [c.name for c in fewer.detached])
        self.assert_same(good, self.enrolled(fewer, delete_children=True))

    def test_other_children_are_not_ours(self):
        bandwidth = {"NET_BW": Inventory(10, 10)}
        nic = Provider("n", "h1_nic", 3, bandwidth, parent=ROOT, root=ROOT)
        self.assertIn(nic, self.enrolled(view(others=(nic,))).tree)

    def test_what_is_in_use_is_not_shrunk(self):
        host = self.enrolled(view(high("a")), backfill=True)
        self.assert_refused("move them away", host, slots=0)
        # As somebody left it who changed the inventory by hand.
        child = damaged(
            host, host.children[0].uuid, allocations={"a": {const.RC_UNIT: 1001}}
        )
        self.assert_refused("and 1001 are in use by a (a)", child, backfill=True)

    def test_a_name_that_is_taken(self):
        taken = Provider("other", "h1_perfvm_a", 1, parent="h2", root="h2")
        taken = view(others=(taken,))
        self.assert_refused("h1_perfvm_a (other) exists below another one", taken)

    def test_what_several_hosts_share(self):
        other = view(host="h2")
        plans = [plan_enroll(POLICY, seen) for seen in (view(), other)]
        steps = shared_steps(plans)
        self.assertEqual(len(set(steps)), len(steps))
        aggregate = [step for step in steps if not isinstance(step, do.CreateName)]
        self.assertEqual(
            [
                do.CreateAggregate(AGGREGATE),
                do.IsolateAggregate(AGGREGATE, TRAIT, created=True),
            ],
            aggregate,
        )
        seen = other
        for step in steps:
            seen = after(seen, step)
        self.assertEqual((), shared_steps([plan_enroll(POLICY, seen)]))

    def test_another_scheme(self):
        self.assert_refused("placement: slots", view(), loader.load())


class SlotsTest(PlanCase):
    def whole(self, seen, **options):
        host = self.enrolled(seen, **options)
        units = [c.inventories[const.RC_UNIT].max_unit for c in host.children]
        return units.count(1000)

    def test_by_shape(self):
        self.assertEqual(2, self.whole(view()))
        self.assertEqual(2, self.whole(view(resource="PCPU")))
        for shape, total, expected in (
            ("1x20", 20, 1),
            ("2x20x2", 80, 2),
            ("4x10", 40, 0),
            ("4x20", 80, 2),
        ):
            seen = view(total=total, shape=HostShape.parse(shape))
            self.assertEqual(expected, self.whole(seen), shape)

    def test_one_thread_of_each_core(self):
        seen = view(resource="PCPU", shape=HostShape.parse("2x20x2"))
        self.assertEqual(2, self.whole(seen))

    def test_as_asked_and_kept(self):
        host = self.enrolled(view(), slots=1)
        self.assertEqual(1, self.whole(host))
        self.assertEqual((), plan_enroll(POLICY, host).changes)
        self.assertEqual(2, self.whole(host, slots=2))

    def test_unknown(self):
        self.assert_refused("--slots N", view(total=38))
        self.assert_refused("gives a host 0 to 2", view(), slots=3)
        both = view()
        both.root.inventories["PCPU"] = Inventory(20, 20)
        self.assert_refused("both PCPU and VCPU", both)
        self.assertEqual(0, self.whole(both, slots=0))


class BackfillTest(PlanCase):
    def test_without_it(self):
        self.assert_refused("--backfill", view(server("a")))

    def test_high_performance_vms_take_a_child_each(self):
        host = self.enrolled(view(high("a"), high("b")), backfill=True)
        self.assertEqual([{"a": 1000}, {"b": 1000}], self.units(host))
        self.assertTrue(host.compute.enabled)

    def test_vms_of_a_former_size_take_a_child_too(self):
        (vm_class, *others) = POLICY.classes
        vm_class = dataclasses.replace(vm_class, vcpus=18, former_vcpus=(20,))
        policy = dataclasses.replace(POLICY, classes=(vm_class, *others))
        host = self.carried_out(
            view(high("a")), lambda v: plan_enroll(policy, v, backfill=True)
        )
        self.assertEqual([{"a": 1000}, {}], self.units(host))

    def test_general_vms_take_one_of_each(self):
        host = self.enrolled(view(server("a"), server("b")), backfill=True)
        self.assertEqual([{"a": 1, "b": 1}] * 2, self.units(host))

    def test_the_service_is_off_meanwhile(self):
        changes = plan_enroll(POLICY, view(server("a")), backfill=True).changes
        kinds = [type(change) for change in changes]
        off, on = (i for i, kind in enumerate(kinds) if kind is do.SetService)
        self.assertLess(off, kinds.index(do.Allocate))
        self.assertEqual(len(kinds) - 1, on)

    def test_a_service_that_was_off_stays_so(self):
        off = {"enabled": False, "disabled_reason": "a fan"}
        host = self.enrolled(view(server("a"), service=off), backfill=True)
        self.assertEqual("a fan", host.compute.disabled_reason)

    def test_refused(self):
        odd = {"perfvm:class": "high-performance"}
        moving = dataclasses.replace(server("m"), task="migrating")
        for words, servers in (
            ("1 high-performance VMs (a (a)) and 1 gen", [high("a"), server("b")]),
            ("and takes 2 of the former", [high(n) for n in "abc"]),
            ("is not as VMs of a class", [server("a", 4, pinned=True)]),
            ("is not as VMs of a class", [server("a", 4, pinned=True, **odd)]),
            ("is not as VMs of a class", [server("a", 20, **odd)]),
            ("is not as VMs of a class", [server("a", 2, **{"perfvm:class": "gold"})]),
            ("is being changed (migrating)", [moving]),
        ):
            with self.subTest(words):
                self.assert_refused(words, view(*servers), backfill=True)

    def test_more_than_there_are_units(self):
        self.patch(const, "UNITS_PER_CHILD", 2)
        servers = [server(name) for name in "abc"]
        self.assert_refused(
            "2 of the latter: move the others away", view(*servers), backfill=True
        )

    def test_consumers_that_are_no_servers(self):
        seen = view()
        seen.root.allocations["m1"] = {"VCPU": 2}
        self.assert_refused("what is left of one, holds units", seen, backfill=True)

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
        self.assertTrue(all(isinstance(c, do.SetService) for c in later), later)
        host = self.enrolled(seen, policy, **options)
        trait = units.UNITS.enrolled_trait(policy)
        self.assertEqual({trait}, host.root.elastic_traits)
        (aggregate,) = host.isolated_by
        self.assertEqual({trait}, aggregate.elastic_traits)
        self.assertEqual({aggregate.uuid}, host.root.aggregates)
        return host

    def whole(self, host):
        return [
            inventory.max_unit == 1000
            for child in host.children
            for inventory in child.inventories.values()
        ]

    def test_more_and_fewer_on_an_empty_host(self):
        two = self.enrolled(view(total=80, shape=WIDE))
        four = self.changed(two, FOUR)
        self.assertEqual([True] * 4, self.whole(four))
        self.assertEqual(["perfvm-elastic-4"], [a.name for a in four.cloud.aggregates])
        back = self.changed(four, POLICY)
        self.assertEqual([True] * 2, self.whole(back))
        self.assertEqual([AGGREGATE], [a.name for a in back.cloud.aggregates])

    def test_slots_that_were_chosen_stay(self):
        for slots in (0, 1):
            two = self.enrolled(view(total=80, shape=WIDE), slots=slots)
            four = self.changed(two, FOUR)
            self.assertEqual(slots, sum(self.whole(four)))

    def test_the_aggregate_has_other_hosts_or_other_metadata(self):
        good = self.enrolled(view(), FOUR)
        (old,) = good.cloud.aggregates
        for facts, left in (
            ({"hosts": frozenset({"h1", "h2"})}, {"perfvm-elastic-4", AGGREGATE}),
            ({"metadata": isolating(FOUR_TRAIT)}, {old.name, AGGREGATE}),
            ({"metadata": {**old.metadata, "ssd": "1"}}, {old.name, AGGREGATE}),
        ):
            with self.subTest(facts):
                kept = dataclasses.replace(old, **facts)
                seen = having(good, aggregates=(kept,))
                host = self.changed(seen, POLICY)
                self.assertEqual(left, {a.name for a in host.cloud.aggregates})

    def test_an_aggregate_for_others_is_refused(self):
        good = self.enrolled(view())
        (mine,) = good.cloud.aggregates
        named = dataclasses.replace(mine, name="perfvm-elastic-4")
        words = "is for hosts with CUSTOM_PERFVM_ELASTIC_2, and this policy's have"
        self.assert_refused(words, having(good, aggregates=(named,)), FOUR)

    def test_placement_knows_the_old_aggregate_still(self):
        """Nova only logs where it fails to tell Placement."""
        good = self.enrolled(view())
        old = Aggregate(9, "u9", "old", isolating(FOUR_TRAIT), frozenset())
        seen = having(good, aggregates=(*good.cloud.aggregates, old))
        known = good.root.aggregates
        seen = damaged(seen, ROOT, aggregates=known | {"u9"})
        self.assertEqual(known, self.enrolled(seen).root.aggregates)

    def test_general_vms_get_units_of_the_new_children(self):
        seen = view(server("a"), server("b"), total=80, shape=WIDE)
        two = self.enrolled(seen, backfill=True)
        self.assert_refused("without units: a (a), b (b)", two, FOUR)
        four = self.changed(two, FOUR, backfill=True)
        self.assertEqual([{"a": 1, "b": 1}] * 4, self.units(four))
        self.assertTrue(four.compute.enabled)

    def test_general_vms_lose_units_of_children_that_go(self):
        seen = view(server("a"), server("b"), total=80, shape=WIDE)
        four = self.enrolled(seen, FOUR, backfill=True)
        self.assert_refused("hold units of others: a (a), b (b)", four)
        two = self.changed(four, POLICY, backfill=True)
        self.assertEqual([{"a": 1, "b": 1}] * 2, self.units(two))

    def test_high_performance_vms_take_a_child_that_stays(self):
        four = self.enrolled(
            view(*map(high, "abc"), total=80, shape=WIDE), FOUR, backfill=True
        )
        self.assert_refused("and takes 2 of the former", four, backfill=True)
        gone = having(four, servers=four.servers[1:])
        gone = damaged(gone, ROOT, allocations={c: {"VCPU": 20} for c in "bc"})
        gone = damaged(gone, four.children[0].uuid, allocations={})
        two = self.changed(gone, POLICY, backfill=True)
        self.assertEqual([{"c": 1000}, {"b": 1000}], self.units(two))

    def test_who_is_no_server_is_in_the_way(self):
        """A migration that holds a child which is to go."""
        four = self.enrolled(view(total=80, shape=WIDE), FOUR)
        held = {"m": {const.RC_UNIT: 1000}}
        seen = damaged(four, four.children[3].uuid, allocations=held)
        self.assert_refused(
            "what is left of one, holds units",
            seen,
            backfill=True,
        )

    def test_declared_ahead(self):
        """A host grows without a flavor or another host being touched."""
        ahead = dataclasses.replace(POLICY, elastic=Elastic(4))
        small = self.enrolled(view(server("a")), ahead, backfill=True)
        self.assertEqual([True, True, False, False], self.whole(small))
        self.assertEqual((), plan_enroll(FOUR, small).changes)
        wide = self.enrolled(view(total=80, shape=WIDE), FOUR)
        self.assertEqual([True] * 4, self.whole(wide))
        # max_per_host holds, however many children there are.
        wide = self.enrolled(view(total=80, shape=WIDE), ahead)
        self.assertEqual([True, True, False, False], self.whole(wide))
        self.assert_refused("gives a host 0 to 2", wide, ahead, slots=3)


class UnenrollTest(PlanCase):
    def test_whatever_it_was_enrolled_for(self):
        seen = self.enrolled(view(total=80, shape=WIDE), FOUR)
        host = self.carried_out(seen, plan_unenroll)
        self.assertEqual(((host.root,), ()), (host.tree, host.cloud.aggregates))
        self.assertEqual(frozenset({"COMPUTE_NODE"}), host.root.traits)

    def test_all_goes(self):
        for policy in (POLICY, LABELLED):
            good = self.enrolled(view(), policy)
            host = self.carried_out(good, plan_unenroll)
            self.assertEqual(
                ["h1_perfvm_a", "h1_perfvm_b"], [c.name for c in host.detached]
            )
            self.assert_same(good, self.enrolled(host, policy))
            host = self.carried_out(host, plan_unenroll, delete_children=True)
            self.assert_same(view(names=host.cloud.names), host)

    def test_what_nova_compute_may_know_is_not_deleted(self):
        """Even where the command that has detached it is to delete."""
        steps = plan_unenroll(self.enrolled(view()), delete_children=True).changes
        self.assertNotIn(do.DeleteChild, map(type, steps))

    def test_the_host_leaves_the_aggregate_last(self):
        changes = plan_unenroll(self.enrolled(view())).changes
        kinds = [type(change) for change in changes]
        self.assertIs(do.SetTraits, kinds[0])
        self.assertEqual([do.RemoveHost, do.DeleteAggregate], kinds[-2:])

    def test_vms_with_units(self):
        host = self.enrolled(view(server("a")), backfill=True)
        plan = plan_unenroll(host)
        self.assertEqual((), plan.changes)
        self.assertIn("a (a)", plan.refusals[0])
        bare = self.carried_out(host, plan_unenroll, strip=True)
        self.assertEqual(((), 2), (bare.children, len(bare.detached)))

    def test_aggregates_of_others_stay(self):
        for metadata, why in (
            (ISOLATING, const.CREATED_BY_KEY),
            (ISOLATING | CREATED | {"ssd": "true"}, "somebody gave it ssd"),
        ):
            # Also one that would be empty, and that has the name enroll gives.
            for name in ("mine", AGGREGATE):
                with self.subTest(why=why, name=name):
                    hosts = frozenset({"h1"})
                    mine = Aggregate(7, f"uuid-{name}", name, metadata, hosts)
                    host = self.enrolled(view(aggregates=(mine,)))
                    host = self.carried_out(host, plan_unenroll)
                    self.assertEqual(
                        (name,), tuple(a.name for a in host.cloud.aggregates)
                    )
                    (said,) = kept_aggregates(host.cloud.aggregates)
                    self.assertIn(why, said)
                    self.assertIn(f"openstack aggregate delete {name}", said)

    def test_an_aggregate_that_was_emptied(self):
        prepared = Aggregate(7, "u", "rack2", ISOLATING, frozenset())
        self.assertEqual((), plan_unenroll(view(aggregates=(prepared,))).changes)
        # An earlier run was cut off.
        emptied = dataclasses.replace(prepared, metadata=ISOLATING | CREATED)
        self.assertEqual(
            (do.DeleteAggregate("rack2"),),
            plan_unenroll(view(aggregates=(emptied,))).changes,
        )
        self.assertEqual([], list(kept_aggregates([emptied])))

    def test_an_aggregate_that_was_not_isolated_yet(self):
        """Nobody can tell whether enroll was cut off, or an operator is at work."""
        bare = Aggregate(1, f"uuid-{AGGREGATE}", AGGREGATE, {}, frozenset())
        isolate = do.IsolateAggregate(AGGREGATE, TRAIT)
        self.assertIn(isolate, plan_enroll(POLICY, view(aggregates=(bare,))).changes)
        self.assertFalse(isolate.created)
        self.assertEqual(1, len(list(kept_aggregates([bare]))))
        other = dataclasses.replace(bare, name="rack2")
        self.assertEqual([], list(kept_aggregates([other])))

    def test_a_record_of_the_policy_that_has_hosts(self):
        record = Aggregate(
            7, "u", const.POLICY_AGGREGATE, {"perfvm:policy": "x"}, frozenset({"h1"})
        )
        (said,) = kept_aggregates([record])
        self.assertIn("perfvm-policy stays: somebody put h1 into it", said)
        self.assertEqual((), plan_forget([], [record]).changes)
        empty = dataclasses.replace(record, hosts=frozenset())
        self.assertEqual([], list(kept_aggregates([empty])))

    def test_forget(self):
        empty = Aggregate(1, "u", "a", ISOLATING | CREATED, frozenset())
        used = dataclasses.replace(empty, name="b", hosts=frozenset({"h2"}))
        names = [const.RC_UNIT, TRAIT, const.TRAIT_HIGH_PERFORMANCE]
        record = Aggregate(3, "p", "perfvm-policy", {"perfvm:policy": "0"}, frozenset())
        children = [Provider(c, f"h1_perfvm_{c}", 1) for c in "ab"]
        changes = plan_forget(names, [empty, used, record], children).changes
        self.assertEqual(
            (
                do.DeleteChild("b", "h1_perfvm_b"),
                do.DeleteChild("a", "h1_perfvm_a"),
                do.DeleteAggregate("a"),
                do.DeleteAggregate("perfvm-policy"),
                do.DeleteName(TRAIT, "trait"),
                do.DeleteName(const.RC_UNIT, "resource class"),
            ),
            changes,
        )


class SharesTest(testtools.TestCase):
    def test_what_enrolling_gives_is_the_contract(self):
        """By whose flavor asks for units, and by whose is given them later."""
        for policy in (POLICY, FOUR):
            slots = units.children_per_host(policy)
            children = units.UNITS.children(policy, "h1", slots)
            traits = {child.name: child.trait for child in children}
            for vm_class, resident in (("high-performance", high), ("general", server)):
                shares = divide(policy, view(resident("vm")), children)

                given = shares.lacking["vm"]
                expected = contract(policy, policy.get_class(vm_class))
                amounts = units.UNITS.amounts(policy, policy.get_class(vm_class))
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

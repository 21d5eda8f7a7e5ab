# SPDX-License-Identifier: Apache-2.0

import dataclasses

import hypothesis
import testtools
from hypothesis import strategies as st

from nova_perfvm.changes.flavors import (
    CreateFlavor,
    SeenFlavor,
    SetSpecs,
    UnsetSpec,
    plan_flavors,
)
from nova_perfvm.changes.steps import CreateName
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import loader

POLICY = loader.load()
DESIRED = generate_flavors(POLICY)
HIGH, GENERAL = DESIRED[0], DESIRED[-1]
NAMES = {"CUSTOM_PERFVM_SLOT", "CUSTOM_PERFVM_HIGH_PERFORMANCE"}


def seen(flavor, **changes):
    """Return a flavor as Nova would show it after sync has created it."""
    given = SeenFlavor(
        id=f"id-{flavor.name}",
        name=flavor.name,
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        disk_gb=flavor.root_gb,
        description=CreateFlavor(flavor).description,
        extra_specs=dict(flavor.extra_specs),
    )
    return dataclasses.replace(given, **changes)


FOREIGN = SeenFlavor("id-m1", "m1.small", 1, 2048, 20, extra_specs={"a:b": "c"})


class Cloud:
    """What changes do, without a cloud."""

    def __init__(self, observed=()):
        self.flavors = {flavor.name: flavor for flavor in observed}
        self.names = set()

    def plan(self, desired=DESIRED, **options):
        return plan_flavors(desired, self.flavors.values(), self.names, **options)

    def apply(self, change):
        if isinstance(change, CreateName):
            self.names.add(change.name)
        elif isinstance(change, CreateFlavor):
            assert change.name not in self.flavors
            self.flavors[change.name] = seen(change.flavor)
        else:
            specs = dict(self.flavors[change.name].extra_specs)
            if isinstance(change, SetSpecs):
                specs.update(change.extra_specs)
            else:
                assert isinstance(change, UnsetSpec)
                assert specs.pop(change.key) == change.before
            old = self.flavors[change.name]
            self.flavors[change.name] = dataclasses.replace(old, extra_specs=specs)


def rows(plan):
    return [(c.action, c.kind, c.name, c.detail) for c in plan.changes]


class PlanTest(testtools.TestCase):
    def plan(self, *observed, desired=(HIGH,), known=NAMES, **options):
        return plan_flavors(desired, observed, known, **options)

    def test_names_come_before_the_flavors_that_ask_for_them(self):
        plan = self.plan(known=())
        self.assertEqual(
            [
                ("create", "resource class", "CUSTOM_PERFVM_SLOT", ""),
                ("create", "trait", "CUSTOM_PERFVM_HIGH_PERFORMANCE", ""),
                (
                    "create",
                    "flavor",
                    "hp.20c.64g",
                    "class high-performance: 20 vCPUs, 65536 MiB, 0 GiB root disk",
                ),
            ],
            rows(plan),
        )

    def test_nothing_to_do(self):
        plan = self.plan(seen(HIGH), FOREIGN)
        self.assertEqual((), plan.changes)
        (left,) = plan.left
        self.assertEqual(
            ("leave", HIGH.name, "as the policy says"),
            (left.action, left.name, left.detail),
        )

    def test_drift(self):
        specs = dict(HIGH.extra_specs) | {"hw:numa_nodes": "2", "quota:x": "1"}
        del specs["hw:cpu_policy"]
        plan = self.plan(seen(HIGH, extra_specs=specs))
        self.assertEqual(
            [
                (
                    "set",
                    "flavor",
                    HIGH.name,
                    "hw:cpu_policy=dedicated, hw:numa_nodes=1 (was 2)",
                ),
                ("unset", "flavor", HIGH.name, "quota:x (was 1)"),
            ],
            rows(plan),
        )

    def test_who_owns_a_flavor(self):
        plain = seen(HIGH, description=None, extra_specs={})
        by_class = dataclasses.replace(plain, extra_specs={"perfvm:class": "other"})
        # A run that was cut off between the flavor and its extra specs.
        by_mark = seen(HIGH, extra_specs={})
        described = dataclasses.replace(plain, description="ours, nova-perfvm: class")
        for observed, options, owned in (
            (by_class, {}, True),
            (by_mark, {}, True),
            (plain, {}, False),
            (described, {}, False),
            (plain, {"adopt": [HIGH.name]}, True),
        ):
            plan = self.plan(observed, **options)
            self.assertEqual(owned, bool(plan.changes))
            self.assertEqual(not owned, bool(plan.refusals))
        self.assertIn(f"--adopt {HIGH.name}", self.plan(plain).refusals[0])
        (refusal,) = self.plan(seen(HIGH), adopt=["m1.small"]).refusals
        self.assertIn("generates no such flavor", refusal)

    def test_what_is_not_synced_is_left(self):
        old = dataclasses.replace(seen(HIGH), id="id-old", name="hp.old")
        plan = self.plan(seen(HIGH), old, FOREIGN)
        self.assertEqual((), plan.changes)
        self.assertEqual([HIGH.name, "hp.old"], [left.name for left in plan.left])
        self.assertIn("delete it (openstack flavor delete)", plan.left[1].detail)

    def test_a_flavor_of_another_size_stays(self):
        plan = self.plan(seen(HIGH, vcpus=16, swap_mb=512), desired=DESIRED)
        self.assertEqual((), plan.changes)
        (refusal,) = plan.refusals
        for words in ("16 vCPUs where the policy says 20", "512 MiB of swap"):
            self.assertIn(words, refusal)


SPECS = st.dictionaries(
    st.sampled_from([*HIGH.extra_specs, "perfvm:class", "quota:x", "hw:y"]),
    st.sampled_from(["1", "dedicated", "general"]),
)


@st.composite
def clouds(draw):
    """Draw a cloud in which some of the policy's flavors are, and others."""
    observed = [
        seen(
            flavor,
            vcpus=draw(st.sampled_from([flavor.vcpus, flavor.vcpus, 3])),
            public=draw(st.booleans()),
            description=draw(st.sampled_from([None, CreateFlavor(flavor).description])),
            extra_specs=draw(SPECS),
        )
        for flavor in DESIRED
        if draw(st.booleans())
    ]
    return [FOREIGN, *observed]


class AnyCloudTest(testtools.TestCase):
    @hypothesis.given(clouds(), st.integers(0, 30))
    @hypothesis.settings(deadline=None, max_examples=150)
    def test_a_run_that_was_cut_off_is_finished_by_the_next(self, observed, count):
        cloud = Cloud(observed)
        first = cloud.plan()
        before = dict(cloud.flavors)
        for change in first.changes[:count]:
            cloud.apply(change)
        second = cloud.plan()
        self.assertEqual(bool(first.refusals), bool(second.refusals))
        for change in second.changes:
            cloud.apply(change)

        if not first.refusals:
            self.assertEqual((), cloud.plan().changes)
            wanted = {f.name: dict(f.extra_specs) for f in DESIRED}
            has = {n: dict(cloud.flavors[n].extra_specs) for n in wanted}
            self.assertEqual(wanted, has)
        for name, flavor in before.items():
            self.assertEqual(flavor.id, cloud.flavors[name].id)
            if not flavor.claims:
                self.assertEqual(flavor, cloud.flavors[name])

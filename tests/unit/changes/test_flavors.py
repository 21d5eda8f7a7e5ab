# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.changes.flavors import CreateFlavor, SeenFlavor, plan_flavors
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import loader

POLICY = loader.load()
DESIRED = generate_flavors(POLICY)
HIGH = DESIRED[0]
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


def rows(plan):
    return [(c.action, c.kind, c.name, c.detail) for c in plan.changes]


class PlanTest(testtools.TestCase):
    def plan(self, *observed, desired=(HIGH,), known=NAMES, **options):
        return plan_flavors(desired, observed, known, **options)

    def test_what_is_left(self):
        old = dataclasses.replace(seen(HIGH), id="id-old", name="hp.old")
        plan = self.plan(seen(HIGH), old, FOREIGN)
        self.assertEqual((), plan.changes)
        self.assertEqual(
            [("leave", HIGH.name), ("leave", "hp.old")],
            [(left.action, left.name) for left in plan.left],
        )
        self.assertEqual("as the policy says", plan.left[0].detail)
        self.assertIn("delete it (openstack flavor delete)", plan.left[1].detail)

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

    def test_a_flavor_of_another_size_stays(self):
        plan = self.plan(seen(HIGH, vcpus=16, swap_mb=512), desired=DESIRED)
        self.assertEqual((), plan.changes)
        (refusal,) = plan.refusals
        for words in ("16 vCPUs where the policy says 20", "512 MiB of swap"):
            self.assertIn(words, refusal)

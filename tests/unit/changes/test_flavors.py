# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.changes.flavors import SeenFlavor, plan_flavors
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import loader

POLICY = loader.load()
DESIRED = generate_flavors(POLICY)
HIGH = DESIRED[0]
NAMES = {"CUSTOM_PERFVM_SLOT", "CUSTOM_PERFVM_HIGH_PERFORMANCE"}


def described(flavor):
    """Return the description with which sync creates a flavor."""
    (made,) = plan_flavors([flavor], [], NAMES, policy=POLICY).changes
    return made.description


def seen(flavor, **changes):
    """Return a flavor as Nova would show it after sync has created it."""
    given = SeenFlavor(
        id=f"id-{flavor.name}",
        name=flavor.name,
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        disk_gb=flavor.root_gb,
        description=described(flavor),
        extra_specs=dict(flavor.extra_specs),
    )
    return dataclasses.replace(given, **changes)


FOREIGN = SeenFlavor("id-m1", "m1.small", 1, 2048, 20, extra_specs={"a:b": "c"})


def rows(plan):
    return [(c.action, c.kind, c.name, c.detail) for c in plan.changes]


class PlanTest(testtools.TestCase):
    def plan(self, *observed, desired=(HIGH,), known=NAMES, **options):
        options = {"policy": POLICY} | options
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
        # An odd topology breaks the promise of the class.
        specs = dict(HIGH.extra_specs) | {"hw:numa_nodes": "2", "hw:numa_mem.0": "1"}
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
                ("unset", "flavor", HIGH.name, "hw:numa_mem.0 (was 1)"),
            ],
            rows(plan),
        )

    def test_keys_of_others(self):
        foreign = {"quota:cpu_shares": "5", "accounting:code": "7"}
        there = seen(HIGH, extra_specs=HIGH.extra_specs | foreign)
        strict = dataclasses.replace(POLICY, foreign_keys="unset")

        kept, gone = self.plan(there), self.plan(there, policy=strict)

        self.assertEqual((), kept.changes)
        self.assertIn("accounting:code=7", kept.left[1].detail)
        self.assertEqual(["unset"] * 2, [action for action, *_ in rows(gone)])

    def test_keys_that_the_policy_drops(self):
        own = {"hw:watchdog_action": "reset", "quota:cpu_shares": "5"}
        before = dataclasses.replace(HIGH, extra_specs=HIGH.extra_specs | own)
        for text in ("", "Our fast VMs", "nova-perfvm: class high-performance"):
            words = f"{text} {described(before)}".lstrip()
            there = seen(before, description=words)

            plan = self.plan(there)

            *unset, record = rows(plan)
            self.assertEqual(
                [("unset", f"{key} (was {value})") for key, value in own.items()],
                [(action, detail) for action, _, _, detail in unset],
            )
            after = dataclasses.replace(
                there,
                extra_specs=HIGH.extra_specs,
                description=plan.changes[-1].description,
            )
            self.assertEqual(("record", HIGH.name), (record[0], record[2]))
            self.assertTrue(after.description.startswith(text[:12]))
            self.assertEqual((), self.plan(after).changes)

    def test_a_class_with_a_new_name(self):
        specs = HIGH.extra_specs | {"perfvm:class": "old"}
        for text in ("nova-perfvm: class ", "Our fast VMs nova-perfvm: class "):
            there = seen(HIGH, description=f"{text}old", extra_specs=specs)
            *_, record = self.plan(there).changes
            self.assertEqual(f"{text}{HIGH.class_name}", record.detail)

    def test_without_a_record_keys_are_those_of_others(self):
        own = {"hw:watchdog_action": "reset"}
        there = seen(HIGH, extra_specs=HIGH.extra_specs | own, description="theirs")
        plan = self.plan(there)
        self.assertEqual((), plan.changes)
        self.assertIn("hw:watchdog_action", plan.left[1].detail)

    def test_who_owns_a_flavor(self):
        plain = seen(HIGH, description=None, extra_specs={})
        by_class = dataclasses.replace(plain, extra_specs={"perfvm:class": "other"})
        # A run that was cut off between the flavor and its extra specs.
        by_mark = seen(HIGH, extra_specs={})
        titled = dataclasses.replace(plain, description="ours, nova-perfvm: class")
        for observed, options, owned in (
            (by_class, {}, True),
            (by_mark, {}, True),
            (plain, {}, False),
            (titled, {}, False),
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

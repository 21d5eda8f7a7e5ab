# SPDX-License-Identifier: Apache-2.0

import collections
import itertools
import re

import fixtures
import testtools

from tests import shards

PRODUCT = "0a1b2c3-4d5e6f7"
# Its tools are named by variables; the newest releases of them are tried by hand.
NOT_LONG = {"recipes"}


def record(product, **states):
    """Return a record of a shard."""
    return {"product": product, "parts": states}


class TableTest(testtools.TestCase):
    def test_each_suite_is_in_it(self):
        known = shards.table()
        listed = {each["suite"] for each in known["classes"].values()}
        for each in known["targets"].values():
            listed |= {suite.split("/")[0] for suite in each.get("suites", [])}
        tests = (shards.ROOT / "tests").rglob("test_*.py")
        suites = {path.relative_to(shards.ROOT / "tests").parts[0] for path in tests}
        self.assertEqual(suites - NOT_LONG, listed - {"tempest"})

    def test_classes_that_it_lists_exist(self):
        for each in shards.table()["classes"].values():
            for listed in each.get("listed", {}):
                module, name = listed.split(".")
                path = shards.ROOT / "tests" / each["suite"] / f"{module}.py"
                self.assertRegex(path.read_text(), rf"(?m)^ *class {name}\(", listed)

    def test_targets_are_the_makefiles(self):
        makefile = (shards.ROOT / "Makefile").read_text()
        known = shards.table()
        for target in {*known["targets"], *known["classes"]}:
            rule = re.sub("^tempest-.*", "tempest-%", target)
            self.assertRegex(makefile, rf"(?m)^{re.escape(rule)}:", target)


class NightlyTest(testtools.TestCase):
    def test_tests_that_it_lists_exist(self):
        lines = (shards.ROOT / "tests" / "nightly.txt").read_text().splitlines()
        named = [line for line in lines if line and not line.startswith("#")]
        self.assertEqual(len(named), len(set(named)))
        for line in named:
            suite, module, name, *method = line.split(".")
            text = (shards.ROOT / "tests" / suite / f"{module}.py").read_text()
            self.assertRegex(text, rf"(?m)^class {name}\(", line)
            # Those of a table of scenarios have a number and the row's words.
            if method and not re.match(r"test_\d{3}_", *method):
                self.assertRegex(text, rf"(?m)^    def {method[0]}\(", line)


class DivideTest(testtools.TestCase):
    """Shards of a suite whose classes have names that begin alike."""

    IDS = tuple(
        f"tests.{suite}.test_{module}.{name}.test_{test}"
        for suite in ("long", "matrix", "random", "sandbox")
        for module in ("races", "elastic_races")
        for name in ("Test", "TestSlots", "TestSlotsWithoutFilter")
        for test in ("one", "two(slots)")
    )

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch("tests.shards.tests_of", self.listed))

    def listed(self, suite):
        """Return the tests of a suite."""
        return [test for test in self.IDS if test.startswith(f"tests.{suite}.")]

    def test_each_part_is_in_one_shard(self):
        whole = shards.parts()
        for number in (1, 3, 8):
            dealt = [part for shard in shards.divide(whole, number) for part in shard]
            self.assertEqual(sorted(whole), sorted(dealt), number)

    def test_shards_are_alike(self):
        minutes = [
            sum(part.minutes for part in shard)
            for shard in shards.divide(shards.parts(), 8)
        ]
        self.assertLess(max(minutes) - min(minutes), 10)

    def test_patterns_are_of_their_classes_alone(self):
        part = shards.Part("long", "test_races.TestSlots", 5)
        ((arguments, parts),) = shards.commands([part]).values()
        pattern = arguments[1].removeprefix("LONG_TESTS=").strip("'")
        found = [test for test in self.listed("long") if re.search(pattern, test)]
        self.assertEqual([part], parts)
        self.assertEqual(
            [
                "long.test_races.TestSlots.test_" + test
                for test in ("one", "two(slots)")
            ],
            [test.removeprefix("tests.") for test in found],
        )
        self.assertEqual(len(found), shards.expected([part]))

    def test_a_class_is_settled_by_its_own_tests(self):
        good, bad = (
            shards.Part("long", f"test_races.{name}", 5)
            for name in ("TestSlots", "TestSlotsWithoutFilter")
        )
        unit = shards.Part("unit", "", 5)
        states = {good: "failed", bad: "failed", unit: "passed"}
        # As many of another suite's class of that name say nothing.
        passed = collections.Counter(
            {("long", good.tests): 2, ("random", bad.tests): 1}
        )
        self.assertEqual(
            {good.name: "passed", bad.name: "failed", unit.name: "passed"},
            shards.settled(states, passed, whole=True),
        )
        found = shards.settled(states, passed, whole=False)
        self.assertEqual("failed", found[unit.name])


class RestTest(testtools.TestCase):
    def test_the_rest_is_what_has_not_passed(self):
        whole = [shards.Part("long", f"test_a.Test{n}", 20) for n in range(5)]
        earlier = record(PRODUCT, **{whole[0].name: "passed", whole[1].name: "failed"})
        ran = {}
        for name, value in (
            ("parts", lambda: whole),
            ("product", lambda: PRODUCT),
            ("stored_records", lambda: [earlier]),
            ("run_parts", lambda shard, name: ran.update({name: shard}) or len(ran)),
        ):
            self.useFixture(fixtures.MonkeyPatch(f"tests.shards.{name}", value))
        self.assertEqual(3, shards.run_rest())
        self.assertEqual(sorted(whole[1:]), sorted(itertools.chain(*ran.values())))
        self.assertEqual(["1/3", "2/3", "3/3"], [name[:3] for name in ran])

    def test_nothing_is_left(self):
        self.useFixture(fixtures.MonkeyPatch("tests.shards.parts", list))
        self.assertEqual(0, shards.run_rest())


class StatusTest(testtools.TestCase):
    WHOLE = (shards.Part("unit", "", 8), shards.Part("long", "test_a.B", 5))

    def left(self, *records):
        """Return the names of the parts that are left."""
        return [part.name for part in shards.not_passed(self.WHOLE, records, PRODUCT)]

    def test_parts_add_up_over_shards_and_commits(self):
        records = (
            record(PRODUCT, unit="passed"),
            record(PRODUCT, **{"long:test_a.B": "passed"}),
        )
        self.assertEqual([], self.left(*records))
        self.assertEqual(["long:test_a.B"], self.left(records[0]))

    def test_neither_failures_nor_other_products_count(self):
        self.assertEqual(
            ["unit", "long:test_a.B"],
            self.left(
                record(PRODUCT, unit="failed"),
                record("other", **{"long:test_a.B": "passed"}),
            ),
        )

# SPDX-License-Identifier: Apache-2.0
"""Elastic hosts whose number of children changes with the policy.

What keeps the classes apart holds between VMs whose flavors agree on that
number, and a server keeps the flavor that it was made with.  Without the filter,
unless a test says so: Placement alone has to refuse.
"""

import pathlib

import yaml

from nova_perfvm import constants as const
from nova_perfvm.cloud import answers, flavors
from nova_perfvm.cloud.errors import RefusedError
from nova_perfvm.facts.snapshot import CREATED, isolating
from nova_perfvm.policy import loader
from tests.cloud import DEFAULT_FILTERS
from tests.embedded import ActionFailedError
from tests.functional import base, test_elastic
from tests.functional.client import ClientMixin
from tests.functional.elastic import DeathError
from tests.functional.test_elastic import ElasticCase

HIGH, GENERAL = base.HP_64, base.GENERAL_2
WIDE = "4x20"
TWO, FOUR = "CUSTOM_PERFVM_ELASTIC_2", "CUSTOM_PERFVM_ELASTIC_4"
ONE_OF_FOUR = {"a": [1], "b": [1], "c": [1], "d": [1]}


class NumberCase(ClientMixin, ElasticCase):
    """Hosts for four high-performance VMs, and as many as max_per_host.

    :cvar CAP: max_per_host in the beginning
    """

    CAP = 2
    CHANGES = {"host_shape": WIDE}  # noqa: RUF012

    def write_policy(self, **changes):
        return super().write_policy(**changes, classes=self.classes(self.CAP))

    def classes(self, cap):
        classes = self.policy.as_document()["classes"]
        classes["high-performance"]["max_per_host"] = cap
        return classes

    def change_policy(self, cap, **keys):
        """Change the policy, and the flavors, as the documentation has it."""
        document = yaml.safe_load(pathlib.Path(self.path).read_text())
        document |= {"classes": self.classes(cap)} | keys
        pathlib.Path(self.path).write_text(yaml.safe_dump(document))
        self.policy = loader.load(self.path)
        self.cloud.restart_scheduler(self.FILTERS)
        return self.sync()

    def sync(self, *options):
        """Make the flavors those of the policy; return what was changed."""
        sync = ["flavor", "sync", "--policy-changed", "--yes", *self.policy_file()]
        status, rows, stderr = self.run_json(*sync, *options)
        self.assertEqual(0, status, stderr)
        return [row for row in rows if row["Action"] != "leave"]

    def assert_apart_by_class(self):
        """Look that no host has active servers of both classes, by their flavors."""
        classes = {}
        for server in map(answers.server, answers.server_list(self.api)):
            if server.status == "ACTIVE":
                kind = server.extra_specs[const.CLASS_KEY]
                classes.setdefault(server.host, set()).add(kind)
        mixed = {host for host, kinds in classes.items() if len(kinds) > 1}
        self.assertEqual(set(), mixed)

    def assert_enrolled_for(self, trait, *hosts):
        for host in hosts:
            view = self.view(host)
            self.assertEqual({trait}, view.root.elastic_traits)
            (aggregate,) = view.isolated_by
            # A run that died before it had marked the aggregate leaves it unmarked.
            known = isolating(trait) | CREATED
            self.assertEqual(known, known | dict(aggregate.metadata))
            self.assertEqual("required", aggregate.metadata[f"trait:{trait}"])
            self.assertEqual({aggregate.uuid}, view.root.aggregates)
            self.assertEqual(("enabled", None), self.service(host))
            self.assertEqual(0, self.enroll(host))


class TestFourSlots(test_elastic.TestHostsOfManySizes):
    """As many slots as nodes on each host, on the largest four."""

    CAP = 4


class TestThreeOnOneCell(test_elastic.TestFourOnTwoCells):
    FLAVORS = (HIGH,)
    SHAPE, SLOTS, VCPUS = "1x80", 3, 20


class TestFewer(NumberCase):
    """max_per_host 4 -> 2, and a host that is enrolled for four children still."""

    CAP = 4

    def test_the_classes_stay_apart(self):
        self.start("e1", shape=WIDE)
        self.change_policy(2)
        for order in ((GENERAL, HIGH), (HIGH, GENERAL)):
            # Of one made for two children beside one that takes any of four.
            servers = [self.cloud.boot(flavor) for flavor in order]
            self.assert_apart_by_class()
            for server in servers:
                self.servers.delete(server)

        self.enroll("e1")
        self.assert_enrolled_for(TWO, "e1")
        self.boot(GENERAL)
        self.boot_refused(HIGH)

    def test_vms_from_before(self):
        self.start("e1", shape=WIDE)
        server = self.boot(GENERAL)
        self.change_policy(2)
        # It holds units of all four, and is what nobody comes beside.
        self.boot_refused(HIGH)

        exc = self.assertRaises(RefusedError, self.enroll, "e1")
        self.assertIn(server.name, str(exc))
        self.assertEqual({FOUR}, self.view("e1").root.elastic_traits)
        self.enroll("e1", backfill=True)

        self.assert_enrolled_for(TWO, "e1")
        self.assertEqual({"a": [1], "b": [1]}, self.units("e1"))
        self.boot_refused(HIGH)
        self.boot(GENERAL)
        self.servers.delete(server)
        self.assertEqual({"a": [1], "b": [1]}, self.units("e1"))


class TestFewerWithFilter(NumberCase):
    CAP = 4
    FILTERS = DEFAULT_FILTERS

    def test_at_once(self):
        self.start("e1", shape=WIDE)
        self.change_policy(2)
        for _ in range(4):
            servers = self.cloud.boot_at_once([HIGH, GENERAL])
            self.assert_apart_by_class()
            for server in servers:
                self.servers.delete(server)


class TestMore(NumberCase):
    """max_per_host 2 -> 4."""

    def setUp(self):
        super().setUp()
        self.start("e1", "e2", shape=WIDE)
        self.server = self.boot(GENERAL, host="e1")
        self.change_policy(4)

    def test_a_vm_from_before_comes_to_no_other_host(self):
        self.enroll("e1", backfill=True)
        self.enroll("e2")
        self.assert_enrolled_for(FOUR, "e1", "e2")
        self.assertEqual(ONE_OF_FOUR, self.units("e1"))

        for move in (self.servers.live_migrate, self.servers.cold_migrate):
            self.assertRaises(ActionFailedError, move, self.server)
        self.boot_refused(HIGH, host="e1")
        high = [self.boot(HIGH, host="e2") for _ in range(4)]
        self.assert_apart_by_class()

        # What remains possible: all but a move, and a resize ends that.
        self.sync("--prefix", "new-")
        self.boot_refused(GENERAL, host="e2")
        for server in high:
            self.servers.delete(server)
        name = f"new-{GENERAL}"
        (flavor,) = (f.id for f in flavors.flavors(self.api) if f.name == name)
        resized = self.servers.resize(self.server, flavor)
        resized = self.servers.confirm(resized)
        self.assertEqual(ONE_OF_FOUR, self.units(resized.host))
        other = {"e1": "e2", "e2": "e1"}[resized.host]
        self.assertEqual(other, self.servers.live_migrate(resized, other).host)

    def test_death_between_any_two_steps(self):
        states = []
        for _ in range(60):
            try:
                with self.die_after(1):
                    self.enroll("e1", backfill=True)
                break
            except DeathError:
                view = self.view("e1")
                self.assertTrue(view.closed)
                states.append(view.root.elastic_traits)
                if view.root.elastic_traits == {FOUR}:
                    self.assertEqual(ONE_OF_FOUR, self.units("e1"))
                elif view.root.elastic_traits:
                    self.assertEqual({"a": [1], "b": [1]}, self.units("e1"))
        self.assert_enrolled_for(FOUR, "e1")
        # Closed for most of the way.
        self.assertGreater(states.count(frozenset()), 10)
        self.assertEqual({"a", "b"}, set(self.units("e2")))
        names = {aggregate.name for aggregate in answers.aggregates(self.api)}
        self.assertEqual(
            {"perfvm-elastic-2", "perfvm-elastic-4"}, names - {const.POLICY_AGGREGATE}
        )


class TestDeclaredAhead(NumberCase):
    """Hosts that grow: neither flavors nor other hosts are touched."""

    CAP = 4
    CHANGES = {"host_shape": "2x20", "elastic": {"slots": 4}}  # noqa: RUF012

    def test_larger_hosts_come(self):
        self.start("e1")
        self.sync()
        server = self.boot(GENERAL, host="e1")
        self.boot_refused(HIGH, host="e1")

        self.assertEqual([], self.change_policy(4, host_shape=["2x20", WIDE]))

        self.assert_enrolled_for(FOUR, "e1")
        self.start("e4", shape=WIDE)
        self.assert_enrolled_for(FOUR, "e4")
        self.assertEqual("e4", self.servers.live_migrate(server, "e4").host)
        self.boot_refused(HIGH, host="e4")
        self.servers.delete(server)
        for host, room in (("e1", 2), ("e4", 4)):
            for _ in range(room):
                self.boot(HIGH, host=host)
            self.boot_refused(HIGH, host=host)

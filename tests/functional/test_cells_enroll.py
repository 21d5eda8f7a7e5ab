# SPDX-License-Identifier: Apache-2.0
"""Hosts enrolled by NUMA node, audited and aligned, on a real Nova and Placement."""

import dataclasses
import json
from datetime import UTC, datetime
from unittest import mock

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.cloud import nova_database
from nova_perfvm.cloud.errors import RefusedError
from nova_perfvm.policy import loader
from tests.cloud import DEFAULT_FILTERS
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import cells, elastic
from tests.functional.cells import flavor_of
from tests.functional.test_audit import AuditMixin
from tests.unit.measure import hosts

MEMORY_MB = cells.MEMORY_GB * 1024


class Case(AuditMixin, cells.CellsCase):
    HOSTS = ("h1",)

    def setUp(self):
        super().setUp()
        # Nova's database is that of the cloud in this process.
        self.enterContext(mock.patch.object(nova_database, "configure"))

    def found(self, *options):
        """Return the codes that the audit finds, each once, but for Nova's images."""
        status, found = self.audit("--from-nova-db", *options)
        self.assertEqual(bool(found), bool(status), found)
        return {code for code, _ in found}

    def boot_anywhere(self, flavor, **options):
        """Boot a server on which no filter of ours has an influence."""
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        server = self.boot(flavor, **options)
        self.cloud.restart_scheduler(DEFAULT_FILTERS)
        return server

    def assert_aligned(self, *servers):
        for server in servers:
            self.assertEqual(self.claimed(server), sorted(self.nodes(server)))


class TestEnroll(Case):
    def test_any_mix(self):
        servers = [self.boot(flavor_of(n)) for n in (16, 4, 8, 8, 4)]

        self.assertEqual(
            {"0": (20, 2 * MEMORY_MB), "1": (20, 3 * MEMORY_MB)}, self.books("h1")
        )
        self.assert_aligned(*servers)
        self.boot_refused(flavor_of(4))
        self.boot_refused(cells.GENERAL)
        self.assertEqual(0, self.enroll("h1"))
        self.assertEqual(set(), self.found())

        exc = self.assertRaises(RefusedError, self.unenroll, "h1")
        self.assertIn("carry NUMA nodes", str(exc))
        for server in servers:
            self.servers.delete(server)
        self.assert_aligned(self.boot(cells.PAIR))

    def test_what_hosts_must_be(self):
        self.cloud.start_host("h2", shared="0-39")
        exc = self.assertRaises(RefusedError, self.enroll, "h2")
        self.assertIn("cpu_dedicated_set", str(exc))
        self.start("h3")
        enroll = ("host", "enroll", "--yes", *self.policy_file())
        self.assert_command(1, "assumed symmetric", *enroll, "h3")
        self.assert_command(0, "h3 is enrolled", *enroll, "h3", "--from-nova-db")
        self.start("h4", "1x40")
        hosts = {"h4": {"cells": [{"dedicated": "0-39"}]}}
        (path,) = self.files(json.dumps({"schema_version": "1.0", "hosts": hosts}))
        inventory = ("--inventory", path)
        self.assert_command(0, "h4 is enrolled", *enroll, "h4", *inventory)
        self.assertEqual({"0": (0, 0), "1": (0, 0)}, self.books("h3"))
        self.assertEqual({"0": (0, 0)}, self.books("h4"))
        self.assertEqual(0, self.enroll("h3") + self.enroll("h4"))

    def test_what_was_collected_on_hosts(self):
        """Where no database is at hand; passwords keep nova.conf out of it."""
        enroll = ("host", "enroll", "--yes", "--backfill", *self.policy_file())
        self.cloud.create_flavor("plain", 6, 4096, 0, cells.PLAIN)
        for host, dedicated in (("h2", "0-39"), ("h3", "1-19,21-39")):
            self.start(host, dedicated=dedicated)
            old = self.boot_before("plain", host=host)
            (path,) = self.files(hosts.as_json(self.collected(host)))
            told = (host, "--collected", path)
            if host == "h3":
                words = "40 dedicated CPUs, and Placement counts 38 PCPU"
                self.assert_command(1, words, *enroll, *told)
                conf = f"[compute]\ncpu_dedicated_set = {dedicated}\n"
                told = (*told, "--nova-conf", *self.files(conf))
            self.assert_command(0, f"{host} is enrolled", *enroll, *told)
            # So Nova's database has it, too.
            self.assertEqual(0, self.enroll(host))
            self.assert_aligned(old)
        # Another host's is of no use.
        self.start("h4")
        self._refuse_what_contradicts("h4", enroll)
        self.assert_command(1, "assumed symmetric", *enroll, "h4", *told[1:])

    def _refuse_what_contradicts(self, host, enroll):
        """Files of another machine, or of the same before it was changed."""
        gb = self.view(host).facts.cells[0].memory_mb // 1024
        meminfo = f"{hosts.NODE}/node0/meminfo"
        small = {meminfo: "Node 0 MemTotal: 1048576 kB\n"}
        for changes, words in (
            ({"gb": gb // 2}, "MiB of memory, and Placement counts"),
            ({"gb": gb * 4}, "MiB of memory, and Placement counts"),
            ({"gb": 2**20}, "MiB of memory, and Placement counts"),
            ({"files": small}, "MiB of memory, and Placement counts"),
            ({"taken_at": "2001-01-01T00:00:00+00:00"}, "was written at 2001-01-01"),
            ({"taken_at": "2999-01-01T00:00:00+00:00"}, "was written at 2999-01-01"),
        ):
            (path,) = self.files(hosts.as_json(self.collected(host, **changes)))
            self.assert_command(1, words, *enroll, host, "--collected", path)
        self.assertEqual((), self.view(host).children)

    def collected(self, host, gb=None, files=(), taken_at=None):
        """Return what is collected on a host of 2x20.

        :param gb: memory of a NUMA node, if it is another than Nova has
        :param files: those that are other ones
        """
        memory_mb = self.view(host).facts.cells[0].memory_mb
        taken_at = taken_at or datetime.now(UTC).isoformat(timespec="seconds")
        # What runs there Nova tells.
        found = hosts.of_domains(host, {}, taken_at)
        seen = hosts.topology(gb=gb or memory_mb // 1024)
        return dataclasses.replace(found, files={**seen, **dict(files)})

    def test_what_is_left(self):
        """Of 20 and 20 CPUs 16 and 8 are taken."""
        self.start("h2")
        for vcpus in (16, 8):
            self.boot(flavor_of(vcpus))
        policy = self.policy_file()
        status, words, said = self.run_command(
            "explain", "--flavor", flavor_of(16), "-f", "value", "-c", "Detail", *policy
        )
        for part in (
            "need 16 CPUs and 8192 MiB of one",
            "node 0 has 4 of 20 CPUs and ",
            "node 1 has 12 of 20 CPUs and ",
        ):
            self.assertIn(part, " ".join(words.split()))
        self.assertEqual(1, status, said)
        self.boot_refused(flavor_of(16))

        _, rows, _ = self.run_json("capacity", "show", "--from-nova-db", *policy)
        found = {
            row["Class"]: tuple(row[key] for key in ("Total", "Used", "Free"))
            for row in rows
            if row["Host"] == "h1"
        }
        expected = {
            "c4": (10, 0, 4),
            "c8": (4, 1, 1),
            "c16": (2, 1, 0),
            "c20": (2, 0, 0),
        }
        self.assertEqual(expected | {"pair": (2, 0, 0)}, found)
        for number in range(5):
            boot = self.boot_refused if number == 4 else self.boot
            boot(flavor_of(4))

        _, rows, _ = self.run_json("host", "list", *policy)
        self.assertEqual(
            [("h1", "dedicated", None), ("h2", "dedicated", None)],
            [(row["Host"], row["Mode"], row["Slots"]) for row in rows],
        )
        self.assert_command(0, "h1_perfvm_cell_1", "host", "show", "h1", *policy)
        self.assert_command(0, "h1", "map", *policy)
        self.assert_command(0, 'class="c4"', "metrics", *policy)

    def test_nodes_without_names(self):
        explain = ("explain", "--flavor", flavor_of(4), "--from-nova-db")
        explain += tuple(self.policy_file())
        self.cloud.restart_host("h1", named=False)
        self.boot_refused(flavor_of(4))
        self.assert_command(1, "nova.nodes_unnamed", *explain)
        self.cloud.restart_host("h1", named=True)
        self.assert_command(0, "1 of 1 host would take it", *explain)
        self.assert_aligned(self.boot(flavor_of(4)))

    def test_by_another_scheme(self):
        units, self.policy = self.policy, loader.load()
        self.policy = dataclasses.replace(self.policy, placement="units")
        exc = self.assertRaises(RefusedError, self.enroll, "h1")
        remedy = "openstack perfvm host unenroll h1"
        self.assertIn(
            f"enrolled by placement: cells, and the policy says units: {remedy}",
            str(exc),
        )
        self.start("h2")
        self.enroll("h2")
        self.policy = units
        exc = self.assertRaises(RefusedError, self.enroll, "h2")
        self.assertIn("enrolled by placement: units", str(exc))
        self.assertIn(codes.ORPHANED_CHILD, self.found())
        for host in ("h1", "h2"):
            self.unenroll(host)
            self.enroll(host)
        self.assertEqual(set(), self.found())

    def test_an_unenroll_that_was_cut_off(self):
        """The trait that VMs ask for is on the NUMA nodes, not on the host alone."""
        with self.die_after(3):
            self.assertRaises(elastic.DeathError, self.unenroll, "h1")
        self.boot_refused(flavor_of(4))
        self.boot_refused(cells.GENERAL)
        self.unenroll("h1")
        self.assert_ordinary("h1")
        self.enroll("h1")
        self.assert_aligned(self.boot(flavor_of(4)))

    def test_after_the_service_was_deleted(self):
        self.delete_service("h1")
        self.assertEqual({}, self.books("h1"))
        self.boot_refused(flavor_of(4))
        self.enroll("h1")
        self.assert_aligned(self.boot(flavor_of(4)))

    def test_children_that_are_not_right(self):
        for damage in (self._lose, self._shrink):
            damage(self.view("h1").children[0])
            self.assertEqual({codes.CHILDREN_DIFFER}, self.found())
            self.enroll("h1")
            self.assertEqual(set(), self.found())
        self.cloud.restart_host("h1", dedicated="2-19,22-39")
        self.cloud.run_periodics()
        self.assertEqual({codes.CHILDREN_DIFFER}, self.found())
        self.enroll("h1")
        self.assertEqual(set(), self.found())
        self.boot_refused(flavor_of(20))

    def test_children_that_have_more_than_the_host(self):
        """No database is needed to see it: Placement contradicts itself."""
        amounts = {const.RC_CELL_CPU: 20, const.RC_CELL_MEMORY: 1024000}
        for child in self.view("h1").children:
            self.put(
                child,
                "inventories",
                inventories={
                    k: {"total": n, "max_unit": n} for k, n in amounts.items()
                },
            )
        self.assertEqual((2, [(codes.CHILDREN_DIFFER, "h1")]), self.audit())
        self.enroll("h1")
        self.assertEqual((0, []), self.audit())

    def _lose(self, child):
        self.api.placement("DELETE", f"/resource_providers/{child.uuid}")

    def _shrink(self, child):
        inventories = {const.RC_CELL_CPU: {"total": 12}}
        self.put(child, "inventories", inventories=inventories)


class TestBackfill(Case):
    HOSTS = ()

    def setUp(self):
        super().setUp()
        self.start("h1")
        self.start("h2")

    def test_residents(self):
        """Of a class as flavors had it before, and of none."""
        self.cloud.create_flavor("plain", 6, 4096, 0, cells.PLAIN)
        for vcpus in cells.SIZES:
            named = cells.PLAIN | {const.CLASS_KEY: f"c{vcpus}"}
            self.cloud.create_flavor(f"old{vcpus}", vcpus, MEMORY_MB, 0, named)
        old = [self.boot_before(f"old{n}", host="h1") for n in (16, 8, 4)]
        old += [
            self.boot_before("old20", host="h2"),
            self.boot_before("plain", host="h1"),
        ]

        exc = self.assertRaises(RefusedError, self.enroll, "h1")
        self.assertIn("has VMs without NUMA nodes", str(exc))
        for host in ("h1", "h2"):
            self.enroll(host, backfill=True)

        self.assert_aligned(*old)
        self.assertEqual(34, sum(cpus for cpus, _ in self.books("h1").values()))
        # The flavors of before are there still.
        left = {codes.FLAVOR_WITHOUT_UNITS, codes.CLASSLESS_PINNED}
        self.assertEqual({codes.FLAVOR_DIFFERS, *left}, self.found())
        new = self.boot(flavor_of(16))
        self.assertEqual("h2", new.host)
        self.assert_aligned(new)
        self.boot_refused(flavor_of(16))

        for host in ("h1", "h2"):
            self.unenroll(host, strip=True)
        for server in (*old, new):
            self.assertEqual([], self.claimed(server))
        self.assertEqual(["h1"], [*self.allocations(old[0])])

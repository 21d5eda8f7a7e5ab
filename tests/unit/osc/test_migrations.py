# SPDX-License-Identifier: Apache-2.0
"""``plan free``, ``plan drain`` and ``plan defragment``, of saved snapshots."""

import json
import re
from dataclasses import replace

from nova_perfvm.facts import snapshot
from nova_perfvm.facts.snapshot import Inventory
from nova_perfvm.measure.collect.collected import CommandOutput
from tests.unit.diagnose.explain.test_explain import UNITS
from tests.unit.facts.snapshot.clouds import HP, Cloud
from tests.unit.measure import hosts
from tests.unit.osc.base import CommandCase

COLUMNS = ["Step", "Server", "From", "To", "Migration", "Memory MiB"]


def page_cloud():
    """Return the cloud of the page: hosts with slots, one of them small."""
    cloud = Cloud()
    cloud.add_host("hp1")
    cloud.add_host("hp2")
    cloud.add_host("small", memory_gb=140)
    cloud.add_hp("db1", "hp1")
    cloud.add_hp("db2", "hp1", first=20, node=1, flavor="hp.20c.128g")
    cloud.add_hp("web1", "hp2", flavor="hp.20c.200g")
    cloud.add_hp("web2", "hp2", first=20, node=1)
    return cloud


class PlanCase(CommandCase):
    def plan(self, status, *arguments):
        """Return the rows of a plan."""
        options = ("--snapshot", self.path, "-f", "json")
        found = self.run_command("plan", *arguments, *options)
        self.assertEqual(status, found, self.stderr)
        return json.loads(self.stdout)


class PlansTest(PlanCase):
    def setUp(self):
        super().setUp()
        self.cloud = page_cloud()
        self.save(self.cloud)

    def test_room_for_a_server(self):
        (row,) = self.plan(0, "free", "--flavor", "hp.20c.200g")
        self.assertEqual(
            [1, "db1 (i-db1)", "hp1", "small", "live", 65536],
            [row[name] for name in COLUMNS],
        )
        self.assertEqual("yes", row["Pinned"])
        self.assertIn("--host small --wait i-db1", row["Commands"])
        self.assertIn("room for 1 more VM of hp.20c.200g", self.stderr)
        self.assertIn("PCI devices are not seen without --from-nova-db", self.stderr)
        self.assertIn("assumed symmetric", self.stderr)

    def test_table(self):
        """It fits a terminal, and tells servers of the same name apart."""
        arguments = ("plan", "drain", "hp1", "--snapshot", self.path)
        self.assertEqual(0, self.run_command(*arguments), self.stderr)
        self.assertIn("| web2   | hp2  | small | live ", self.stdout)
        self.assertNotIn("i-web2", self.stdout)
        self.assertGreaterEqual(100, max(map(len, self.stdout.splitlines())))
        before = self.cloud.snapshot()
        servers = [
            replace(server, name=server.name.replace("db1", "db").replace("db2", "db"))
            for server in before.servers
        ]
        text = snapshot.dumps(replace(before, servers=tuple(servers)))
        self.write("cloud.json", text)
        self.assertEqual(0, self.run_command(*arguments), self.stderr)
        self.assertIn("| db (i-db1) |", self.stdout)
        self.assertIn("| web2       |", self.stdout)

    def test_help_says_how_it_ends(self):
        self.assertEqual(0, self.run_command("plan", "drain", "--help"))
        self.assertIn("Exits with 0 if the plan is complete", self.stdout)

    def test_half_a_plan_and_none(self):
        rows = self.plan(1, "free", "--flavor", "hp.20c.200g", "--count", "3")
        self.assertEqual(2, len(rows))
        self.assertIn("make room for 3, only for 2", self.stderr)
        arguments = ("free", "--flavor", "hp.20c.200g", "--exclude", "small")
        self.assertEqual([], self.plan(2, *arguments))
        self.assertEqual([], self.plan(0, "free", "--flavor", HP))
        self.assertIn("no migration is needed", self.stderr)

    def test_drain(self):
        rows = self.plan(0, "drain", "hp1")
        # One of hp2 makes room for the larger one.
        moved = [(row["Server"], row["From"], row["To"]) for row in rows]
        self.assertIn(("web2 (i-web2)", "hp2", "small"), moved)
        self.assertIn(("db2 (i-db2)", "hp1", "hp2"), moved)
        rows = self.plan(1, "drain", "hp1", "--cold", "--exclude", "hp2")
        self.assertEqual(["cold"], [row["Migration"] for row in rows])
        self.assertIn("server migration confirm", rows[0]["Commands"])
        self.assertIn("stays: no host was found for it", self.stderr)

    def test_forecast(self):
        (row,) = self.plan(0, "free", "--flavor", "hp.20c.200g")
        self.assertEqual((1.1, "yes"), (row["Minutes"], row["Converges"]))
        self.assertLess(row["Downtime ms"], 50)
        self.assertIn("servers not measured: 1 of 1", self.stderr)
        conf = self.write("nova.conf", "[libvirt]\nlive_migration_bandwidth = 110\n")
        more = ("--compute-conf", conf, "--dirty-rate", "1")
        (row,) = self.plan(0, "free", "--flavor", "hp.20c.200g", *more)
        self.assertEqual(10.0, row["Minutes"])
        rows = self.plan(1, "free", "--flavor", "hp.20c.200g", "--dirty-rate", "5000")
        self.assertEqual(["no"], [row["Converges"] for row in rows])
        rows = self.plan(0, "free", "--flavor", "hp.20c.200g", "--cold")
        self.assertEqual([("", "")], [(r["Minutes"], r["Converges"]) for r in rows])
        self.assertNotIn("forecast", self.stderr)

    def test_measured_dirty_rates(self):
        line = f"virsh -r domstats --dirtyrate {hosts.UUIDS[0]}"
        free = ("free", "--flavor", "hp.20c.200g")
        for told, minutes in (
            ("calc_status=2 calc_period=1 megabytes_per_second=800", 2.5),
            ("calc_status=2 calc_period=1 megabytes_per_second=0", 1.0),
            # It is measuring, or has never.
            ("calc_status=1 calc_period=1 megabytes_per_second=800", 1.1),
            ("calc_status=0", 1.1),
            ("calc_status=2 calc_period=1", 1.1),
        ):
            lines = [f"  dirtyrate.{word}\n" for word in told.split()]
            output = CommandOutput(0, "".join(["Domain: 'x'\n", *lines]))
            host = hosts.roomy()
            host = replace(host, commands={**host.commands, line: output})
            text = hosts.as_json(host).replace(hosts.UUIDS[0], "i-db1")
            (row,) = self.plan(0, *free, "--collected", self.write("host.json", text))
            self.assertEqual(minutes, row["Minutes"], told)
            nobody = "servers not measured" in self.stderr
            known = "calc_status=2" in told and "megabytes" in told
            self.assertEqual(not known, nobody)

    def test_window(self):
        drain = ("drain", "hp1", "--bandwidth", "1100", "--window")
        for window, status, leaving in (("1h", 0, 2), ("2m", 1, 1), ("1m", 2, 0)):
            rows = self.plan(status, *drain, window)
            left = [row["Server"] for row in rows if row["From"] == "hp1"]
            self.assertEqual(["db1 (i-db1)", "db2 (i-db2)"][:leaving], left)
            said = f"{leaving} of 2 servers leave hp1" if leaving else "no plan"
            self.assertIn(said, self.stderr)
            # What makes way for the second is left out with it.
            self.assertEqual(3 if leaving == 2 else leaving, len(rows))
            # The notes are about the migrations that are planned.
            targets = {row["To"] for row in rows}
            said = re.findall("the fullest target afterwards is ([^:]*)", self.stderr)
            self.assertEqual(bool(targets), bool(said))
            self.assertLessEqual(set(said), targets)
            gap = "no plan gains more" if leaving == 2 else "at most 2 servers are"
            self.assertIn(gap, self.stderr)
        self.assertIn("db1 (i-db1) stays: its migration takes 1.1 minutes", self.stderr)
        self.assertIn("1.0 of the window are left", self.stderr)
        self.assertEqual([], self.plan(2, *drain, "9h", "--dirty-rate", "5000"))
        self.assertIn("its live migration does not converge", self.stderr)
        self.assertIn("assumed to write 5000 MiB/s", self.stderr)
        # Cold ones take a minute each.
        self.assertEqual(3, len(self.plan(0, *drain, "3m", "--cold")))
        self.assertEqual(1, len(self.plan(1, *drain, "2m", "--cold")))

    def test_defragment(self):
        cloud = Cloud(UNITS)
        for name in ("e1", "e2"):
            cloud.add_elastic(name)
            cloud.change_inventories(name, VCPU=Inventory(160, 160))
            cloud.add_general(f"g-{name}", name)
            cloud.allocate_units(f"i-g-{name}", name)
            held = {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 40}
            cloud.allocate(f"i-g-{name}", name, held)
        self.save(cloud)
        policy = self.file('schema_version: "1.0"\nplacement: units\n')
        rows = self.plan(0, "defragment", "--budget", "1", "--policy", policy)
        self.assertEqual(1, len(rows))
        self.assertIn("2 more free slots of class high-performance", self.stderr)
        arguments = ("defragment", "--budget", "1", "--policy", policy)
        self.plan(2, *arguments, "--exclude", "e1")

    def test_no_order_of_migrations(self):
        cloud = Cloud(UNITS)
        for name, slots in (("e1", 2), ("e2", 1)):
            cloud.add_elastic(name, slots)
        cloud.add_general("g", "e1")
        cloud.allocate_units("i-g", "e1")
        cloud.add_hp("h", "e2")
        cloud.allocate("i-h", "e2", {"VCPU": 20, "MEMORY_MB": 65536})
        cloud.allocate("i-h", "e2_perfvm_a", {"CUSTOM_PERFVM_UNIT": 1000})
        self.save(cloud)
        policy = self.file('schema_version: "1.0"\nplacement: units\n')
        free = ("free", "--flavor", HP, "--policy", policy)
        self.assertEqual([], self.plan(2, *free))
        # Each host takes one of them only after the other has left.
        words = "0 more VMs by 0 migrations; at most 1 more VM is possible"
        self.assertIn(words, self.stderr)
        self.plan(2, *free, "--exclude", "h")
        self.assertIn("no plan exists", self.stderr)

    def test_a_host_whose_cell_is_down(self):
        self.cloud.parts["unseen_hosts"] = ("hp9",)
        self.save(self.cloud)
        for command in (["drain", "hp9"], ["what-if", "--remove", "hp9"]):
            arguments = ("plan", *command, "--snapshot", self.path)
            self.assert_refused(3, "of host hp9: its cell is down", *arguments)

    def test_mistakes(self):
        free, drain = ("free", "--flavor", HP), ("drain", "hp1")
        record = self.directory / "plan.json"
        for words, *arguments in (
            ("--exclude x: there is no such", *free, "--exclude", "x"),
            ("no flavor 'x'", "free", "--flavor", "x"),
            ("no compute host 'x' (the nearest: ", "drain", "x"),
            ("is not pinned", "defragment", "--budget", "1", "--class", "general"),
            ("expected a whole number above 0", *free, "--count", "0"),
            ("expected a number above 0", *drain, "--max-ratio", "0"),
            ("--execute needs a cloud", *drain, "--execute"),
            ("'2': expected hours or minutes", *drain, "--window", "2"),
            ("'0h': expected hours or minutes", *drain, "--window", "0h"),
            ("expected a number above 0", *drain, "--bandwidth", "0"),
            ("are for --execute", *drain, "--yes"),
            ("are for --execute", *drain, "--policy-changed"),
            ("are for --execute", *drain, "--record", str(record)),
        ):
            told = ("--snapshot", self.path)
            self.assert_refused(3, words, "plan", *arguments, *told)
        self.assertFalse(record.exists())
        record.write_text("{}")
        again = ("plan", *drain, "--execute", "--record", str(record))
        self.assert_refused(3, "the file exists already", *again)


class ExplainTest(PlanCase):
    """``explain`` names the migrations where a server is refused."""

    def explained(self, status, *arguments):
        """Return what is said beside the table."""
        options = ("--snapshot", self.path)
        self.assertEqual(status, self.run_command("explain", *arguments, *options))
        return self.stderr

    def test_migrations_that_make_room(self):
        self.save(page_cloud())
        (row,) = self.plan(0, "free", "--flavor", "hp.20c.200g")
        said = self.explained(1, "--flavor", "hp.20c.200g")
        self.assertIn("room by 1 migration", said)
        self.assertIn(row["Commands"], said)
        # It knows of hosts that were not asked about.
        said = self.explained(1, "--flavor", HP, "--host", "hp1")
        self.assertIn("there is room for it on another host", said)

    def test_no_hosts(self):
        cloud = Cloud()
        group = cloud.add_group("affinity")
        self.save(cloud)
        said = self.explained(1, "--flavor", HP)
        self.assertIn("there are no compute hosts", said)
        self.assertEqual([], self.plan(2, "defragment", "--budget", "1"))
        self.assertIn("there are no compute hosts", self.stderr)
        self.plan(2, "free", "--flavor", HP, "--server-group", group)
        self.assertIn("there are no compute hosts", self.stderr)

    def test_none_does(self):
        cloud = Cloud()
        cloud.add_host("hp1")
        cloud.add_hp("db1", "hp1")
        cloud.add_hp("db2", "hp1", first=20, node=1)
        self.save(cloud)
        said = self.explained(1, "--flavor", HP)
        self.assertIn("no plan of 3 migrations or fewer makes room", said)

# SPDX-License-Identifier: Apache-2.0
"""Audits of Watcher that plan migrations, and their action plans carried out."""

import fixtures

from nova_perfvm import constants as const
from tests.functional.base import HP_64
from tests.watcher.base import WatcherCase

PRE_LIVE = "nova.virt.libvirt.driver.LibvirtDriver.pre_live_migration"


class TestPlans(WatcherCase):
    HOSTS = {"e1": 2, "e2": 1, "e3": 1}  # noqa: RUF012

    def test_held_planned_in_order_and_made(self):
        (running,), (stopped,) = self.general["e2"], self.general["e3"]
        self.servers.act(stopped, {"os-stop": None}, "SHUTOFF")
        audit = self.create()
        self.assertEqual((4, 0), self.found(self.audit(audit)))
        self.assertEqual((4, 0), self.found(self.audit(audit, minute=59)))

        plan = self.audit(audit, minute=61)

        self.assertEqual((4, 2), self.found(plan))
        self.assertEqual("RECOMMENDED", plan.state)
        first, second = plan.actions
        self.assertEqual(([], [first["uuid"]]), (first["parents"], second["parents"]))
        self.assertEqual(
            {
                (running.id, "live", "e2", "e1", running.name),
                (stopped.id, "cold", "e3", "e1", stopped.name),
            },
            {
                (
                    action["resource_id"],
                    action["migration_type"],
                    action["source_node"],
                    action["destination_node"],
                    action["resource_name"],
                )
                for action in plan.actions
            },
        )

        made = self.execute(plan, minute=61)

        self.assertEqual("SUCCEEDED", made.state, made.actions)
        self.assertEqual(("ACTIVE", "e1"), self.where(running))
        self.assertEqual(("SHUTOFF", "e1"), self.where(stopped))
        self.assertEqual((0, 0), self.found(self.audit(audit, minute=62)))
        # Until its next report, e3 counts the server that left it by a cold migration.
        self.cloud.run_periodics()
        for _ in range(4):
            self.boot(HP_64)

    def test_budget_of_a_day(self):
        audit = self.create(hold_minutes=0, migrations_per_day=1)
        plan = self.audit(audit)
        self.assertEqual((2, 1), self.found(plan))
        self.assertEqual("SUCCEEDED", self.execute(plan).state)

        self.assertEqual((2, 0), self.found(self.audit(audit, minute=60)))
        # That of other audits, too.
        other = self.create(hold_minutes=0, migrations_per_day=1)
        self.assertEqual((2, 0), self.found(self.audit(other, minute=60)))
        self.assertEqual((2, 1), self.found(self.audit(audit, minute=24 * 60 + 1)))

    def test_less_than_is_wanted(self):
        for wishes, found in (
            ({"threshold": 4}, (4, 2)),
            ({"threshold": 5}, (4, 0)),
            ({"threshold": 4, "migrations_per_day": 1}, (2, 0)),
            # One host is emptied, and no other one.
            ({"keep_free": 1}, (1, 1)),
            ({"keep_free": 1, "threshold": 2}, (1, 0)),
        ):
            audit = self.create(hold_minutes=0, **wishes)
            self.assertEqual(found, self.found(self.audit(audit)))

    def test_an_action_that_fails(self):
        audit = self.create(hold_minutes=0, migrations_per_day=3)
        plan = self.audit(audit)
        calls = []

        def fail(*_args, **_options):
            calls.append(1)
            raise RuntimeError("no such bridge")

        with fixtures.MonkeyPatch(PRE_LIVE, fail):
            made = self.execute(plan)

        # Watcher tries the others all the same.
        states = [action["state"] for action in made.actions]
        self.assertEqual(
            ("FAILED", ["FAILED"] * 2, 2), (made.state, states, len(calls))
        )
        self.assertEqual(("ACTIVE", "e2"), self.where(*self.general["e2"]))
        # One is left of the day's; it makes room for two.
        self.assertEqual((4, 1), self.found(self.audit(audit, minute=5)))
        audit = self.create(hold_minutes=0, migrations_per_day=3, threshold=3)
        self.assertEqual((4, 0), self.found(self.audit(audit, minute=5)))


class TestNeeds(WatcherCase):
    def test_a_need_that_went_away_counts_anew(self):
        audit = self.create()
        (service,) = self.cloud.api.get_services(host="e1", binary="nova-compute")
        found = []
        for minute, status in (
            (0, "enabled"),
            (30, "disabled"),
            (45, "enabled"),
            (61, "enabled"),
            (106, "enabled"),
        ):
            self.cloud.api.put_service(service["id"], {"status": status})
            found.append(self.found(self.audit(audit, minute=minute)))
        self.assertEqual([(2, 0), (0, 0), (2, 0), (2, 0), (2, 1)], found)

    def test_a_single_audit_knows_no_earlier_one(self):
        audit = self.create(kind="ONESHOT")
        plan = self.audit(audit, state="SUCCEEDED")
        self.assertEqual((2, 1), self.found(plan))

    def test_the_scope_of_an_audit(self):
        (server,) = self.general["e2"]
        for left_out, gained in (
            ({"compute_nodes": [{"name": "e1"}]}, 0),
            ({"instances": [{"uuid": server.id}]}, 2),
        ):
            scope = [{"compute": [{"exclude": [left_out]}]}]
            plan = self.audit(self.create(scope=scope, hold_minutes=0))
            self.assertEqual(gained, self.found(plan)[0])
            self.assertNotIn(server.id, self.moved(plan))

    def test_paused_servers_stay(self):
        (server,) = self.general["e2"]
        self.servers.act(server, {"pause": None}, "PAUSED")
        plan = self.audit(self.create(hold_minutes=0))
        self.assertEqual((2, 2), self.found(plan))
        self.assertNotIn(server.id, self.moved(plan))

    def test_the_hosts_nodes(self):
        """None of which has room for a server that owns 20 CPUs."""
        path = self.directory / "inventory.yaml"
        cells = ", ".join(
            f"{{dedicated: {n}0-{n}9, shared: {n}0-{n}9, memory_gb: 125}}"
            for n in range(4)
        )
        hosts = "\n".join(f"  {name}: {{cells: [{cells}]}}" for name in self.HOSTS)
        path.write_text(f'kind: inventory\nschema_version: "1.0"\nhosts:\n{hosts}\n')
        told = f"{self.conf.read_text()}inventory_file = {path}\n"
        self.conf.write_text(told)
        plan = self.audit(self.create(hold_minutes=0))
        self.assertEqual((0, 0), self.found(plan))

    def test_another_policy(self):
        aggregate = {"name": const.POLICY_AGGREGATE, "availability_zone": None}
        made = self.cloud.api.post_aggregate({"aggregate": aggregate})
        metadata = {"set_metadata": {"metadata": {const.POLICY_KEY: "0" * 64}}}
        self.cloud.api.post_aggregate_action(made["id"], metadata)

        found = self.watcher("audit", uuid=self.create())

        self.assertEqual({"state": "FAILED", "plan": None}, found)
        log = (self.directory / "watcher.log").read_text()
        self.assertIn("the cloud was changed by another policy, a policy", log)
        self.assertIn("set [watcher_strategies.perfvm_defragment]policy_file", log)

# SPDX-License-Identifier: Apache-2.0
"""Plans in a cloud of server groups, carried out on processes of their own.

Servers of all policies come and go by chance, until the client has carried out
PERFVM_GROUP_PLANS (100) plans that migrate something.  What Nova says of its
migrations is replayed: no step may break a group, and afterwards guests, Placement's
books and the audit have to agree.  PERFVM_RANDOM_SEED says which servers and plans.
"""

import collections
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fixtures
import sqlalchemy as sa
from openstackclient import shell

from nova_perfvm.osc import audit, migrations  # noqa: F401 - imported once, for all
from tests import console, judge
from tests.processes import waiting
from tests.sandbox import base, storms

COUNT = int(os.environ.get("PERFVM_GROUP_PLANS", "100"))
SEED = os.environ.get("PERFVM_RANDOM_SEED")
# Policies of the groups of each class; a number is max_server_per_host.
GROUPS = (
    ("affinity", None),
    ("anti-affinity", None),
    ("anti-affinity", 2),
    ("soft-affinity", None),
    ("soft-anti-affinity", None),
)
# Of no group and of these: where they are large, policies stand in the way.
WEIGHTS = (1, 1, 4, 4, 3, 3)
FLAVORS = {
    "hp": ("hp.20c.64g", "hp.20c.128g"),
    "g": ("g.1c.2g", "g.2c.4g", "g.4c.8g", "g.8c.16g"),
}
FEW, MANY = 8, 12
# Before servers come and go again.
PLANS_AT_ONCE = 6
# What Nova does in the background after a migration, it does within this.
SETTLE_S = 60
# A nova-scheduler may count a server where it was until nova-compute's next report
# (scheduler_instance_sync_interval), and then finds no host for another of its group.
SYNC_S = 20
_MICROVERSION = "2.86"


class PlansInGroupsTest(storms.StormTest):
    HOSTS = "3xelastic:2x20,1xshared:2x20"

    def setUp(self):
        super().setUp()
        self.hosts = [host.name for host in self.sandbox.settings.pretended]
        self.connection = self.sandbox.connect()
        self.image = self.connection.image.find_image("guest").id
        self.flavors = {found.name: found.id for found in self.compute.flavors()}
        self.placement = sa.create_engine(
            self.sandbox.settings.database_url("placement")
        )
        self.addCleanup(self.placement.dispose)
        self.counts = collections.Counter()
        self.records = Path(self.useFixture(fixtures.TempDir()).path)
        self.groups = {
            kind: [self.make_group(policy, most) for policy, most in GROUPS]
            for kind in FLAVORS
        }

    def command(self, program, *arguments, check=True):
        """Run the client in a fork of this process, which has imported most of it."""
        self.assertEqual(("openstack", False), (program, check))
        with (
            tempfile.TemporaryFile("w+") as stdout,
            tempfile.TemporaryFile("w+") as stderr,
        ):
            pid = os.fork()
            if pid == 0:
                _become_client(arguments, self.client_environment(), stdout, stderr)
            _, status = os.waitpid(pid, 0)
            texts = []
            for file in (stdout, stderr):
                file.seek(0)
                texts.append(file.read())
            code = os.waitstatus_to_exitcode(status)
            return subprocess.CompletedProcess(arguments, code, *texts)

    def make_group(self, policy, most):
        group = {"name": policy, "policy": policy}
        if most is not None:
            group["rules"] = {"max_server_per_host": most}
        made = self.post("/os-server-groups", {"server_group": group})
        group = made["server_group"]["id"]
        self.addCleanup(self.compute.delete, f"/os-server-groups/{group}")
        return group

    def post(self, path, body):
        answer = self.compute.post(path, json=body, microversion=_MICROVERSION)
        self.assertLess(answer.status_code, 300, answer.text)
        return answer.json() if answer.content else None

    def test_no_plan_breaks_a_group(self):
        seed = int(SEED or random.SystemRandom().randrange(10**6))
        self.random = random.Random(seed)
        base.tell(f"{COUNT} plans, seed {seed}")
        while self.counts["plans"] < COUNT:
            self.change()
            for _ in range(PLANS_AT_ONCE):
                # Where one plan has nothing to do, most others have not, either.
                if self.counts["plans"] == COUNT or not self.carry_out(*self.draw()):
                    break
        if COUNT < 100:
            # Few plans may by chance meet no group that stands in their way.
            return
        for policy in ("anti-affinity", "soft-affinity", "soft-anti-affinity"):
            self.assertGreater(self.counts[f"steps of {policy}"], 0, self.counts)
        self.assertGreater(self.counts["steps another host would break"], 0)

    # What there is

    def change(self):
        """Delete some servers and make others, each in one of the groups or in none."""
        servers = self.all_servers()
        gone = [s for s in servers if s["status"] == "ERROR"]
        rest = [s for s in servers if s["status"] != "ERROR"]
        most = len(rest) - FEW
        if most > 0:
            gone += self.random.sample(rest, self.random.randint(0, min(most, 3)))
        self.take_away(gone)
        wanted = self.random.randint(1, 3)
        for _ in range(min(wanted, MANY - len(servers) + len(gone))):
            self.ask()
        self.await_built()
        for server in self.all_servers():
            if server["status"] == "ACTIVE" and self.random.random() < 0.05:
                path = f"/servers/{server['id']}/action"
                self.post(path, {"os-stop": None})
        waiting.until(self.settled_all, "servers to stop", base.SECONDS)
        self.take_away(s for s in self.all_servers() if s["status"] == "ERROR")

    def take_away(self, servers):
        self.servers = [server["id"] for server in servers]
        base.SandboxTest.delete_all(self)

    def settled_all(self):
        return all(s["OS-EXT-STS:task_state"] is None for s in self.all_servers())

    def ask(self):
        kind = self.random.choice(("hp", "g", "g"))
        group = self.random.choices([None, *self.groups[kind]], WEIGHTS)[0]
        server = {
            "name": kind,
            "flavorRef": self.flavors[self.random.choice(FLAVORS[kind])],
            "imageRef": self.image,
            "networks": "none",
        }
        if self.random.random() < 0.7:
            server["host"] = self.random.choice(self.hosts)
        body = {"server": server}
        if group is not None:
            body["os:scheduler_hints"] = {"group": group}
        self.post("/servers", body)

    # Plans

    def draw(self):
        """Return the name and the options of a plan."""
        name = self.random.choice(("free", "drain", "drain", "drain", "defragment"))
        if name == "drain":
            # One with few servers: plans are to be many, not long.
            on = collections.Counter(self.placed().values())
            return name, self.random.choice(sorted(on, key=lambda h: (on[h], h))[:2])
        if name == "defragment":
            return name, "--budget", str(self.random.randint(1, 3))
        kind = self.random.choice(("hp", "hp", "g"))
        options = ["--flavor", self.random.choice(FLAVORS[kind])]
        options += ["--count", str(self.random.randint(1, 3))]
        if self.random.random() < 0.3:
            options += ["--server-group", self.random.choice(self.groups[kind])]
        return name, *options

    def carry_out(self, name, *options):
        """Let the client make a plan and carry it out; judge each of its steps.

        Return whether it had any.
        """
        groups = judge.groups(self.connection)
        before = self.placed()
        known = {found["id"] for found in self.migrations()}
        record = str(self.records / f"{len(known)}-{self.counts['plans']}.json")
        rows, said = self.plan(name, *options, "--execute", "--record", record)
        if rows and {row["State"] for row in rows} != {"done"}:
            base.tell(said)
            self.counts["plans resumed"] += 1
            time.sleep(SYNC_S)
            rows, said = self.plan("resume", record)
        made = [found for found in self.migrations() if found["id"] not in known]
        made = [found for found in made if found["status"] != "error"]
        if not rows:
            self.counts["plans of nothing"] += 1
            self.assertEqual([], made)
            return False
        self.assertEqual({"done"}, {row["State"] for row in rows}, said)
        self.counts["plans"] += 1
        self.counts[f"plans of {name}"] += 1
        self.assertEqual(len(rows), len(made), made)
        hosts = before
        for step in sorted(made, key=lambda found: found["id"]):
            hosts = self.judge_step(groups, hosts, step)
        self.assertEqual(hosts, self.placed())
        self.judge_end()
        base.tell(f"{name} {' '.join(options)}: {len(rows)} steps; {dict(self.counts)}")
        return True

    def plan(self, *arguments):
        """Let the client do something about a plan; return its rows and its words."""
        result = self.command(
            *("openstack", "perfvm", "plan", *arguments, "--yes", "-f", "json"),
            check=False,
        )
        self.assertNotIn("Traceback", result.stderr)
        self.assertIn(result.returncode, {0, 1, 2}, result.stderr)
        return json.loads(result.stdout), result.stderr

    def judge_step(self, groups, before, step):
        """Replay a migration; return where servers are after it."""
        server, target = step["instance_uuid"], step["dest_compute"]
        self.assertIn(step["status"], {"completed", "confirmed"}, step)
        self.assertEqual(before[server], step["source_compute"], step)
        after = before | {server: target}
        self.counts["steps"] += 1
        self.counts[f"{step['migration_type']} steps"] += 1
        for group in groups:
            self.assertFalse(group.broken(after, before), (group, step, before))
            if server not in group.members:
                continue
            self.counts[f"steps of {group.policy}"] += 1
            others = [before | {server: host} for host in self.hosts]
            if any(group.broken(other, before) for other in others):
                self.counts["steps another host would break"] += 1
        return after

    def judge_end(self):
        """Judge the cloud by the guests' XML, Placement's books and the audit."""
        self.assertEqual([], self.complaints())
        placed = self.placed()
        self.assertEqual(placed, {guest.id: guest.host for guest in self.guests()})

        def booked():
            with self.placement.connect() as connection:
                books = judge.books_in(connection)
            return not books.over and books.consumers == set(placed)

        waiting.until(booked, "Placement's books to agree", SETTLE_S)
        self.assertEqual([], self.audit())
        self.counts["clean audits"] += 1

    def placed(self):
        return {s["id"]: base.host_of(s) for s in self.all_servers()}

    def migrations(self):
        answer = self.compute.get("/os-migrations", microversion="2.59")
        self.assertEqual(200, answer.status_code, answer.text)
        return answer.json()["migrations"]


def _become_client(arguments, environment, stdout, stderr):
    """Be the openstack client; never return."""
    status = -1
    try:
        os.environ.clear()
        os.environ.update(environment)
        for number, file in ((1, stdout), (2, stderr)):
            os.dup2(file.fileno(), number)
        sys.stdout, sys.stderr = stdout, stderr
        # Nova's own tests, which others here import, log to standard output.
        logging.root.handlers.clear()
        # Other tests of this process asked clouds of their own.
        console.forget_clients()
        status = shell.main(list(arguments))
        stdout.flush()
        stderr.flush()
    finally:
        os._exit(status)

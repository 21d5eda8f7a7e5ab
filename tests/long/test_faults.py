# SPDX-License-Identifier: Apache-2.0
"""What a process that dies in mid-storm leaves behind."""

import collections
import datetime as dt
import json
import time
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa

from nova_perfvm import findings as codes
from tests import judge
from tests.processes import computes, waiting
from tests.sandbox import base, clients, storms

# Half a minute more than [DEFAULT]rpc_response_timeout, after which Nova
# gives up what a dead process had in hand.
QUIET_S = 90
SERVERS = storms.SERVERS // 3


class FaultsTest(storms.StormTest):
    """kill -9, some seconds of outage, and a start."""

    HOSTS = "4xelastic:2x20,2xdedicated:2x20"
    OPTIONS = {"schedulers": 3}  # noqa: RUF012

    def test_scheduler(self):
        self.storm_with_outage(lambda: "nova-scheduler-1")

    def test_conductor(self):
        self.storm_with_outage(lambda: "nova-conductor")

    def test_compute(self):
        self.storm_with_outage(self.busy_compute)

    def test_rabbitmq(self):
        self.storm_with_outage(lambda: "rabbitmq")

    def test_all_is_stopped_and_started(self):
        """Data are kept: the same cloud comes back, guests and all."""
        server = self.boot(storms.HP)
        self.stop(self.sandbox)
        self.sandbox.up()
        self.assertEqual("ACTIVE", self.show(server["id"])["status"])
        self.assert_high_performance(server)

    def storm_with_outage(self, choose):
        """Kill in mid-storm; nothing may be lost, and the audit names what is left.

        :param choose: called in mid-storm, gives the name of a process
        """
        calls = self.calls(self.id(), SERVERS)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(clients.ask, self.cloud, calls, storms.CLIENTS)
            self.await_some_running()
            name = choose()
            self.sandbox.processes.kill(name)
            base.tell(f"{name} was killed")
            time.sleep(5)
            self.sandbox.start(name)
            since = dt.datetime.now(dt.UTC)
            answers = asked.result()
        self.await_quiet()
        # One may wait in vain for an answer that RabbitMQ lost.  When that takes
        # too long, Nova deletes its servers without it, and their guests run on.
        computes.await_reports(
            self.sandbox.processes,
            self.sandbox.connect(),
            self.sandbox.settings.pretended,
            since,
        )

        servers = {server["id"]: server for server in self.all_servers()}
        base.tell(str(collections.Counter(s["status"] for s in servers.values())))
        promised = 0
        for call, answer in zip(calls, answers, strict=True):
            # After 5xx the client knows that it has to look.
            self.assertIn(answer.status // 100, {2, 5}, answer.text)
            if answer.status == 202:
                self.assertIn(json.loads(answer.text)["server"]["id"], servers)
                promised += call.body["server"]["max_count"]
        self.assertGreaterEqual(len(servers), promised)
        findings = self.audit("--stuck-after", "0")
        for found in findings:
            base.tell(" ".join(found))
        self.repair(self.judge(servers, findings))
        self.delete_all()
        self.assertEqual([], self.audit())
        self.assertEqual("ACTIVE", self.boot(storms.HP)["status"])

    def repair(self, hosts):
        """Do what the audit says; last for servers that lost their allocation."""
        rest = [s for s in self.all_servers() if s["status"] != "ACTIVE"]
        self.delete(rest, still=self.forget)
        active = {server["id"] for server in self.all_servers()}

        def alone():
            guests = self.guests()
            return {guest.host for guest in guests if guest.id not in active}

        for host in alone():
            # It looks for such guests when it starts, and then each half hour.
            self.sandbox.processes.stop([computes.PREFIX + host])
            self.sandbox.start(computes.PREFIX + host)
        waiting.until(
            lambda: not alone(), "guests without servers to end", base.SECONDS
        )
        for host in hosts:
            policy = str(self.sandbox.layout.policy)
            enroll = ("openstack", "perfvm", "host", "enroll", host, "--backfill")
            self.command(*enroll, "--policy", policy, "--yes")
        self.assertEqual([], self.audit("--stuck-after", "0"))

    def forget(self, server):
        """Take off Nova's list what is deleted, and stays there for ever.

        A conductor that dies while it buries a server in cell0 leaves the request to
        build it, or the buried server without its place.  Once the server is deleted,
        no API finds it any more.
        """
        if self.compute.get(f"/servers/{server}").status_code != 404:
            return
        for database, left in (
            ("nova_api", "DELETE FROM build_requests WHERE instance_uuid = :server"),
            ("nova_cell0", "UPDATE instances SET deleted = id WHERE uuid = :server"),
        ):
            engine = sa.create_engine(self.sandbox.settings.database_url(database))
            self.addCleanup(engine.dispose)
            with engine.begin() as connection:
                if connection.execute(sa.text(left), {"server": server}).rowcount:
                    base.tell(f"{server} was deleted, and still listed")

    def judge(self, servers, findings):
        """Compare what is with what the audit says; return the hosts to repair."""
        placed = {i for i, s in servers.items() if base.host_of(s)}
        found = self.guests()
        guests = {guest.id: guest.host for guest in found}
        hosts = self.sandbox.settings.pretended
        known = [guest for guest in found if guest.id in placed]
        self.assertEqual([], judge.complaints(hosts, known))
        books = self.books()
        self.assertEqual((), books.over)
        active = {
            server["id"]: base.host_of(server)
            for server in servers.values()
            if server["status"] == "ACTIVE"
        }
        # Each that runs has its guest.
        self.assertEqual(active, {i: guests.get(i) for i in active})
        named = collections.defaultdict(set)
        for code, subject, _ in findings:
            named[code].add(subject.rpartition("(")[2].removesuffix(")"))
        unsettled = {
            i for i, s in servers.items() if s["status"] not in {"ACTIVE", "ERROR"}
        }
        self.assertEqual(unsettled, named.pop(codes.STUCK, set()))
        self.assertEqual(
            books.consumers - placed - unsettled,
            named.pop(codes.LEAKED_ALLOCATION, set()),
        )
        # A conductor that dies between noting a server active and telling
        # nova-compute so lets that give the allocation back.
        lost = {i: host for i, host in active.items() if i not in books.consumers}
        self.assertEqual(lost.keys(), named.pop(codes.ALLOCATION_MISSING, set()))
        self.assertEqual(set(lost.values()), named.pop(codes.UNITS_LACKING, set()))
        # One that dies before leaves a guest of which Nova knows nothing.
        alone = guests.keys() - placed
        self.assertEqual(set(), alone - named.pop(codes.BUILD_CUT_OFF, set()))
        self.assertEqual({}, named)
        return set(lost.values())

    def busy_compute(self):
        """Return the compute of a host on which a server is just being built."""
        hosts = []

        def found():
            servers = self.listed("/servers/detail?all_tenants=1")
            building = [s for s in servers if s["status"] == "BUILD"]
            if not building:
                base.tell("nothing is built any more: a host with servers has to do")
            hosts.extend(filter(None, map(base.host_of, building or servers)))
            return hosts

        waiting.until(found, "a host to build a server", base.SECONDS)
        return computes.PREFIX + hosts[0]

    def await_some_running(self):
        path = "/servers?all_tenants=1&limit=3&status=ACTIVE"
        waiting.until(lambda: len(self.listed(path)) == 3, "servers", base.SECONDS)

    def await_quiet(self):
        """Wait until nothing is under way, or nothing of it changes any more."""
        last, since = None, time.monotonic()
        while last != [] and time.monotonic() - since < QUIET_S:
            time.sleep(2)
            state = [
                (server["id"], server["status"], server["OS-EXT-STS:task_state"])
                for server in self.all_servers()
                if server["status"] not in {"ACTIVE", "ERROR"}
            ]
            if state != last:
                last, since = state, time.monotonic()

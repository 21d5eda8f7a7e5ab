# SPDX-License-Identifier: Apache-2.0
"""Storms: hundreds of servers asked for at once, and what came of them."""

import collections
import os
import random

from tests import judge
from tests.processes import waiting
from tests.processes.errors import SandboxError
from tests.sandbox import base, clients, looking
from tests.sandbox.base import GENERAL, HP

CLIENTS = 6
# More want to be alone on a host than want company.
FLAVORS = (HP, HP, HP, GENERAL)
# One request can ask for several servers.
COUNTS = (1, 1, 1, 3)
SERVERS = int(os.environ.get("PERFVM_SANDBOX_STORM", "60"))

_ALL = "all_tenants=1"


class StormTest(looking.LookingMixin, base.SandboxTest):
    """Tests that fill a cloud, judge it and empty it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cloud = cls.sandbox.settings.cloud

    def calls(self, seed, servers=SERVERS, flavors=FLAVORS, hosts=(None,)):
        """Return requests for about so many servers, as the seed has it.

        :param hosts: names of hosts that are demanded, None for any
        """
        rng = random.Random(seed)
        made = {flavor: self.request(flavor) for flavor in set(flavors)}
        calls = []
        while servers > 0:
            count = rng.choice(COUNTS)
            body = made[rng.choice(flavors)] | {"max_count": count}
            host = rng.choice(hosts)
            if host is not None:
                body["host"] = host
            calls.append(clients.Call("POST", "/servers", {"server": body}))
            servers -= count
        return calls

    def storm(self, calls):
        """Make all calls at once; return the servers when Nova is done."""
        answers = clients.ask(self.cloud, calls, CLIENTS)
        statuses = collections.Counter(answer.status for answer in answers)
        self.assertEqual({202: len(calls)}, statuses)
        self.await_built()
        servers = self.all_servers()
        count = collections.Counter(
            f"{server['status']} {server['name'].split('.')[0]}" for server in servers
        )
        base.tell(f"{len(calls)} requests for {len(servers)} servers: {dict(count)}")
        return servers

    def all_servers(self):
        """Return every server of the cloud."""
        return self.listed(f"/servers/detail?{_ALL}")

    def listed(self, path):
        response = self.compute.get(path, microversion="2.86")
        self.assertEqual(200, response.status_code, response.text)
        return response.json()["servers"]

    def await_built(self, seconds=base.SECONDS * 4):
        """Wait until nothing is being built."""
        self.await_none(f"/servers?{_ALL}&limit=1&status=BUILD", "builds", seconds)

    def await_none(self, path, what, seconds=base.SECONDS * 4):
        waiting.until(lambda: not self.listed(path), f"{what} to end", seconds)

    def delete(self, servers, still=None):
        """Delete servers, and wait until they are gone.

        :param still: called with the ID of each that is still listed
        """
        asked = {server["id"] for server in servers}
        calls = [clients.Call("DELETE", f"/servers/{server}") for server in asked]
        clients.ask(self.cloud, calls, 2)

        left = []

        def ended():
            left[:] = [one for one in self.all_servers() if one["id"] in asked]
            for server in left if still else ():
                still(server["id"])
            return not left

        try:
            waiting.until(ended, "servers to end", base.SECONDS * 4)
        except SandboxError as exc:
            states = [
                f"{one['id']} {one['status']}, task {one['OS-EXT-STS:task_state']}, "
                f"on {base.host_of(one)}"
                for one in left
            ]
            raise SandboxError(f"{exc}: {'; '.join(states)}") from None

    def delete_all(self):
        """Delete every server of the cloud; nothing may be left of them."""
        self.delete(self.all_servers())
        self.assertEqual([], self.guests())
        self.assertEqual(frozenset(), self.books().consumers)

    # Judgements

    def books(self):
        return judge.books(self.sandbox.connect())

    def guests(self):
        """Return the guests of all hosts."""
        return [
            judge.guest(host.name, path.read_text(encoding="utf-8"))
            for host in self.sandbox.settings.pretended
            for path in sorted(self.sandbox.layout.domains(host.name).glob("*.xml"))
        ]

    def complaints(self):
        """List what is wrong with the guests."""
        hosts = self.sandbox.settings.pretended
        return judge.complaints(hosts, self.guests())

    def audit(self, *options):
        """Return (code, subject, evidence) of what the audit finds."""
        _, rows, _ = super().audit(*options)
        return [(row["Code"], row["Subject"], row["Observed"]) for row in rows]

    def assert_invariants(self, servers):
        """Judge the cloud by the guests' XML, Placement's books and the audit."""
        self.assertEqual(set(), {s["status"] for s in servers} - {"ACTIVE", "ERROR"})
        self.assertEqual([], self.complaints())
        placed = {s["id"]: base.host_of(s) for s in servers if base.host_of(s)}
        guests = {guest.id: guest.host for guest in self.guests()}
        self.assertEqual(placed, guests)
        books = self.books()
        self.assertEqual((), books.over)
        self.assertEqual(set(placed), books.consumers)
        self.assertEqual([], self.audit())


def running(servers, flavor):
    """Count the servers of a flavor that run."""
    return sum(
        server["status"] == "ACTIVE" and server["name"].startswith(flavor)
        for server in servers
    )

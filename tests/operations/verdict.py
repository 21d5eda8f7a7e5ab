# SPDX-License-Identifier: Apache-2.0
"""What must be true after every operation, asked of nobody's rules.

It is said here once more what a VM of either class has to hold in Placement: what
Nova lists, the XML that it gave to libvirt, and Placement's books have to agree.
"""

import collections
import time
from typing import NamedTuple

from placement import db_api

from tests import judge

UNITS = 1000
# What Nova does in the background after an operation, it does within this.
SETTLE_S = 60


class Host(NamedTuple):
    """A pretended host, with what tests/judge.py asks of one."""

    name: str
    mode: str
    shape: object
    memory_gb: int = 500
    slots: int | None = None


class Server(NamedTuple):
    """A server as Nova lists it, with the flavor that it was made with."""

    id: str
    name: str
    status: str
    host: str | None
    flavor: str
    vcpus: int
    memory_mb: int
    disk_gb: int

    @property
    def high(self):
        return self.flavor.startswith("hp.")


def servers(api):
    """Return all servers by ID."""
    found = api.api_get("/servers/detail?all_tenants=1").body["servers"]
    return {
        shown["id"]: Server(
            shown["id"],
            shown["name"],
            shown["status"],
            shown["OS-EXT-SRV-ATTR:host"],
            shown["flavor"]["original_name"],
            shown["flavor"]["vcpus"],
            shown["flavor"]["ram"],
            # A volume takes nothing of the host's disks.
            shown["flavor"]["disk"] if shown["image"] else 0,
        )
        for shown in found
    }


def books():
    """Read Placement's books in its database: its API takes a request a provider."""
    with db_api.get_placement_engine().connect() as connection:
        return judge.books_in(connection)


def capacities():
    """Return {(provider, resource class): what may be used of it}."""
    with db_api.get_placement_engine().connect() as connection:
        return {
            (provider, kind): (total - reserved) * ratio
            for provider, kind, total, reserved, ratio in connection.execute(
                judge.STOCK
            )
        }


def await_none(complaints):
    """Wait until there are no complaints: Nova's books may take their time."""
    deadline = time.monotonic() + SETTLE_S
    while found := list(complaints()):
        if time.monotonic() > deadline:
            raise AssertionError("\n".join(found))
        time.sleep(0.2)


class Judge:
    """Compares what Nova, libvirt and Placement have, after each operation.

    :param cloud: the OperatedCloud
    :param hosts: Host by name
    :param children: how many children each host has under units, 0 under slots
    :ivar found: the servers that were there at the last look
    :ivar guests: the guests of all hosts then
    """

    def __init__(self, cloud, hosts, children):
        self._cloud = cloud
        self._hosts = hosts
        self._children = children
        # Servers as they were before they began to be resized or evacuated.
        self._settled = {}
        self.found, self.guests = {}, []

    def look(self):
        """See which servers and guests there are; what follows is about these."""
        self.found = servers(self._cloud.api)
        self.guests = [
            judge.guest(host, text)
            for host in self._hosts
            for text in self._cloud.domains(host).values()
        ]

    def held(self):
        """Return what anyone holds in Placement."""
        return books().held

    def guest_complaints(self, most, sizes, down):
        """List what is wrong with guests, in words; it may not be for a moment.

        :param most: high-performance VMs that a host may have
        :param sizes: {vCPUs that they may have: on how many NUMA nodes}
        :param down: hosts whose nova-compute is down
        """
        guests = self._alive(down)
        return list(judge.complaints(self._hosts.values(), guests, most, sizes))

    def book_complaints(self, down):
        """Look again, and list where Nova, libvirt and Placement differ, in words."""
        self.look()
        found = self.found
        yield from self._places(found, self._alive(down))
        placement = books()
        yield from map(str, placement.over)
        yield from self._allocations(found, dict(placement.held), down)
        for server in found.values():
            if server.status != "VERIFY_RESIZE" and server.host not in down:
                self._settled[server.id] = server

    def _alive(self, down):
        """Return the guests, but for those that stay where nova-compute is down.

        They were evacuated or deleted meanwhile.
        """
        return [
            guest
            for guest in self.guests
            if guest.host not in down or self._host_of(guest.id) == guest.host
        ]

    def _host_of(self, server):
        return self.found[server].host if server in self.found else None

    def _places(self, found, guests):
        """Compare where Nova says that servers are with where their guests are."""
        there = collections.defaultdict(set)
        for guest in guests:
            there[guest.id].add(guest.host)
        expected = {s.id: {s.host} for s in found.values() if s.host}
        for server in self._resized(found):
            # Until it is confirmed, it can go back.
            expected[server.id].add(self._settled[server.id].host)
        for server in expected.keys() | there.keys():
            if expected.get(server) != there.get(server):
                yield (
                    f"{found.get(server, server)} should be on "
                    f"{expected.get(server)} and has guests on {there.get(server)}"
                )

    def _resized(self, found):
        return [s for s in found.values() if s.status == "VERIFY_RESIZE"]

    def _allocations(self, found, held, down):
        expected = {s.id: (s, s.host) for s in found.values() if s.host}
        for server in self._resized(found):
            query = f"/os-migrations?instance_uuid={server.id}"
            # The newest is the first.
            (migration, *_) = self._cloud.api.api_get(query).body["migrations"]
            before = self._settled[server.id]
            expected[migration["uuid"]] = (before, before.host)
        for consumer, (server, host) in expected.items():
            has = held.pop(consumer, {})
            if host not in down:
                # Nova takes them away when the host is back.
                has = {p: r for p, r in has.items() if not _of(p) & down}
            why = self._lacks(server, host, has)
            if why:
                yield f"{server} on {host} has {has} ({consumer}): {why}"
        for consumer, has in held.items():
            yield f"{consumer} is nobody and has {has}"

    def _lacks(self, server, host, has):
        """Say what an allocation should be if it is not."""
        mode = self._hosts[host].mode
        pinned = server.high and mode in {"dedicated", "mixed"}
        root = {
            "PCPU" if pinned else "VCPU": server.vcpus,
            "MEMORY_MB": server.memory_mb,
            "DISK_GB": server.disk_gb,
            "CUSTOM_PERFVM_SLOT": int(server.high and not self._children),
        }
        root = {name: amount for name, amount in root.items() if amount}
        if has.get(host) != root:
            return f"of {host} it should be {root}"
        below = {name: found for name, found in has.items() if name != host}
        names = [f"{host}_perfvm_{chr(ord('a') + i)}" for i in range(self._children)]
        if server.high and self._children:
            whole = [{name: {"CUSTOM_PERFVM_UNIT": UNITS}} for name in names]
        else:
            whole = [{name: {"CUSTOM_PERFVM_UNIT": 1} for name in names}]
        return None if below in whole else f"below {host} it should be one of {whole}"


def _of(provider):
    """Return the host of a provider, as a set."""
    return {provider.partition("_perfvm_")[0]}

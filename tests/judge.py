# SPDX-License-Identifier: Apache-2.0
"""What a cloud's guests, servers and allocations must be, asked of nobody's rules.

The audit judges a cloud by the product's rules.  This is a second opinion that
shares nothing with it: the XML that Nova gave to libvirt, and Placement's books.
"""

import collections
import itertools
from typing import NamedTuple
from xml.etree import ElementTree as ET

import sqlalchemy as sa

# Of the built-in policy.
MOST_PER_HOST = 2
VCPUS = 20

TAKEN = sa.text("""
    SELECT a.consumer_id, p.name, c.name, a.used FROM allocations a
    JOIN resource_providers p ON p.id = a.resource_provider_id
    JOIN resource_classes c ON c.id = a.resource_class_id
""")
STOCK = sa.text("""
    SELECT p.name, c.name, i.total, i.reserved, i.allocation_ratio FROM inventories i
    JOIN resource_providers p ON p.id = i.resource_provider_id
    JOIN resource_classes c ON c.id = i.resource_class_id
""")

_NOVA = {"nova": "http://openstack.org/xmlns/libvirt/nova/1.1"}


class Guest(NamedTuple):
    """A guest as libvirt has it.

    :ivar pins: the host's CPUs of each vCPU that is pinned
    :ivar floats: the host's CPUs of the vCPUs that are not; empty for any
    :ivar nodes: the host's NUMA nodes that its memory must come from
    :ivar memory_mb: how much that is
    """

    host: str
    id: str
    flavor: str
    pins: tuple[frozenset[int], ...]
    floats: frozenset[int]
    nodes: frozenset[int]
    memory_mb: int

    @property
    def high(self):
        """Return whether it is a high-performance one."""
        return self.flavor.startswith("hp.")

    @property
    def cpus(self):
        """The CPUs that it owns."""
        return frozenset().union(*self.pins)


def guest(host, text):
    """Read the XML of a domain on a host."""
    xml = ET.fromstring(text)
    memory = xml.find("numatune/memory[@mode='strict']")
    pins = xml.findall("cputune/vcpupin")
    return Guest(
        host,
        xml.findtext("uuid"),
        xml.find("metadata/nova:instance/nova:flavor", _NOVA).get("name"),
        tuple(_numbers(pin.get("cpuset")) for pin in pins),
        _numbers(xml.find("vcpu").get("cpuset", "")),
        _numbers("" if memory is None else memory.get("nodeset")),
        # In KiB.
        int(xml.findtext("memory")) // 1024,
    )


def _numbers(text):
    """Read ``0-3,8``."""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def complaints(hosts, found, most=MOST_PER_HOST, sizes=None):
    """List what is wrong with guests, in words.

    :param hosts: the pretended hosts: name, mode and shape of each
    :param most: high-performance guests that a host may have
    :param sizes: {vCPUs that a high-performance guest may have: on how many NUMA nodes}
    """
    sizes = sizes or {VCPUS: 1}
    on = collections.defaultdict(list)
    for guest in found:
        on[guest.host].append(guest)
    return [
        text
        for host in hosts
        for text in _host_complaints(host, on[host.name], most, sizes)
    ]


def _host_complaints(host, here, most, sizes):
    high = [guest for guest in here if guest.high]
    general = [guest for guest in here if not guest.high]
    for guest in high:
        yield from _guest_complaints(host, guest, sizes)
    for one, other in itertools.combinations(here, 2):
        if _cores(host, one) & _cores(host, other):
            yield f"{host.name}: {one.id} and {other.id} own the same cores"
    if len(high) > most:
        yield f"{host.name}: {len(high)} high-performance guests"
    yield from _company_complaints(host, high, general)


def _company_complaints(host, high, general):
    if host.mode == "shared" and high:
        yield f"{host.name}: {len(high)} high-performance guests on a shared host"
    if host.mode == "dedicated" and general:
        yield f"{host.name}: {len(general)} general guests on a dedicated host"
    if host.mode == "elastic" and high and general:
        yield f"{host.name}: {len(high)} high-performance and {len(general)} general"
    if host.mode == "mixed":
        owned = {_node(host, cpu) for guest in high for cpu in guest.cpus}
        for guest in general:
            if not guest.floats or owned & {_node(host, cpu) for cpu in guest.floats}:
                yield f"{host.name}: {guest.id} is on the nodes of others"


def _guest_complaints(host, guest, sizes):
    alone = all(len(cpus) == 1 for cpus in guest.pins)
    counts = {len(guest.pins), len(guest.cpus), len(_cores(host, guest))}
    if not alone or counts not in [{size} for size in sizes]:
        yield f"{host.name}: {guest.id} owns {len(guest.cpus)} CPUs: {guest.pins}"
    nodes = {_node(host, cpu) for cpu in guest.cpus}
    if len(nodes) != sizes.get(len(guest.cpus), 1) or nodes != guest.nodes:
        yield f"{host.name}: {guest.id} is on nodes {nodes}, memory {guest.nodes}"


def _node(host, cpu):
    return cpu // (host.shape.cores * host.shape.threads)


def _cores(host, guest):
    """Return the cores of which the guest owns a thread."""
    return {cpu // host.shape.threads for cpu in guest.cpus}


class Books(NamedTuple):
    """What Placement has written down.

    :ivar held: {consumer: {provider: {resource class: amount}}}
    :ivar over: (provider, resource class, used, capacity) where it is too much
    """

    held: dict[str, dict[str, dict[str, int]]]
    over: tuple[tuple[str, str, int, int], ...]

    @property
    def consumers(self):
        """Return all that hold an allocation."""
        return frozenset(self.held)


def books(connection):
    """Read Placement's books by its API."""

    def get(path):
        response = connection.placement.get(path, microversion="1.36")
        response.raise_for_status()
        return response.json()

    taken, stock = [], []
    for provider in get("/resource_providers")["resource_providers"]:
        name, path = provider["name"], f"/resource_providers/{provider['uuid']}"
        found = get(f"{path}/allocations")["allocations"]
        for consumer, allocated in found.items():
            for kind, amount in allocated["resources"].items():
                taken.append((consumer, name, kind, amount))
        if not found:
            continue
        for kind, of in get(f"{path}/inventories")["inventories"].items():
            amounts = of["total"], of["reserved"], of["allocation_ratio"]
            stock.append((name, kind, *amounts))
    return summed_up(taken, stock)


def books_in(connection):
    """Read Placement's books in its database: its API takes a request a provider."""
    return summed_up(connection.execute(TAKEN), connection.execute(STOCK))


def summed_up(taken, stock):
    """Return the books.

    :param taken: each (consumer, provider, resource class, amount)
    :param stock: each (provider, resource class, total, reserved, allocation ratio)
    """
    held, used = {}, collections.Counter()
    for consumer, provider, kind, amount in taken:
        held.setdefault(consumer, {}).setdefault(provider, {})[kind] = amount
        used[provider, kind] += amount
    room = {
        (provider, kind): (total - reserved) * ratio
        for provider, kind, total, reserved, ratio in stock
    }
    over = tuple(
        (*what, used[what], int(capacity))
        for what, capacity in room.items()
        if used[what] > capacity
    )
    return Books(held, over)


class Group(NamedTuple):
    """A server group as Nova shows it.

    :ivar most: how many of its members a host may have, if the policy is anti-affinity
    """

    policy: str
    members: frozenset[str]
    most: int = 1

    def broken(self, hosts, before):
        """Return whether the policy is broken, or more so than before.

        Soft policies are wishes: nothing breaks them.

        :param hosts: {server: its host}
        :param before: the same, before a step
        """
        on = collections.Counter(hosts[m] for m in self.members if hosts.get(m))
        if self.policy == "anti-affinity":
            return any(number > self.most for number in on.values())
        if self.policy == "affinity":
            return len(on) > len({before[m] for m in self.members if before.get(m)})
        return False


def groups(connection):
    """Return all server groups."""
    response = connection.compute.get(
        "/os-server-groups?all_projects=1", microversion="2.64"
    )
    response.raise_for_status()
    return [
        Group(
            found["policy"],
            frozenset(found["members"]),
            found["rules"].get("max_server_per_host", 1),
        )
        for found in response.json()["server_groups"]
    ]

# SPDX-License-Identifier: Apache-2.0
"""What a cloud's guests, servers and allocations must be, asked of nobody's rules.

The audit judges a cloud by the product's rules.  This is a second opinion that
shares nothing with it: the XML that Nova gave to libvirt, and Placement's books.
"""

import collections
import itertools
from typing import NamedTuple
from xml.etree import ElementTree as ET

# Of the built-in policy.
MOST_PER_HOST = 2
VCPUS = 20

_NOVA = {"nova": "http://openstack.org/xmlns/libvirt/nova/1.1"}


class Guest(NamedTuple):
    """A guest as libvirt has it.

    :ivar pins: the host's CPUs of each vCPU that is pinned
    :ivar floats: the host's CPUs of the vCPUs that are not; empty for any
    :ivar nodes: the host's NUMA nodes that its memory must come from
    """

    host: str
    id: str
    flavor: str
    pins: tuple[frozenset[int], ...]
    floats: frozenset[int]
    nodes: frozenset[int]

    @property
    def high(self):
        """Return whether it is a high-performance one."""
        return self.flavor.startswith("hp.")

    @property
    def cpus(self):
        """The CPUs that it owns."""
        return frozenset().union(*self.pins)


def guests(sandbox):
    """Return the guests of all hosts of a sandbox."""
    return [
        _guest(host.name, ET.fromstring(path.read_text(encoding="utf-8")))
        for host in sandbox.settings.pretended
        for path in sorted(sandbox.layout.domains(host.name).glob("*.xml"))
    ]


def _guest(host, xml):
    memory = xml.find("numatune/memory[@mode='strict']")
    pins = xml.findall("cputune/vcpupin")
    return Guest(
        host,
        xml.findtext("uuid"),
        xml.find("metadata/nova:instance/nova:flavor", _NOVA).get("name"),
        tuple(_numbers(pin.get("cpuset")) for pin in pins),
        _numbers(xml.find("vcpu").get("cpuset", "")),
        _numbers("" if memory is None else memory.get("nodeset")),
    )


def _numbers(text):
    """Read ``0-3,8``."""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def complaints(hosts, found):
    """List what is wrong with guests, in words.

    :param hosts: the pretended hosts
    """
    on = collections.defaultdict(list)
    for guest in found:
        on[guest.host].append(guest)
    return [text for host in hosts for text in _host_complaints(host, on[host.name])]


def _host_complaints(host, here):
    high = [guest for guest in here if guest.high]
    general = [guest for guest in here if not guest.high]
    for guest in high:
        yield from _guest_complaints(host, guest)
    for one, other in itertools.combinations(high, 2):
        if one.cpus & other.cpus:
            yield f"{host.name}: {one.id} and {other.id} own the same CPUs"
    if len(high) > MOST_PER_HOST:
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


def _guest_complaints(host, guest):
    alone = all(len(cpus) == 1 for cpus in guest.pins)
    if not alone or (len(guest.pins), len(guest.cpus)) != (VCPUS, VCPUS):
        yield f"{host.name}: {guest.id} owns {len(guest.cpus)} CPUs"
    nodes = {_node(host, cpu) for cpu in guest.cpus}
    if len(nodes) != 1 or nodes != guest.nodes:
        yield f"{host.name}: {guest.id} is on nodes {nodes}, memory {guest.nodes}"


def _node(host, cpu):
    return cpu // (host.shape.cores * host.shape.threads)


class Books(NamedTuple):
    """What Placement has written down.

    :ivar consumers: all that hold an allocation
    :ivar over: (provider, resource class, used, capacity) where it is too much
    """

    consumers: frozenset[str]
    over: tuple[tuple[str, str, int, int], ...]


def books(connection):
    """Read Placement's books."""

    def get(path):
        response = connection.placement.get(path, microversion="1.36")
        response.raise_for_status()
        return response.json()

    consumers, over = set(), []
    for provider in get("/resource_providers")["resource_providers"]:
        path = f"/resource_providers/{provider['uuid']}"
        taken = get(f"{path}/allocations")["allocations"]
        consumers.update(taken)
        used = collections.Counter()
        for allocation in taken.values():
            used.update(allocation["resources"])
        for name, stock in get(f"{path}/inventories")["inventories"].items():
            room = (stock["total"] - stock["reserved"]) * stock["allocation_ratio"]
            if used[name] > room:
                over.append((provider["name"], name, used[name], int(room)))
    return Books(frozenset(consumers), tuple(over))

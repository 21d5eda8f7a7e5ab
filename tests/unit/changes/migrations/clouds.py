# SPDX-License-Identifier: Apache-2.0
"""Random clouds in which a VM may find no room, and a judge of what runs in them.

The judge shares nothing with the rules, with Placement's arithmetic or with what
plans: it counts CPUs, memory, VMs and allocations as they are written down.
"""

import collections
import dataclasses
import itertools

from nova_perfvm import constants as const
from nova_perfvm.facts.snapshot import Inventory
from nova_perfvm.policy import FlavorSize, FlavorTemplate
from tests.unit.facts.snapshot import clouds
from tests.unit.rules import hosts

HP_GB = (16, 32, 48)
GENERAL = ((1, 2), (2, 4), (4, 8), (8, 16))
VCPUS = 4
SHAPE = "2x8"


def policy(placement="slots", *, most=4):
    """Return a policy whose pinned VMs have four vCPUs, as hosts here are small."""
    found = hosts.policy(
        vcpus=VCPUS,
        max_per_host=most,
        flavors=FlavorTemplate(
            "hp{memory_gb}", tuple(FlavorSize(VCPUS, gb, 0) for gb in HP_GB)
        ),
        general={
            "flavors": FlavorTemplate(
                "g{vcpus}", tuple(FlavorSize(v, gb, 10) for v, gb in GENERAL)
            )
        },
    )
    return dataclasses.replace(found, placement=placement)


class Cloud(clouds.Cloud):
    """A cloud whose pinned VMs are small."""

    def add_small(self, name, host, first, node, flavor):
        """Add a pinned VM that owns CPUs from the first on."""
        self.add_hp(name, host, first, node, VCPUS, flavor)
        (cell,) = self.servers[name].cells
        cell = dataclasses.replace(cell, vcpus=frozenset(range(VCPUS)))
        self.change_server(name, cells=(cell,))
        held = {"PCPU": VCPUS, "MEMORY_MB": cell.memory_mb, const.RC_SLOT: 1}
        self.allocate(f"i-{name}", host, held)


@dataclasses.dataclass(frozen=True)
class Scene:
    """A cloud, and the flavor for which it may have no room."""

    policy: object
    snapshot: object
    flavor: str


class Builder:
    """Lets servers come to hosts wherever the judge has nothing against it."""

    def __init__(self, rng, placement):
        self.rng = rng
        self.cloud = Cloud(policy(placement))
        self.slots = {}
        self.number = itertools.count()

    def add_host(self, name, mode, memory_gb):
        """Add a host: ``dedicated``, ``shared`` or, under units, ``elastic``."""
        if self.cloud.policy.placement == "units":
            slots = 4 if mode == "elastic" else 0
            self.cloud.add_elastic(name, slots, SHAPE, memory_gb)
        else:
            self.cloud.add_host(name, mode, SHAPE, memory_gb)
            self.cloud.change_inventories(name, DISK_GB=Inventory(500, 500))

    def add(self, flavor, host):
        """Add a server; return whether it may be there."""
        name = f"s{next(self.number)}"
        before = dict(self.cloud.servers), dict(self.cloud.providers)
        if flavor.startswith("hp"):
            added = self._add_pinned(name, host, flavor)
        else:
            self.cloud.add_general(name, host, flavor)
            if self.cloud.policy.placement == "units":
                self.cloud.allocate_units(f"i-{name}", host)
            memory_mb = self.cloud.flavors[flavor].memory_mb
            vcpus = self.cloud.flavors[flavor].vcpus
            held = {"VCPU": vcpus, "MEMORY_MB": memory_mb, "DISK_GB": 10}
            self.cloud.allocate(f"i-{name}", host, held)
            added = True
        if added and not complaints(self.cloud.policy, self.cloud.snapshot()):
            return True
        self.cloud.servers, self.cloud.providers = before
        return False

    def _add_pinned(self, name, host, flavor):
        taken = {
            cpu
            for s in self.cloud.servers.values()
            if s.host == host
            for cpu in s.pinned_cpus
        }
        starts = [n for n in range(0, 16, VCPUS) if n not in taken]
        if not starts:
            return False
        first = self.rng.choice(starts)
        self.cloud.add_small(name, host, first, first // 8, flavor)
        memory_mb = self.cloud.flavors[flavor].memory_mb
        if self.cloud.policy.placement == "units":
            held = {"VCPU": VCPUS, "MEMORY_MB": memory_mb}
            children = [
                f"{host}_perfvm_{letter}"
                for letter in "abcd"
                if not self.cloud.providers[f"{host}_perfvm_{letter}"].allocations
            ]
            if not children:
                return False
            whole = {const.RC_UNIT: const.UNITS_PER_CHILD}
            self.cloud.allocate(f"i-{name}", self.rng.choice(children), whole)
            self.cloud.allocate(f"i-{name}", host, held)
        return True


def scene(rng, most_hosts=6, most_servers=14):
    """Return a random cloud."""
    placement = rng.choice(("slots", "units", "units"))
    builder = Builder(rng, placement)
    modes = ("elastic", "elastic", "shared") if placement == "units" else None
    names = [f"h{n}" for n in range(rng.randint(3, most_hosts))]
    for name in names:
        mode = rng.choice(modes or ("dedicated", "dedicated", "shared"))
        builder.add_host(name, mode, rng.choice((64, 96, 128, 192)))
    flavors = sorted(builder.cloud.flavors)
    for _ in range(rng.randint(4, most_servers)):
        name = rng.choice(flavors)
        for host in rng.sample(names, len(names)):
            if builder.add(name, host):
                break
    return Scene(builder.cloud.policy, builder.cloud.snapshot(), rng.choice(flavors))


def complaints(policy, snapshot):
    """List what is wrong with the servers and the books of a cloud, in words."""
    providers = {p.uuid: p for p in snapshot.providers}
    found = []
    for host in snapshot.hosts:
        here = [s for s in snapshot.servers if s.host == host.host]
        tree = [p for p in snapshot.providers if (p.root or p.uuid) == host.provider]
        found += _company(host, here, providers[host.provider])
        found += _cells(host, here)
        for server in here:
            found += _books(policy, server, tree)
    found += _stock(snapshot)
    return found


def _high(server):
    return server.flavor.startswith("hp")


def _company(host, here, provider):
    high = [s for s in here if _high(s)]
    if high and len(high) < len(here):
        yield f"{host.host}: servers of both classes"
    if len(high) > 4:
        yield f"{host.host}: {len(high)} high-performance servers"
    if "PCPU" in provider.inventories and len(high) < len(here):
        yield f"{host.host}: a general server where all CPUs are dedicated"


def _cells(host, here):
    owners = collections.Counter(cpu for s in here for cpu in s.pinned_cpus)
    if [cpu for cpu, count in owners.items() if count > 1]:
        yield f"{host.host}: a CPU with two owners"
    for number in range(len(host.cells)):
        mine = [c for s in here for c in s.cells or () if c.host_node == number]
        used = sum(cell.memory_mb for cell in mine)
        if used > host.cells[number].memory_mb:
            yield f"{host.host}: {used} MiB on cell {number}"
        for cell in mine:
            cpus = set(cell.cpu_pinning.values())
            if not cpus <= set(range(number * 8, number * 8 + 8)):
                yield f"{host.host}: CPUs {cpus} on cell {number}"
    for server in here:
        if _high(server) and len(server.pinned_cpus) != VCPUS:
            yield f"{server.name} owns {len(server.pinned_cpus)} CPUs"


def _books(policy, server, tree):
    held = {
        p.name: dict(p.allocations[server.id])
        for p in tree
        if server.id in p.allocations
    }
    units = sorted(
        taken.pop(const.RC_UNIT) for taken in held.values() if const.RC_UNIT in taken
    )
    rest = collections.Counter()
    for taken in held.values():
        rest.update(taken)
    wanted = {"MEMORY_MB": server.memory_mb}
    if policy.placement == "units":
        wanted["VCPU"] = server.vcpus
        right = [1000] if _high(server) else [1, 1, 1, 1]
        if units != right:
            yield f"{server.name} on {server.host} holds units {units}"
    elif _high(server):
        wanted |= {"PCPU": VCPUS, "CUSTOM_PERFVM_SLOT": 1}
    else:
        wanted["VCPU"] = server.vcpus
    if not _high(server):
        wanted["DISK_GB"] = 10
    if +rest != wanted:
        yield f"{server.name} on {server.host} holds {dict(rest)}"


def _stock(snapshot):
    known = {s.id: s.host for s in snapshot.servers}
    roots = {h.provider: h.host for h in snapshot.hosts}
    for provider in snapshot.providers:
        used = collections.Counter()
        for consumer, taken in provider.allocations.items():
            if known.get(consumer) != roots[provider.root or provider.uuid]:
                yield f"{consumer} holds something of {provider.name}"
            used.update(taken)
            for name, amount in taken.items():
                stock = provider.inventories.get(name)
                if stock is None or amount > stock.max_unit:
                    yield f"{consumer}: {amount} {name} of {provider.name} at once"
        for name, amount in used.items():
            stock = provider.inventories.get(name, Inventory(0, 0))
            if amount > (stock.total - stock.reserved) * stock.allocation_ratio:
                yield f"{provider.name}: {amount} {name} allocated"

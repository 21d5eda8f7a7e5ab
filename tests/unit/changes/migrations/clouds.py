# SPDX-License-Identifier: Apache-2.0
"""Random clouds in which a VM may find no room, and a judge of what runs in them.

The judge shares nothing with the rules, with Placement's arithmetic or with what
plans: it counts CPUs, memory, VMs and allocations as they are written down.
"""

import collections
import dataclasses
import itertools

from nova_perfvm import constants as const
from nova_perfvm.changes.migrations.hosts import server_added
from nova_perfvm.facts.snapshot import INVENTORY_FILE, HostCell, Inventory, Server
from nova_perfvm.policy import FlavorSize, FlavorTemplate, HostShape
from tests.unit.facts.snapshot import clouds
from tests.unit.rules import hosts

HP_GB = (16, 32, 48)
GENERAL = ((1, 2), (2, 4), (4, 8), (8, 16))
VCPUS = 4
MOST = 4
PLAIN = ("1x8", "2x8", "4x8")
POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
# With SMT: a vCPU owns a core of the first, a thread of the second.
CORES, THREADS = "2x8x2", "2x4x2"


def policy(placement="slots", *, exclusive="host", smt="cores", shapes=("2x8",)):
    """Return a policy whose pinned VMs have four vCPUs, as hosts here are small."""
    found = hosts.policy(
        vcpus=VCPUS,
        max_per_host=MOST,
        exclusive=exclusive,
        smt=smt,
        flavors=FlavorTemplate(
            "hp{memory_gb}", tuple(FlavorSize(VCPUS, gb, 0) for gb in HP_GB)
        ),
        general={
            "flavors": FlavorTemplate(
                "g{vcpus}", tuple(FlavorSize(v, gb, 10) for v, gb in GENERAL)
            )
        },
    )
    shapes = tuple(HostShape.parse(shape) for shape in shapes)
    return dataclasses.replace(found, placement=placement, host_shapes=shapes)


class Cloud(clouds.Cloud):
    """A cloud whose pinned VMs are small, and whose NUMA nodes are known.

    CPUs have the kernel's usual numbers: first a thread of each core of the first
    NUMA node, of the second, and so on; then the other threads.
    """

    def __init__(self, policy):
        super().__init__(policy)
        self._cells = {}

    def add_host(self, name, mode="dedicated", shape="2x8", memory_gb=64):
        """Add a host.

        :param mode: ``dedicated``; ``shared``; ``mixed``: the last NUMA node is
            shared; ``threads``: as ``dedicated``, with all threads of each core
        """
        super().add_host(name, "shared", shape, memory_gb)
        shape = self.hosts[name].shape
        elastic = mode == "shared" and self.policy.placement == "units"
        cells = [
            _cell(shape, number, memory_gb, self._kind(mode, shape, number, elastic))
            for number in range(shape.cells)
        ]
        self._cells[name] = tuple(cells)
        pcpus = sum(len(c.pcpuset - c.cpuset) for c in cells)
        vcpus = sum(len(c.cpuset) for c in cells)
        changes = {
            "VCPU": Inventory(vcpus, vcpus, allocation_ratio=4) if vcpus else None,
            "DISK_GB": Inventory(500, 500),
        }
        if pcpus:
            changes["PCPU"] = Inventory(pcpus, pcpus)
            slots = self.slots(shape, sum(bool(c.pcpuset) for c in cells))
            changes[const.RC_SLOT] = Inventory(slots, 1)
            traits = frozenset({const.TRAIT_HIGH_PERFORMANCE})
            self.change_provider(name, traits=traits)
        self.change_inventories(name, **changes)

    def slots(self, shape, cells):
        """Return the pinned VMs that so many empty NUMA nodes of a host hold."""
        return min(MOST, cells * (shape.cell_cpus(self.smt) // VCPUS))

    @property
    def smt(self):
        (vm_class,) = self.policy.pinned_classes
        return vm_class.smt

    def _kind(self, mode, shape, number, elastic):
        """Return (whether CPUs are shared, dedicated, of all threads) of a cell."""
        if elastic:
            return True, True, self.smt == "threads"
        shared = mode == "shared" or (mode == "mixed" and number == shape.cells - 1)
        every = shared or mode == "threads" or self.smt == "threads"
        return shared, not shared, every

    def _with_cells(self, host):
        cells = self._cells[host.host]
        return dataclasses.replace(host, cells=cells, cells_source=INVENTORY_FILE)

    def add_small(self, name, host, first, node, flavor):
        """Add a pinned VM that owns CPUs from the first on."""
        self.add_hp(name, host, first, node, VCPUS, flavor)
        (cell,) = self.servers[name].cells
        cell = dataclasses.replace(cell, vcpus=frozenset(range(VCPUS)))
        self.change_server(name, cells=(cell,))
        held = {"PCPU": VCPUS, "MEMORY_MB": cell.memory_mb, const.RC_SLOT: 1}
        self.allocate(f"i-{name}", host, held)


def _cell(shape, number, memory_gb, kind):
    shared, dedicated, every = kind
    first = number * shape.cores
    cores = [
        frozenset(first + core + n * shape.cells * shape.cores for n in range(threads))
        for threads in [shape.threads if every else 1]
        for core in range(shape.cores)
    ]
    cpus = frozenset().union(*cores)
    return HostCell(
        id=number,
        cpuset=cpus if shared else frozenset(),
        pcpuset=cpus if dedicated else frozenset(),
        memory_mb=memory_gb * 1024 // shape.cells,
        siblings=tuple(cores) if every and shape.threads > 1 else (),
    )


@dataclasses.dataclass(frozen=True)
class Scene:
    """A cloud, and the flavor for which it may have no room."""

    policy: object
    snapshot: object
    flavor: str


class Builder:
    """Lets servers come to hosts wherever the judge has nothing against it."""

    def __init__(self, rng, policy):
        self.rng = rng
        self.cloud = Cloud(policy)
        self.number = itertools.count()

    def add_host(self, name):
        """Add a host of any shape and mode that the policy has."""
        policy = self.cloud.policy
        (vm_class,) = policy.pinned_classes
        shape = self.rng.choice(policy.host_shapes)
        memory_gb = self.rng.choice((64, 96, 128, 192))
        if policy.placement == "units":
            most = self.cloud.slots(shape, shape.cells)
            slots = self.rng.choice((most, most, 0))
            self.cloud.add_elastic(name, slots, str(shape), memory_gb)
            self.cloud.change_inventories(name, DISK_GB=Inventory(500, 500))
            return
        modes = ["dedicated", "dedicated", "shared"]
        if vm_class.exclusive == "cell" and shape.cells > 1:
            modes += ["mixed", "mixed"]
        if shape.threads > 1 and vm_class.smt == "cores":
            modes += ["threads"]
        self.cloud.add_host(name, self.rng.choice(modes), str(shape), memory_gb)

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
        # Of the first thread of each core.
        shape = self.cloud.hosts[host].shape
        firsts = range(0, shape.cells * shape.cores, VCPUS)
        starts = [n for n in firsts if n not in taken]
        if not starts:
            return False
        first = self.rng.choice(starts)
        self.cloud.add_small(name, host, first, first // shape.cores, flavor)
        memory_mb = self.cloud.flavors[flavor].memory_mb
        if self.cloud.policy.placement == "units":
            held = {"VCPU": VCPUS, "MEMORY_MB": memory_mb}
            children = [
                p.name
                for p in self.cloud.providers.values()
                if p.parent == f"p-{host}"
                and not p.allocations
                and p.inventories[const.RC_UNIT].max_unit == const.UNITS_PER_CHILD
            ]
            if not children:
                return False
            whole = {const.RC_UNIT: const.UNITS_PER_CHILD}
            self.cloud.allocate(f"i-{name}", self.rng.choice(children), whole)
            self.cloud.allocate(f"i-{name}", host, held)
        return True


def any_policy(rng):
    """Return a random policy: of each placement, with SMT and without."""
    placement = rng.choice(("slots", "units"))
    exclusive = rng.choice(("host", "cell")) if placement == "slots" else "host"
    smt = rng.choice(("cores", "cores", "threads"))
    more = CORES if smt == "cores" else THREADS
    return policy(placement, exclusive=exclusive, smt=smt, shapes=(*PLAIN, more))


def scene(rng, most_hosts=6, most_servers=14):
    """Return a random cloud."""
    builder = Builder(rng, any_policy(rng))
    names = [f"h{n}" for n in range(rng.randint(3, most_hosts))]
    for name in names:
        builder.add_host(name)
    flavors = sorted(builder.cloud.flavors)
    for _ in range(rng.randint(4, most_servers)):
        name = rng.choice(flavors)
        for host in rng.sample(names, len(names)):
            if builder.add(name, host):
                break
    flavor = rng.choice(flavors)
    _add_groups(rng, builder.cloud)
    return Scene(builder.cloud.policy, builder.cloud.snapshot(), flavor)


def _add_groups(rng, cloud):
    """Put servers into groups of which none is against its policy.

    But for some that are to be together: these are on two hosts, so that they may move.
    """
    free = rng.sample(sorted(cloud.servers), len(cloud.servers))
    for policy in rng.sample(POLICIES, len(POLICIES)):
        most = rng.choice((1, 1, 2))
        hosts = rng.choice((1, 2)) if policy == "affinity" else len(cloud.hosts)
        chosen = []
        for name in list(free):
            here = collections.Counter(cloud.servers[n].host for n in (*chosen, name))
            crowded = policy == "anti-affinity" and max(here.values()) > most
            if len(chosen) < 5 and len(here) <= hosts and not crowded:
                chosen.append(name)
                free.remove(name)
        cloud.add_group(policy, *chosen, most=most)


def joined(now, kind, host):
    """Return an arrangement with a new server on a host; None if that takes none."""
    if not now.hosts[host].fits(kind):
        return None
    view, facts = now.hosts[host].view, kind.request.facts
    name = f"new-{host}-{len(view.servers)}"
    server = Server(name, name, None, "BUILD", facts.vcpus, {})
    server = dataclasses.replace(server, memory_mb=facts.memory_mb)
    return now.changed(server_added(now.planning, kind, server, view))


def torn(before, after):
    """List the server groups to which a step did what it may not, in words."""
    for group in before.server_groups:
        was, now = _hosts_of(group, before), _hosts_of(group, after)
        if group.policy == "affinity" and now.keys() - was.keys():
            yield f"{group} comes to a host where it was not"
        for host, count in now.items():
            allowed = max(group.max_server_per_host, was[host])
            if group.policy == "anti-affinity" and count > allowed:
                yield f"{group} has {count} servers on {host}"


def worsened(before, after):
    """Return the IDs of soft server groups that are further from their policy."""
    found = set()
    for group in before.server_groups:
        was, now = _hosts_of(group, before), _hosts_of(group, after)
        worse = {
            "soft-affinity": len(now) > len(was),
            "soft-anti-affinity": len(now) < len(was),
        }
        if worse.get(group.policy):
            found.add(group.id)
    return found


def _hosts_of(group, snapshot):
    """Count the servers of a group on each host."""
    return collections.Counter(
        s.host for s in snapshot.servers if s.id in group.members
    )


def complaints(policy, snapshot):
    """List what is wrong with the servers and the books of a cloud, in words."""
    providers = {p.uuid: p for p in snapshot.providers}
    (vm_class,) = policy.pinned_classes
    found = []
    for host in snapshot.hosts:
        here = [s for s in snapshot.servers if s.host == host.host]
        tree = [p for p in snapshot.providers if (p.root or p.uuid) == host.provider]
        found += _company(vm_class.exclusive, host, here, providers[host.provider])
        found += _cells(vm_class.smt, host, here)
        for server in here:
            found += _books(policy, server, tree)
    found += _stock(snapshot)
    return found


def _high(server):
    return server.flavor.startswith("hp")


def _company(exclusive, host, here, provider):
    high = [s for s in here if _high(s)]
    # Without units, general VMs beside others are on CPUs of other NUMA nodes.
    apart = exclusive == "cell" and not any(c.cpuset & c.pcpuset for c in host.cells)
    if high and len(high) < len(here) and not apart:
        yield f"{host.host}: servers of both classes"
    if len(high) > MOST:
        yield f"{host.host}: {len(high)} high-performance servers"
    if "VCPU" not in provider.inventories and len(high) < len(here):
        yield f"{host.host}: a general server where all CPUs are dedicated"


def _cells(smt, host, here):
    owners = collections.Counter(cpu for s in here for cpu in s.pinned_cpus)
    if [cpu for cpu, count in owners.items() if count > 1]:
        yield f"{host.host}: a CPU with two owners"
    for number, known in enumerate(host.cells):
        mine = [c for s in here for c in s.cells or () if c.host_node == number]
        used = sum(cell.memory_mb for cell in mine)
        if used > known.memory_mb:
            yield f"{host.host}: {used} MiB on cell {number}"
        for cell in mine:
            cpus = set(cell.cpu_pinning.values())
            if not cpus <= known.pcpuset:
                yield f"{host.host}: CPUs {cpus} on cell {number}"
        # Each vCPU is promised a core, on whichever threads Nova pins it.
        vcpus = sum(len(cell.cpu_pinning) for cell in mine)
        if smt == "cores" and vcpus > host.shape.cores:
            yield f"{host.host}: {vcpus} pinned vCPUs on cell {number}"
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
        right = [1000] if _high(server) else [1] * MOST
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

# SPDX-License-Identifier: Apache-2.0
"""Find servers that harm each other: too many, shared CPUs, mixed classes."""

import collections
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import NamedTuple

from nova_perfvm import cpuset
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.facts import NUMACell
from nova_perfvm.findings import (
    CELLS_UNKNOWN,
    CLASSES_MIXED,
    NOT_IN_ONE_CELL,
    NOT_PINNED,
    PINS_OVERLAP,
    SLOT_STRANDED,
    TOO_MANY_ON_CELL,
    TOO_MANY_ON_HOST,
    Finding,
)
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.rules.slots import cell_cpus, cell_takes


class ServerFacts(NamedTuple):
    """One server as it runs.

    :ivar class_name: its class; None for pinned servers without a class
    :ivar host: the hypervisor of the server
    :ivar pinned_cpus: host CPUs that its vCPUs are pinned to
    :ivar resize: the commands that give it a flavor of its class
    :ivar leave: the commands that move it to another host
    :ivar nodes: the host's NUMA nodes that it is on; empty if not known, its CPUs then
        tell
    :ivar vcpus: 0 for the class's number
    :ivar pins_hidden: whether the API hides the pinned CPUs
    """

    id: str
    name: str
    class_name: str | None
    host: str
    pinned_cpus: frozenset[int] = frozenset()
    nodes: frozenset[int] = frozenset()
    resize: str = "openstack server resize --flavor FLAVOR SERVER"
    leave: str = "openstack server migrate SERVER"
    vcpus: int = 0
    pins_hidden: bool = False

    def on(self, cell: NUMACell) -> bool:
        """Return whether the server owns CPUs of a cell."""
        if self.nodes:
            return bool(self.pinned_cpus) and cell.id in self.nodes
        return bool(self.pinned_cpus & (cell.cpuset | cell.pcpuset))


def check(subject: Subject) -> Iterator[Finding]:
    """List the violations by servers on the hosts that the policy manages."""
    facts = [
        ServerFacts(
            id=server.id,
            name=str(server),
            class_name=getattr(subject.class_of(server), "name", None),
            host=host,
            pinned_cpus=server.pinned_cpus,
            nodes=server.pinned_nodes,
            resize=subject.resize(server),
            leave=subject.leave(server),
            vcpus=server.vcpus,
            pins_hidden=server.pins_hidden,
        )
        for host, servers in subject.snapshot.servers_by_host.items()
        if subject.managed(host)
        for server in servers
    ]
    cells = {name: host.cells for name, host in subject.hosts.items()}
    assumed = {h.host for h in subject.snapshot.hosts if h.division_assumed}
    yield from check_servers(subject.policy, cells, facts, assumed)
    for host in sorted({server.host for server in facts if server.pinned_cpus}):
        if not cells.get(host):
            yield Finding.of(
                CELLS_UNKNOWN,
                host,
                "the host shows no NUMA nodes: VMs on each node cannot be counted",
                f"openstack hypervisor show {quote(host)}",
            )


def check_servers(
    policy: Policy,
    cells: Mapping[str, Sequence[NUMACell]],
    servers: Iterable[ServerFacts],
    assumed: Collection[str] = (),
) -> list[Finding]:
    """List the violations by servers, host by host.

    :param cells: the NUMA nodes of each host, by the host's name
    :param assumed: names of the hosts whose cells with shared CPUs are unknown
    """
    by_host: dict[str, list[ServerFacts]] = collections.defaultdict(list)
    for server in servers:
        by_host[server.host].append(server)
    found: list[Finding] = []
    for host, here in sorted(by_host.items()):
        found.extend(_pins(host, here))
        mine = cells.get(host, ())
        found.extend(_classes(policy, host, mine, here, assumed=host in assumed))
        found.extend(_counts(policy, host, mine, here))
    return found


def _pins(host: str, servers: Sequence[ServerFacts]) -> Iterator[Finding]:
    for one, other in itertools.combinations(servers, 2):
        both = one.pinned_cpus & other.pinned_cpus
        if both:
            yield Finding.of(
                PINS_OVERLAP,
                host,
                f"{one.name} and {other.name} are both pinned to "
                f"{cpuset.format_cpus(both)}",
                other.leave,
            )


def _classes(
    policy: Policy,
    host: str,
    cells: Sequence[NUMACell],
    servers: Sequence[ServerFacts],
    *,
    assumed: bool,
) -> Iterator[Finding]:
    kinds = collections.Counter(server.class_name or "(none)" for server in servers)
    exclusive = [
        vm_class.name
        for vm_class in policy.pinned_classes
        if vm_class.exclusive == "host" and vm_class.name in kinds
    ]
    if exclusive and len(kinds) > 1:
        # The class with the most VMs stays; among equals, an exclusive class stays.
        stays = max(kinds, key=lambda kind: (kinds[kind], kind in exclusive, kind))
        words = f"{', '.join(sorted(kinds))}, and {', '.join(exclusive)} wants hosts"
        leave = [s for s in servers if (s.class_name or "(none)") != stays]
        yield _mixed(host, words, leave)
        return
    for vm_class in policy.pinned_classes:
        if vm_class.exclusive != "cell":
            continue
        mine = [s for s in servers if s.class_name == vm_class.name]
        others = [s for s in servers if s.class_name != vm_class.name]
        own = [cell for cell in cells if any(server.on(cell) for server in mine)]
        # Unpinned VMs float over all shared CPUs of their host.
        shared = any(cell.cpuset for cell in own)
        floating = [s for s in others if shared and not s.pinned_cpus]
        if floating and assumed:
            yield Finding.of(
                CELLS_UNKNOWN,
                host,
                "it is unknown which NUMA nodes have shared CPUs: unpinned VMs may run "
                f"beside VMs of {vm_class.name}, which wants NUMA nodes for "
                "itself",
                "openstack perfvm snapshot save FILE --from-nova-db",
            )
            floating = []
        leave = [
            server
            for server in others
            if server in floating or any(server.on(cell) for cell in own)
        ]
        if leave:
            nodes = ", ".join(str(cell.id) for cell in own)
            words = f"several classes, and {vm_class.name} wants NUMA nodes ({nodes})"
            yield _mixed(host, words, leave)
            # If two classes exclude each other, only the VMs of one class leave.
            servers = [server for server in servers if server not in leave]


def _mixed(host: str, words: str, leave: Sequence[ServerFacts]) -> Finding:
    words = f"VMs of {words} for itself: {_names(leave)} should leave"
    return Finding.of(CLASSES_MIXED, host, words, _leave(leave))


def _counts(
    policy: Policy,
    host: str,
    cells: Sequence[NUMACell],
    servers: Sequence[ServerFacts],
) -> Iterator[Finding]:
    for vm_class in policy.pinned_classes:
        mine = [server for server in servers if server.class_name == vm_class.name]
        cap = vm_class.max_per_host
        if cap is not None and len(mine) > cap:
            yield Finding.of(
                TOO_MANY_ON_HOST,
                host,
                f"{len(mine)} VMs of {vm_class.name}, max_per_host is {cap}: "
                f"{_names(mine)}",
                _leave(mine[cap:]),
            )
        for cell in cells:
            here = [server for server in mine if server.on(cell)]
            leave = _beyond(vm_class, cell, here)
            if leave:
                yield Finding.of(
                    TOO_MANY_ON_CELL,
                    host,
                    f"NUMA node {cell.id} has {len(here)} VMs of {vm_class.name}, and "
                    f"no CPUs left for {_names(leave)}",
                    _leave(leave),
                )
            elif odd := _stranding(vm_class, cell, here):
                yield Finding.of(
                    SLOT_STRANDED,
                    host,
                    f"NUMA node {cell.id}: {_names(odd)}, without the "
                    f"{vm_class.vcpus} vCPUs of {vm_class.name}: the CPUs left "
                    "beside them are too few for a VM of the class",
                    "\n".join(server.resize for server in odd),
                )
        for server in mine:
            yield from _spread(vm_class, host, cells, server)


def _beyond(
    vm_class: VMClass, cell: NUMACell, servers: Iterable[ServerFacts]
) -> list[ServerFacts]:
    """Return the VMs of a pinned class for which a cell has no CPUs left."""
    left, _ = cell_cpus(vm_class, cell)
    leave = []
    for server in servers:
        size = vm_class.of_size(server.vcpus)
        # The CPU of isolated emulator threads is on the first of several cells.
        need = size.cell_pcpus if size.cells_per_vm == 1 else size.cell_vcpus
        if need <= left:
            left -= need
        else:
            leave.append(server)
    return leave


def _stranding(
    vm_class: VMClass, cell: NUMACell, servers: Iterable[ServerFacts]
) -> list[ServerFacts]:
    """Return VMs with fewer vCPUs than their class, if they cost the cell a slot.

    A larger VM takes one slot, as a VM of the class's size does.
    """
    odd, mine, whole = [], 0, vm_class.vcpus or 0
    for server in servers:
        if 0 < server.vcpus < whole and server.vcpus not in vm_class.sizes:
            odd.append(server)
        else:
            mine += cell_takes(vm_class.of_size(server.vcpus), cell)
    left = cell_cpus(vm_class, cell)[0] - mine
    taken = sum(-(-server.vcpus // vm_class.cells_per_vm) for server in odd)
    need = cell_takes(vm_class, cell)
    return odd if max(0, left - taken) // need < max(0, left) // need else []


def _spread(
    vm_class: VMClass, host: str, cells: Sequence[NUMACell], server: ServerFacts
) -> Iterator[Finding]:
    """Check that a VM of a pinned class owns CPUs on the right number of NUMA nodes."""
    if server.pins_hidden:
        # The snapshot's gaps report hidden pins.
        return
    if not server.pinned_cpus:
        yield Finding.of(
            NOT_PINNED,
            server.name,
            f"on {host}: its class {vm_class.name} is pinned, but the VM owns no CPU",
            server.resize,
        )
        return
    nodes = server.nodes or {cell.id for cell in cells if server.on(cell)}
    if nodes and len(nodes) != vm_class.cells_per_vm:
        yield Finding.of(
            NOT_IN_ONE_CELL,
            server.name,
            f"on {host}: pinned on NUMA nodes {', '.join(map(str, sorted(nodes)))}, "
            f"its class wants {vm_class.cells_per_vm}",
            server.resize,
        )


def _names(servers: Iterable[ServerFacts]) -> str:
    return ", ".join(server.name for server in servers)


def _leave(servers: Iterable[ServerFacts]) -> str:
    return "\n".join(server.leave for server in servers)

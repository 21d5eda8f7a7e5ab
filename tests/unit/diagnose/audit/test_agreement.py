# SPDX-License-Identifier: Apache-2.0
"""The audit counts servers, the rules count pins: they find the same faults."""

import testtools
from hypothesis import event, given, settings
from hypothesis import strategies as st

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm import rules
from nova_perfvm.diagnose.audit import Subject, servers
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.snapshot import (
    INVENTORY_FILE,
    Aggregate,
    ComputeHost,
    HostCell,
    Server,
    ServerCell,
    Snapshot,
)
from nova_perfvm.policy import HostShape
from nova_perfvm.rules.slots import host_slots
from tests.unit.rules import hosts

# What servers do to each other, as the audit has it.
COMPANY = {codes.CLASSES_MIXED, codes.TOO_MANY_ON_HOST, codes.TOO_MANY_ON_CELL}
MEMORY_MB = 1 << 20
LABELS = ("high-performance", "general")
UNLABELLED = ((),) * 6


def cells_of(shape, mode):
    """Return the cells of a host."""
    return tuple(
        HostCell(cell.id, cell.cpuset, cell.pcpuset, MEMORY_MB, tuple(cell.siblings))
        for cell in hosts.host(shape, mode).cells
    )


def cloud(cells, found, labels=()):
    """Return the snapshot of one host and its servers."""
    host = ComputeHost("h", "h", "p", "s", cells=cells, cells_source=INVENTORY_FILE)
    aggregates = tuple(
        Aggregate(n, str(n), label, {const.CLASS_KEY: label}, frozenset("h"))
        for n, label in enumerate(labels)
    )
    return Snapshot(
        taken_at="2026-01-01T00:00:00+00:00",
        hosts=(host,),
        providers=(),
        servers=tuple(found),
        aggregates=aggregates,
    )


def server(name, vcpus, extra_specs, cells=()):
    return Server(
        name,
        name,
        "h",
        "ACTIVE",
        vcpus,
        extra_specs,
        pinned=bool(cells),
        node="h",
        memory_mb=1024,
        cells=cells,
    )


def pinned(name, pins, vm_class="high-performance"):
    """Return a server that owns CPUs, by the host's cells that they are on."""
    vcpus = sum(map(len, pins.values()))
    specs = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": str(len(pins))}
    if vm_class:
        specs["perfvm:class"] = vm_class
    cells, first = [], 0
    for node, cpus in pins.items():
        guest = range(first, first + len(cpus))
        pinning = dict(zip(guest, sorted(cpus), strict=True))
        memory_mb = 1024 // len(pins)
        cells.append(ServerCell(node, frozenset(guest), memory_mb, pinning))
        first += len(cpus)
    return server(name, vcpus, specs, tuple(cells))


def general(name):
    return server(name, 2, {})


def audited(policy, snapshot):
    """Return the codes of what the audit has against the servers of a host."""
    subject = Subject(policy, snapshot)
    found = {finding.code for finding in servers.check(subject)} & COMPANY
    facts = subject.hosts["h"]
    for request in subject.requests.values():
        reasons = rules.check_placed(policy, request, facts)
        found |= {rules.REFUSALS[reason.code].audit for reason in reasons}
    return found


def refused(policy, snapshot):
    """Return the codes for which servers could not come where they are."""
    (view,) = views_of(snapshot)
    requests = Subject(policy, snapshot).requests
    found = set()
    for one in snapshot.servers:
        facts = view.without([one]).facts
        nodes = {cell.host_node for cell in one.cells or ()}
        # Another cell of the host may have room; it is not on that.
        own = facts._replace(cells=[cell for cell in facts.cells if cell.id in nodes])
        reasons = rules.check_host(policy, requests[one.id], facts)
        crowded = rules.check_host(policy, requests[one.id], own) if nodes else ()
        found |= {reason.code for reason in reasons}
        found |= {reason.code for reason in crowded} & {"host.no_free_slot"}
    return found


@st.composite
def policies(draw):
    """Draw a policy whose pinned class has VMs of four vCPUs."""
    exclusive = draw(st.sampled_from(["host", "cell", "none"]))
    return hosts.policy(
        vcpus=4,
        former_vcpus=draw(st.sampled_from([(), (2,)])) if exclusive == "host" else (),
        exclusive=exclusive,
        max_per_host=draw(st.sampled_from([1, 2, 3, None])),
        numa_nodes=draw(st.sampled_from([1, 1, 2])),
        smt=draw(st.sampled_from(["cores", "threads"])),
    )


@st.composite
def clouds(draw, policy):
    """Draw a host that serves VMs of the policy, and servers that Nova lets run there.

    Nova pins no CPU twice, and unpinned VMs need a CPU that is shared.
    """
    vm_class = policy.get_class("high-performance")
    shape = HostShape.parse(
        draw(st.sampled_from(["1x4", "2x4", "2x8", "3x6", "2x4x2"]))
    )
    mode = draw(st.sampled_from(["dedicated", "open"]))
    if vm_class.exclusive != "host" and mode == "dedicated":
        # Some of its NUMA nodes, or all; the others are shared.
        size = shape.cores * shape.threads
        nodes = draw(st.sets(st.sampled_from(range(shape.cells))))
        mode = {cpu for cpu in range(shape.cpus) if cpu // size in nodes}
    cells = cells_of(shape, mode)
    free = {cell.id: set(cell.pcpuset) for cell in cells}
    (empty,) = views_of(cloud(cells, ()))
    slots = host_slots(vm_class, empty.facts.cells)
    found = []
    names = draw(
        st.lists(st.sampled_from(["class", "class", "general", "other"]), max_size=6)
    )
    for number, kind in enumerate(names):
        if kind == "general":
            if any(cell.cpuset for cell in cells):
                found.append(general(f"{number}"))
            continue
        nodes = vm_class.cells_per_vm if kind == "class" else 1
        each = draw(st.sampled_from(vm_class.sizes)) // nodes
        if kind == "other":
            if not slots:
                # Its pins may be those of the class, for all that rules see.
                continue
            each = draw(st.integers(1, 4))
        room = [node for node, cpus in free.items() if len(cpus) >= each]
        if len(room) < nodes:
            continue
        pins = {}
        for node in draw(st.permutations(room))[:nodes]:
            # One thread of each core first, or both of one core.
            step = draw(st.sampled_from([1, shape.threads]))
            order = sorted(free[node], key=lambda cpu: (cpu % step, cpu))
            pins[node] = frozenset(order[:each])
            free[node] -= pins[node]
        name = "high-performance" if kind == "class" else None
        found.append(pinned(f"{number}", pins, name))
    labels = draw(st.sampled_from([*UNLABELLED, LABELS[:1], LABELS[1:], LABELS]))
    return cloud(cells, found, labels)


class AgreementTest(testtools.TestCase):
    @settings(max_examples=300)
    @given(st.data())
    def test_one_finds_something_where_the_other_does(self, data):
        policy = data.draw(policies())
        snapshot = data.draw(clouds(policy))
        audit, scheduler = audited(policy, snapshot), refused(policy, snapshot)
        event(f"{sorted(audit)} {sorted(scheduler)}")
        self.assertEqual(bool(audit), bool(scheduler), f"{audit} {scheduler}")

# SPDX-License-Identifier: Apache-2.0
"""Judge a row's cloud without the product's rules.

The judge reads the databases of Nova and Placement, and the XML of libvirt's guests.
"""

import collections
import itertools
import time
from typing import NamedTuple
from xml.etree import ElementTree as ET

from nova import context, objects

from nova_perfvm.diagnose import audit
from nova_perfvm.findings import Level
from tests import judge
from tests.matrix.factors import NOTHING
from tests.matrix.policies import nodes_of, vcpus_of
from tests.operations import verdict

# Nova finishes its work in the background within this time.
SETTLE_S = 10
_ADDRESS = ("domain", "bus", "slot", "function")


class Guest(NamedTuple):
    """A guest in libvirt and in Nova's database.

    :ivar of: the guest as tests/judge.py reads it
    :ivar emulator: the host's CPUs that its emulator threads run on
    :ivar memory_mb: {the host's NUMA node: its memory there}
    :ivar devices: addresses of PCI devices
    :ivar instance: from Nova's database
    """

    of: judge.Guest
    emulator: frozenset[int]
    memory_mb: dict[int, int]
    devices: frozenset[str]
    instance: objects.Instance

    @property
    def owned(self):
        """The host CPUs of its pinned vCPUs and of isolated emulator threads."""
        topology = self.instance.numa_topology
        if not topology or not any(cell.pcpuset for cell in topology.cells):
            return frozenset()
        isolated = topology.emulator_threads_policy == "isolate"
        return self.of.cpus | (self.emulator if isolated else frozenset())

    @property
    def left(self):
        """Whether the VM has gone to another host, and a revert brings it back."""
        return self.instance.host != self.of.host

    def __str__(self):
        return f"{self.of.id} on {self.of.host}"


def read(cloud):
    """Return the guests of all hosts."""
    return [
        _guest(host, text)
        for host in cloud.hosts
        for text in cloud.cloud.domains(host).values()
    ]


def _guest(host, text):
    xml, found = ET.fromstring(text), judge.guest(host, text)
    sizes = [int(cell.get("memory")) // 1024 for cell in xml.findall("cpu/numa/cell")]
    memory_mb = collections.Counter()
    for node in xml.findall("numatune/memnode"):
        (own,) = judge._numbers(node.get("nodeset"))
        memory_mb[own] += sizes[int(node.get("cellid"))]
    pin = xml.find("cputune/emulatorpin")
    devices = [
        "{:04x}:{:02x}:{:02x}.{:x}".format(*(int(at.get(k), 16) for k in _ADDRESS))
        for at in xml.findall("devices/hostdev/source/address")
    ]
    instance = objects.Instance.get_by_uuid(
        context.get_admin_context(), found.id, ["numa_topology", "pci_devices"]
    )
    emulator = judge._numbers("" if pin is None else pin.get("cpuset"))
    return Guest(found, emulator, dict(memory_mb), frozenset(devices), instance)


class Judge:
    """Judges a clouds.Cloud after each step."""

    def __init__(self, cloud):
        self._cloud, self._row = cloud, cloud.row

    def complaints(self, *, audited):
        """List faults that last: Nova may still be at work."""
        deadline = time.monotonic() + SETTLE_S
        # Placement does not know the NUMA node of a forced VM before `align`.
        audited = audited and self._row.operation != "forced"
        while found := [*self._look(), *(self._audit() if audited else ())]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.5)
            self._cloud.cloud.run_periodics()
        return found

    def against_policy(self, guests=None):
        """List the violations of the policy."""
        row, on = self._row, collections.defaultdict(list)
        for guest in guests or read(self._cloud):
            on[guest.of.host].append(guest)
        found = []
        for host, here in on.items():
            high = [guest for guest in here if guest.of.high]
            if row.exclusive == "host" and 0 < len(high) < len(here):
                found.append(f"{host}: {len(high)} of {len(here)} are of the class")
            if row.most != NOTHING and len(high) > int(row.most):
                found.append(f"{host}: {len(high)} are of the class")
            found += [
                f"{guest} is split unevenly"
                for guest in high
                if len(set(self._per_node(guest.of.cpus).values())) > 1
                or len(set(guest.memory_mb.values())) > 1
            ]
        return found

    def near(self, server):
        """Return whether a VM is on the NUMA node of its device; None without one."""
        for guest in read(self._cloud):
            if guest.of.id == server and guest.devices and guest.of.nodes:
                return int(self._row.device) in guest.of.nodes
        return None

    def _look(self):
        guests = read(self._cloud)
        for guest in guests:
            if not guest.left:
                yield from self._differences(guest)
            elif guest.instance.vm_state != "resized":
                yield f"{guest}: Nova has it on {guest.instance.host}"
        for one, other in itertools.combinations(guests, 2):
            cores = self._cores(one) & self._cores(other)
            if one.of.host == other.of.host and cores:
                yield f"{one} and {other} own the same cores {cores}"
        yield from self.against_policy(guests)
        yield from self._books(guests)

    def _cores(self, guest):
        """Return the cores that the guest owns, or threads under smt: threads."""
        threads = 1 if self._row.smt == "threads" else self._cloud.shape.threads
        return {cpu // threads for cpu in guest.owned}

    def _per_node(self, cpus):
        """Count CPUs by their NUMA nodes."""
        size = self._cloud.shape.cores * self._cloud.shape.threads
        return collections.Counter(cpu // size for cpu in cpus)

    def _differences(self, guest):
        """Compare a guest with its class, and with Nova's database."""
        of, topology = guest.of, guest.instance.numa_topology
        own = of.high == self._row.pinned
        alone = all(len(cpus) == 1 for cpus in of.pins)
        if of.high:
            vcpus = set(vcpus_of(self._row)) if own else {20}
            if not alone or len(of.pins) not in vcpus or len(of.cpus) not in vcpus:
                yield f"{guest}: pinned to {of.pins}"
            found = self._per_node(guest.owned).keys()
            wrong = len(found) != (nodes_of(self._row) if own else 1)
            if wrong or not found == of.nodes == guest.memory_mb.keys():
                yield f"{guest}: CPUs on {found}, memory on {of.nodes}"
        elif of.pins and alone:
            yield f"{guest}: it is pinned, and of no class that is"
        if topology:
            known = {c.id: set((c.cpu_pinning or {}).values()) for c in topology.cells}
            has = {key: set() for key in of.nodes}
            for cpu in of.cpus if of.high else ():
                (node,) = self._per_node([cpu])
                has[node] = has.get(node, set()) | {cpu}
            if known != has:
                yield f"{guest}: libvirt has {has}, Nova's database {known}"
        devices = {device.address for device in guest.instance.pci_devices}
        if devices != guest.devices:
            yield f"{guest}: libvirt has {set(guest.devices)}, Nova {devices}"

    def _books(self, guests):
        """Compare what Placement has with the guests."""
        books = verdict.books()
        held = dict(books.held)
        yield from (f"allocated is too much: {over}" for over in books.over)
        for guest in guests:
            instance, host = guest.instance, guest.of.host
            # The migration holds the allocation on the source host.
            move = instance.migration_context if guest.left else None
            consumer = instance.uuid
            if move:
                admin = context.get_admin_context()
                consumer = objects.Migration.get_by_id(admin, move.migration_id).uuid
            has = held.pop(consumer, {})
            if host not in has or {p.partition("_")[0] for p in has} != {host}:
                yield f"{guest}: Placement has {has}"
            own = {
                provider: {k: n for k, n in amounts.items() if "PERFVM" in k}
                for provider, amounts in has.items()
            }
            own = {provider: amounts for provider, amounts in own.items() if amounts}
            expected = self._expected(guest)
            if expected is not None and own not in expected:
                yield f"{guest}: Placement has {own}, and not {expected}"
            counted = {p.partition("_")[2] for p in has if ":" in p}
            if self._row.counted == "yes" and counted != guest.devices:
                yield f"{guest}: it has {guest.devices}, Placement {counted}"
        for consumer, has in held.items():
            yield f"{consumer} is on no host, and Placement has {has}"

    def _expected(self, guest):
        """Return the allocations of CUSTOM_PERFVM resources that are right."""
        scheme, host = self._row.scheme, guest.of.host
        if (scheme, self._row.operation) == ("cells", "forced"):
            return None
        if scheme == "units":
            names = {p for p, _ in verdict.capacities() if f"{host}_perfvm_" in p}
            if guest.of.high:
                return [{name: {"CUSTOM_PERFVM_UNIT": 1000}} for name in names]
            return [{key: {"CUSTOM_PERFVM_UNIT": 1} for key in names}]
        if not guest.of.high or scheme == "none":
            return [{}]
        slot = {host: {"CUSTOM_PERFVM_SLOT": 1}}
        if scheme == "slots":
            return [slot]
        cpus = self._per_node(guest.owned)
        if self._row.threads == "require":
            # Placement counts whole cores.
            threads = self._cloud.shape.threads
            cpus = {node: -(-n // threads) * threads for node, n in cpus.items()}
        nodes = {
            f"{host}_perfvm_cell_{node}": {
                "CUSTOM_PERFVM_CELL_CPU": cpus.get(node),
                "CUSTOM_PERFVM_CELL_MEMORY_MB": memory_mb,
            }
            for node, memory_mb in guest.memory_mb.items()
        }
        return [nodes if self._row.most == NOTHING else nodes | slot]

    def _audit(self):
        report = audit.run(audit.Subject(self._cloud.policy, self._cloud.seen()))
        return [f"audit: {f}" for f in report.findings if f.level > Level.UNKNOWN]

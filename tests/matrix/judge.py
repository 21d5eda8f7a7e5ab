# SPDX-License-Identifier: Apache-2.0
"""What has to be true of a row's cloud; nothing here asks the product's rules.

It reads Nova's database, Placement's, and the XML that Nova gave to libvirt.
"""

import collections
import itertools
import re
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

# What Nova does in the background after an operation, it does within this.
SETTLE_S = 10


class Guest(NamedTuple):
    """A guest: what libvirt has of it, and what Nova's database.

    :ivar emulator: the host's CPUs that its emulator threads run on
    :ivar memory_mb: {the host's NUMA node: memory of it there}
    :ivar devices: addresses of PCI devices
    :ivar instance: Nova's object
    """

    of: judge.Guest
    emulator: frozenset[int]
    memory_mb: dict[int, int]
    devices: frozenset[str]
    instance: object

    @property
    def owned(self):
        """The CPUs that nobody else may have."""
        topology = self.instance.numa_topology
        if not topology or not any(c.pcpuset for c in topology.cells):
            return frozenset()
        isolated = topology.emulator_threads_policy == "isolate"
        return self.of.cpus | (self.emulator if isolated else frozenset())


def read(cloud):
    """Return the guests of all hosts."""
    return [
        _guest(host, text)
        for host in cloud.hosts
        for text in cloud.cloud.domains(host).values()
    ]


def _guest(host, text):
    xml = ET.fromstring(text)
    sizes = [int(c.get("memory")) // 1024 for c in xml.findall("cpu/numa/cell")]
    memory = collections.Counter()
    for node in xml.findall("numatune/memnode"):
        (own,) = judge._numbers(node.get("nodeset"))
        memory[own] += sizes[int(node.get("cellid"))]
    found = judge.guest(host, text)
    pin = xml.find("cputune/emulatorpin")
    return Guest(
        found,
        frozenset() if pin is None else judge._numbers(pin.get("cpuset")),
        dict(memory),
        frozenset(
            "{:04x}:{:02x}:{:02x}.{:x}".format(
                *(int(a.get(k), 16) for k in ("domain", "bus", "slot", "function"))
            )
            for a in xml.findall("devices/hostdev/source/address")
        ),
        objects.Instance.get_by_uuid(
            context.get_admin_context(),
            found.id,
            expected_attrs=["numa_topology", "pci_devices"],
        ),
    )


class Judge:
    """Judges a cloud after each step.

    :param cloud: a clouds.Cloud
    """

    def __init__(self, cloud):
        self._cloud, self._row = cloud, cloud.row

    def against_policy(self):
        """List what the policy forbids of the guests that there are."""
        return [text for host in self._on() for text in self._policy(*host)]

    def complaints(self, *, audited):
        """List what is wrong; Nova's books may take their time."""
        deadline = time.monotonic() + SETTLE_S
        while found := [*self._look(), *(self._audit() if audited else ())]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.5)
            self._cloud.cloud.run_periodics()
        return found

    def near(self, server):
        """Return whether a VM is on the NUMA node of its device; None without one."""
        for guest in read(self._cloud):
            if guest.of.id == server and guest.devices and guest.of.nodes:
                return int(self._row.device) in guest.of.nodes
        return None

    def _on(self):
        on = collections.defaultdict(list)
        for guest in read(self._cloud):
            on[guest.of.host].append(guest)
        return on.items()

    def _look(self):
        guests = read(self._cloud)
        for guest in guests:
            yield from self._guest(guest)
        for one, other in itertools.combinations(guests, 2):
            if one.of.host == other.of.host:
                cores = self._cores(one) & self._cores(other)
                if cores:
                    yield f"{one.of.id} and {other.of.id} own the same cores {cores}"
        yield from self.against_policy()
        yield from self._books(guests)

    def _cores(self, guest):
        """Return what nobody else may have: cores, or threads where VMs share them."""
        threads = 1 if self._row.smt == "threads" else self._cloud.shape.threads
        return {cpu // threads for cpu in guest.owned}

    def _node(self, cpu):
        return cpu // (self._cloud.shape.cores * self._cloud.shape.threads)

    def _policy(self, host, guests):
        row = self._row
        high = [guest for guest in guests if guest.of.high]
        if row.exclusive == "host" and 0 < len(high) < len(guests):
            yield f"{host}: {len(high)} of {len(guests)} guests are of the class"
        most = max(int(row.most), 1) if row.most != NOTHING else None
        if most and len(high) > most:
            yield f"{host}: {len(high)} of the class, and {most} may be"
        for guest in high:
            counts = set(collections.Counter(map(self._node, guest.of.cpus)).values())
            if len(counts | set()) > 1 or len(set(guest.memory_mb.values())) > 1:
                yield f"{host}: {guest.of.id} is split unevenly: {guest.memory_mb}"

    def _guest(self, guest):
        """Compare a guest with its class, and with Nova's database."""
        of, topology = guest.of, guest.instance.numa_topology
        where = f"{of.id} on {of.host}"
        if guest.instance.host != of.host and self._settled(guest):
            yield f"{where}: Nova has it on {guest.instance.host}"
            return
        if guest.instance.host != of.host:
            # Where it can go back to.
            return
        own = of.high == self._row.pinned
        if of.high:
            vcpus = set(vcpus_of(self._row)) if own else {20}
            nodes = nodes_of(self._row) if own else 1
            alone = all(len(cpus) == 1 for cpus in of.pins)
            if not alone or len(of.pins) not in vcpus or len(of.cpus) not in vcpus:
                yield f"{where}: pinned to {of.pins}"
            found = {self._node(cpu) for cpu in guest.owned}
            if (
                len(found) != nodes
                or found != of.nodes
                or found != set(guest.memory_mb)
            ):
                yield f"{where}: CPUs on {found}, memory on {of.nodes}"
        elif of.pins and any(len(cpus) == 1 for cpus in of.pins):
            yield f"{where}: it is pinned, and of no class that is"
        if topology:
            known = {
                cell.id: set((cell.cpu_pinning or {}).values())
                for cell in topology.cells
            }
            has = {
                node: {cpu for cpu in of.cpus if self._node(cpu) == node}
                if of.high
                else set()
                for node in of.nodes
            }
            if known != has:
                yield f"{where}: libvirt has {has}, Nova's database {known}"
        devices = {device.address for device in guest.instance.pci_devices}
        if devices != guest.devices:
            yield f"{where}: libvirt has {set(guest.devices)}, Nova {devices}"

    def _settled(self, guest):
        states = {"resized"}
        return guest.instance.vm_state not in states

    def _books(self, guests):
        """Compare what Placement has with the guests."""
        books = verdict.books()
        yield from (f"too much: {over}" for over in books.over)
        held = dict(books.held)
        for guest in guests:
            instance, host = guest.instance, guest.of.host
            consumer = instance.uuid
            if instance.host != host:
                # The migration holds what it can go back to.
                consumer = instance.migration_context and self._migration(instance)
            has = held.pop(consumer, {})
            if self._cloud.ours:
                expected = self._expected(guest)
                found = {
                    provider: own
                    for provider, amounts in has.items()
                    if (own := {k: n for k, n in amounts.items() if "PERFVM" in k})
                }
                if found not in expected:
                    yield f"{consumer} on {host} has {found}, and not {expected}"
            strangers = {p for p in has if re.split("_", p)[0] != host}
            if strangers or not has.get(host):
                yield f"{consumer} on {host} has {has}"
            counted = {p.partition("_")[2] for p in has if ":" in p}
            if self._row.counted == "yes" and counted != guest.devices:
                yield f"{consumer} on {host}: has {guest.devices}, Placement {counted}"
        for consumer, has in held.items():
            yield f"{consumer} is on no host and has {has}"

    def _migration(self, instance):
        found = objects.Migration.get_by_id(
            context.get_admin_context(), instance.migration_context.migration_id
        )
        return found.uuid

    def _expected(self, guest):
        """Return what it may have of the scheme's own resources, by provider."""
        scheme, host = self._row.scheme, guest.of.host
        if scheme == "units":
            names = sorted(p for p, _ in verdict.capacities() if f"{host}_perfvm_" in p)
            if not guest.of.high:
                return [{name: {"CUSTOM_PERFVM_UNIT": 1} for name in names}]
            return [{name: {"CUSTOM_PERFVM_UNIT": 1000}} for name in names]
        if not guest.of.high or scheme == "none":
            return [{}]
        if scheme == "slots":
            return [{host: {"CUSTOM_PERFVM_SLOT": 1}}]
        cpus = collections.Counter(map(self._node, guest.owned))
        nodes = {
            f"{host}_perfvm_cell_{node}": {
                "CUSTOM_PERFVM_CELL_CPU": cpus[node],
                "CUSTOM_PERFVM_CELL_MEMORY_MB": guest.memory_mb.get(node),
            }
            for node in guest.memory_mb
        }
        root = {} if self._row.most == NOTHING else {"CUSTOM_PERFVM_SLOT": 1}
        return [nodes | ({host: root} if root else {})]

    def _audit(self):
        report = audit.run(audit.Subject(self._cloud.policy, self._cloud.seen()))
        return [
            f"audit: {finding}"
            for finding in report.findings
            if finding.level > Level.UNKNOWN
        ]

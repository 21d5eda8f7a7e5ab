# SPDX-License-Identifier: Apache-2.0
"""Find for each service the flavor that carries it, how many VMs, and what limits.

LY's rule is to give a VM more than its service uses at its peak.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from nova_perfvm.policy import VMClass, groups_of
from nova_perfvm.sizing import disk
from nova_perfvm.sizing.hosts import Cell
from nova_perfvm.sizing.ratios import VMRatios
from nova_perfvm.sizing.services import Service

# More VMs in place of one server are not planned.
_MOST_VMS: Final = 64


class Size(NamedTuple):
    """A flavor on the hosts that serve its class.

    :ivar cells: NUMA nodes that a VM is pinned to; 0 for VMs that share CPUs
    :ivar cell_cpus: CPUs that a pinned VM takes on each of its NUMA nodes
    :ivar per_host: VMs of the size on an otherwise empty host
    """

    class_name: str
    flavor: str
    vcpus: int
    memory_gb: float
    cells: int
    cell_cpus: int
    per_host: int


def sizes_of(
    vm_class: VMClass,
    room: Sequence[Cell],
    parts: Iterable[int] = (1,),
    *,
    mixed: bool = False,
) -> Iterator[Size]:
    """Yield the flavors of a class that fit a host.

    :param room: NUMA nodes of an empty host that serves the class
    :param parts: divide each flavor by these numbers, where they divide its vCPUs
    :param mixed: whether a host has VMs of several sizes
    """
    flavors = vm_class.flavors
    threads = max((cell.threads for cell in room), default=1)
    for size in flavors.sizes if flavors else ():
        for part in parts:
            if size.vcpus % (part * vm_class.cells_per_vm):
                continue
            cells = vm_class.cells_per_vm if vm_class.pinned else 0
            found = Size(
                vm_class.name,
                flavors.name_of(vm_class.name, size) if flavors and part == 1 else "",
                size.vcpus // part,
                size.memory_gb / part,
                cells,
                vm_class.cpus_kept(size.vcpus // part // cells, threads, mixed=mixed)
                if cells
                else 0,
                0,
            )
            fitting = _fitting(found, room)
            if fitting:
                most = fitting if part > 1 else vm_class.capped(fitting)
                name = found.flavor or f"{found.vcpus}c.{found.memory_gb:g}g"
                yield found._replace(per_host=most, flavor=name)


def _fitting(size: Size, room: Sequence[Cell]) -> int:
    if not size.cells:
        cpus = sum(cell.cpus for cell in room)
        memory_gb = math.fsum(cell.memory_gb for cell in room)
        return min(cpus // size.vcpus, int(memory_gb / size.memory_gb))
    memory_gb = size.memory_gb / size.cells
    shares = [
        min(cell.cpus // size.cell_cpus, int(cell.memory_gb / memory_gb))
        for cell in room
    ]
    return groups_of(shares, size.cells)


@dataclass(frozen=True, slots=True)
class DiskLimits:
    """What fio measured of the disk that the VMs of a host share.

    :ivar count: which of the three counts limits the VMs of a host
    """

    alone: disk.Figures
    contended: tuple[disk.Figures, ...]
    count: disk.Count

    def plan(self, service: Service, vms: int, growth: float) -> disk.DiskPlan | None:
        """Return how many such VMs the disk serves; None for a service without I/O.

        :param vms: VMs that do the work of one server
        :param growth: factor by which the server's I/O may grow
        """
        each = [
            None if iops is None else math.ceil(iops * growth / vms)
            for iops in (service.read_iops, service.write_iops)
        ]
        if each == [None, None]:
            return None
        guarantee = disk.Guarantee(each[0], each[1], service.latency_ms)
        return disk.plan(self.alone, guarantee, self.contended)

    def vms(self, service: Service, vms: int, growth: float) -> int | None:
        """Return the count that limits, 0 if not measured; None for no I/O."""
        found = self.plan(service, vms, growth)
        return None if found is None else found.vms(self.count) or 0


@dataclass(frozen=True, slots=True)
class Conditions:
    """What VMs are sized by, beside the service.

    :ivar headroom: part by which each service may grow, 0.2 for 20 %
    :ivar network_gbps: link of a host in Gbit/s; None if unknown
    :ivar disk: limits of the host's disk; None if not measured
    """

    ratios: VMRatios
    headroom: float = 0.0
    network_gbps: float | None = None
    disk: DiskLimits | None = None

    @property
    def cpu_ratio(self) -> float:
        """The ratio of CPUs; 1 if unknown, or if the VM beat its host."""
        return min(1.0, self.ratios.cpu or 1.0)


@dataclass(frozen=True, slots=True)
class Carried:
    """The VMs that carry one server of a service, or why none do.

    :ivar size: None for a service that stays on its servers
    :ivar vms: VMs that do the work of one server
    :ivar limit: the figure that asks for so many VMs, or for such a large one
    :ivar cpus: CPUs of VMs that the work of one server needs; ``memory_gb`` likewise
    :ivar disk_part: part of the host's disk that each VM takes
    :ivar reason: why the service stays; empty if it does not
    """

    service: Service
    size: Size | None
    vms: int
    limit: str
    cpus: float
    memory_gb: float
    network_gbps: float = 0.0
    disk_part: float = 0.0
    reason: str = ""

    @property
    def all_vms(self) -> int:
        """VMs of all servers."""
        return self.service.servers * self.vms

    def staying(self, reason: str) -> Carried:
        """Return the same without VMs: the service stays on its servers."""
        return replace(self, size=None, vms=0, limit="", reason=reason)

    def words(self, conditions: Conditions) -> str:
        """Return the calculation in a sentence.

        :param conditions: by which the VMs were sized
        """
        of, peak = self.service, f" ({self.service.peak})" if self.service.peak else ""
        percent = "all" if of.cpu_percent is None else f"{of.cpu_percent:g} %"
        one_vm = _one_vm_cpus(of, conditions)
        factors = f"at ratio {conditions.cpu_ratio:.3g}"
        if conditions.headroom:
            factors += f", {100 * conditions.headroom:g} % headroom"
        if not math.isclose(one_vm, self.cpus):
            factors += f", scaling {one_vm / self.cpus:.3g}"
        words = (
            f"{of.name}: peak{peak} {percent} of {of.cpus} CPUs = {of.used_cpus:.3g}; "
            f"{factors} needs {self.cpus:.3g}: "
        )
        if self.size is None:
            return f"{words}stays on its servers: {self.reason}"
        return f"{words}{self.vms} {self.size.flavor} per server; limit: {self.limit}"


def carry(service: Service, sizes: Sequence[Size], conditions: Conditions) -> Carried:
    """Return the VMs that carry one server of a service, or why none do.

    VMs that share CPUs win, then those that take the least of hosts.  Only pinned VMs
    divide a server's work, or carry a latency-sensitive service.

    :param sizes: all flavors that fit the hosts
    """
    need = _Need(service, conditions)
    most = conditions.ratios.most_vcpus
    known = [
        size
        for size in sizes
        if service.class_name in {None, size.class_name}
        and (most is None or size.vcpus <= most)
    ]
    if service.latency_sensitive:
        late = conditions.ratios.late
        if late:
            return need.none(f"latency-sensitive, and {late}")
        known = [size for size in known if size.cells]
    found = []
    for size in known:
        for vms in range(1, _MOST_VMS + 1 if size.cells and service.divisible else 2):
            if all(part <= 1 for part in need.figures(size, vms).values()):
                found.append(need.carried(size, vms, known))
                break
    if not found:
        return need.none(need.misfit(known) if known else _no_flavor(service, most))
    return min(found, key=_least)


def _no_flavor(service: Service, most: int | None) -> str:
    pinned = "pinned " if service.latency_sensitive else ""
    of_class = f" of class {service.class_name}" if service.class_name else ""
    at_most = "" if most is None else f" of at most {most} vCPUs"
    return f"no {pinned}flavor{of_class}{at_most} fits the hosts"


def _least(found: Carried) -> tuple[bool, float, int, float]:
    """Return a sort key: shared CPUs first, then the part of hosts that VMs take."""
    size = found.size
    if size is None:
        return True, math.inf, 0, 0.0
    # With anti-affinity each VM takes a host.
    per_host = size.per_host if found.service.shares_host else 1
    return bool(size.cells), found.vms / per_host, found.vms, size.memory_gb


def _one_vm_cpus(service: Service, conditions: Conditions) -> float:
    """Return the CPUs of one VM that does the work of a server."""
    return service.used_cpus * (1 + conditions.headroom) / conditions.cpu_ratio


class _Need:
    """What the work of one server of a service needs."""

    def __init__(self, service: Service, conditions: Conditions) -> None:
        self.service, self.conditions = service, conditions
        self.growth = 1 + conditions.headroom
        self.one_vm_cpus = _one_vm_cpus(service, conditions)
        self.memory_gb = service.needed_memory_gb * self.growth
        self.network_gbps = (service.network_gbps or 0.0) * self.growth

    def cpus(self, vms: int) -> float:
        """Return the CPUs of all VMs together: the more VMs, the less each CPU does."""
        linearity, servers = self.conditions.ratios.linearity, self.service.servers
        return self.one_vm_cpus * linearity(servers) / linearity(servers * vms)

    def share_gbps(self, size: Size) -> float | None:
        """Return a VM's part of the link, all with shared CPUs; None if unknown."""
        link = self.conditions.network_gbps
        if link is None:
            return None
        own = size.per_host if size.cells else 1
        return link * (self.conditions.ratios.network or 1.0) / own

    def figures(self, size: Size, vms: int) -> dict[str, float]:
        """Return the part of each VM's share that is needed: above 1 is too much."""
        found = {
            "CPU": self.cpus(vms) / vms / size.vcpus,
            "memory": self.memory_gb / vms / size.memory_gb,
        }
        share_gbps = self.share_gbps(size)
        if share_gbps is not None and self.network_gbps:
            found["network"] = self.network_gbps / vms / share_gbps
        if (served := self._served(vms)) is not None:
            found["disk"] = 1 / served if served else math.inf
        return found

    def _served(self, vms: int) -> int | None:
        limits = self.conditions.disk
        return None if limits is None else limits.vms(self.service, vms, self.growth)

    def carried(self, size: Size, vms: int, sizes: Sequence[Size]) -> Carried:
        """Return the VMs, and the figure that asks for so many or such large ones."""
        limiting = self.figures(size, vms)
        part = limiting.get("disk", 0.0)
        if vms > 1:
            alike = (
                s
                for s in sizes
                if (s.class_name, s.vcpus) == (size.class_name, size.vcpus)
            )
            roomiest = max(alike, key=lambda one: one.memory_gb)
            limiting = self.figures(roomiest, vms - 1)
        elif "disk" in limiting:
            # If a host has room for more VMs than its disk serves, the disk is it.
            limiting["disk"] *= size.per_host
        limit = max(limiting, key=lambda name: limiting[name])
        cpus, memory_gb, network_gbps = (
            self.cpus(vms),
            self.memory_gb,
            self.network_gbps,
        )
        return Carried(
            self.service, size, vms, limit, cpus, memory_gb, network_gbps, part
        )

    def none(self, reason: str) -> Carried:
        """Return a service that stays on its servers, with the CPUs for one VM."""
        cpus, memory_gb, network_gbps = self.cpus(1), self.memory_gb, self.network_gbps
        return Carried(
            self.service, None, 0, "", cpus, memory_gb, network_gbps, reason=reason
        )

    def misfit(self, sizes: Sequence[Size]) -> str:
        """Return the figures that the largest VMs cannot serve, in % of their share."""
        size = max(sizes, key=lambda size: (size.vcpus, size.memory_gb))
        vms = _MOST_VMS if size.cells and self.service.divisible else 1
        parts = {name: n for name, n in self.figures(size, vms).items() if n > 1}
        over = [
            f"{name} {100 * part:.0f} %"
            if part < math.inf
            else f"no VM gets its {name} I/O"
            for name, part in parts.items()
        ]
        most = "one VM" if vms == 1 else f"{vms} VMs"
        return f"needs more than {most} of {size.flavor}: {', '.join(over)}"

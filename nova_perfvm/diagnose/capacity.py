# SPDX-License-Identifier: Apache-2.0
"""How many VMs of a pinned class a cloud holds, has, and could still take.

A slot is room for one VM of the class's smallest flavor.  It is *used* by such a
VM, *free* if Placement and the rules would give it to one now, and otherwise
*unfit*: taken by other VMs, out of memory or disk, or on a host out of service.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from nova_perfvm.diagnose.explain.verdicts import (
    SchedulerSettings,
    accepts,
    judge,
    settings_for,
)
from nova_perfvm.facts import HostFacts, NUMACell
from nova_perfvm.facts.demand import Request, request_for, server_facts
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.snapshot import Flavor, Snapshot
from nova_perfvm.generate.flavors import properties_of
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.rules import resolve_class
from nova_perfvm.rules.host.room import cell_memory, cells_with_room
from nova_perfvm.rules.slots import (
    cell_cpus,
    free_cpus,
    host_slots,
    memory_fits,
    smallest_size,
)


@dataclass(frozen=True)
class Slots:
    """Slots of one class on one host, or on several together.

    :ivar name: of the host or the aggregate
    :ivar free_cpus: of one host, for each free slot the CPUs that a VM could own
    """

    name: str
    class_name: str
    total: int
    used: int
    free: int
    free_cpus: tuple[frozenset[int], ...] = ()

    @property
    def unfit(self) -> int:
        """Slots that nobody of the class has, nor can get now."""
        return max(0, self.total - self.used - self.free)


def host_capacity(
    policy: Policy, snapshot: Snapshot, settings: SchedulerSettings | None = None
) -> tuple[Slots, ...]:
    """Return the slots of each pinned class on each host.

    Hosts on which a class never has a slot have a total of 0.
    """
    settings = replace(settings or settings_for(policy), assumed=False)
    requests = [(c, _request(policy, c)) for c in policy.pinned_classes]
    return tuple(
        _slots(policy, view, vm_class, request, settings)
        for view in views_of(snapshot)
        for vm_class, request in requests
    )


def aggregate_capacity(snapshot: Snapshot, hosts: Iterable[Slots]) -> tuple[Slots, ...]:
    """Add the slots of hosts up by aggregate; a host may be in several."""
    hosts = tuple(hosts)
    names = _names(snapshot)
    return tuple(
        found
        for aggregate in sorted(snapshot.aggregates, key=lambda a: a.name)
        for found in _sums(
            aggregate.name, [h for h in hosts if names[h.name] in aggregate.hosts]
        )
    )


def cloud_capacity(hosts: Iterable[Slots]) -> tuple[Slots, ...]:
    """Add the slots of all hosts up."""
    return tuple(_sums("all hosts", list(hosts)))


def _names(snapshot: Snapshot) -> dict[str, str]:
    return {view.name: view.host.host for view in views_of(snapshot)}


def _sums(name: str, hosts: list[Slots]) -> Iterator[Slots]:
    """Add slots up by class."""
    for class_name in dict.fromkeys(host.class_name for host in hosts):
        mine = [host for host in hosts if host.class_name == class_name]
        yield Slots(
            name,
            class_name,
            sum(host.total for host in mine),
            sum(host.used for host in mine),
            sum(host.free for host in mine),
        )


def _request(policy: Policy, vm_class: VMClass) -> Request:
    """Return a request of the class's smallest flavor, as the policy makes it."""
    size = smallest_size(vm_class)
    flavor = Flavor(
        id=vm_class.name,
        name=vm_class.name,
        vcpus=vm_class.vcpus or 0,
        memory_mb=size.memory_gb * 1024 if size else 0,
        disk_gb=size.root_gb if size else 0,
        extra_specs=properties_of(policy, vm_class).flavor,
    )
    return request_for(flavor, volume_backed=vm_class.disk.source == "volume")


def _slots(
    policy: Policy,
    view: HostView,
    vm_class: VMClass,
    request: Request,
    settings: SchedulerSettings,
) -> Slots:
    used = sum(
        resolve_class(policy, server_facts(server)) is vm_class
        for server in view.servers
    )
    filled = _fitting(policy, vm_class, view, request, settings)
    pinned = map(_pinned, (view, *filled))
    free_cpus = tuple(now - before for before, now in itertools.pairwise(pinned))
    return Slots(
        name=view.name,
        class_name=vm_class.name,
        total=max(used, _total(policy, vm_class, view, request)),
        used=used,
        free=len(free_cpus),
        free_cpus=free_cpus,
    )


def _pinned(view: HostView) -> frozenset[int]:
    return frozenset().union(*(cell.pinned_cpus for cell in view.facts.cells))


def _total(policy: Policy, vm_class: VMClass, view: HostView, request: Request) -> int:
    """Return how many VMs an empty host in service would take."""
    slots = host_slots(vm_class, view.facts.cells)
    if policy.placement == "units":
        return min(slots, sum(child.gives_all_units for child in view.tree))
    if not any("PCPU" in provider.inventories for provider in view.tree):
        return 0
    return slots if policy.placement == "none" else _placed(slots, view, request)


def _placed(slots: int, view: HostView, request: Request) -> int:
    """Return no more slots than Placement has of what a VM takes."""
    for name, amount in request.demand.groups[0].resources.items():
        slots = min(
            slots,
            max(
                (
                    provider.inventories[name].capacity // amount
                    for provider in view.providers
                    if name in provider.inventories
                ),
                default=0,
            ),
        )
    return slots


def _fitting(
    policy: Policy,
    vm_class: VMClass,
    view: HostView,
    request: Request,
    settings: SchedulerSettings,
) -> Iterator[HostView]:
    """Fill a host with one VM after the other until it takes no more."""
    number = 0
    while accepts(policy, request, view, settings):
        allocation = judge(policy, request, view, settings).allocation or {}
        facts = _with_one(vm_class, view.facts, request)
        if facts is None:
            return
        view = replace(view, facts=facts).allocated(f"next-{number}", allocation)
        number += 1
        yield view


def _with_one(
    vm_class: VMClass, facts: HostFacts, request: Request
) -> HostFacts | None:
    """Return a host with one VM more on the first cells that the rules give it."""
    wanted = vm_class.cells_per_vm
    counts = [cell_cpus(vm_class, cell) for cell in facts.cells]
    fitting = cells_with_room(vm_class, request.facts, facts, counts)
    found = list(itertools.islice(fitting, wanted))
    if len(found) < wanted:
        return None
    memory = cell_memory(request.facts)
    return facts._replace(
        cells=[
            _taken(vm_class, cell, *memory) if cell in found else cell
            for cell in facts.cells
        ],
        vcpus_used=facts.vcpus_used + request.facts.vcpus,
        num_instances=facts.num_instances + 1,
    )


def _taken(
    vm_class: VMClass, cell: NUMACell, memory_mb: int, page_size_kb: int | None
) -> NUMACell:
    cpus = sorted(free_cpus(vm_class, cell))
    pools = list(cell.mempages)
    for index, pool in enumerate(pools):
        with_one_pool = cell._replace(mempages=[pool])
        # Nova counts no pages for a request that names none.
        if page_size_kb is not None and memory_fits(
            with_one_pool, memory_mb, page_size_kb, now=True
        ):
            pages = memory_mb * 1024 // pool.size_kb
            pools[index] = pool._replace(used=pool.used + pages)
            break
    return cell._replace(
        mempages=pools,
        pinned_cpus=cell.pinned_cpus | set(cpus[: vm_class.cell_pcpus]),
        memory_usage_mb=cell.memory_usage_mb + memory_mb,
    )

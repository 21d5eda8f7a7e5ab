# SPDX-License-Identifier: Apache-2.0
"""Count the VMs of a pinned class that a cloud has, can hold, and can still take.

A slot is room for one VM of the class's smallest flavor.  A slot is *used* by a VM of
the class, *free* if Placement and the rules would give it to such a VM now, and
otherwise *unfit*: taken by other VMs, out of memory or disk, or on a host out of
service.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from nova_perfvm.diagnose.arrivals import arrived
from nova_perfvm.diagnose.explain.report import huge_pages_unknown
from nova_perfvm.diagnose.verdicts import SchedulerSettings, judge, settings_for
from nova_perfvm.diagnose.words import in_words
from nova_perfvm.facts.demand import Request, in_cloud
from nova_perfvm.facts.flavor_facts import server_facts
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import Flavor, Snapshot
from nova_perfvm.generate.flavors import properties_of
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.printable import some_of
from nova_perfvm.rules import check_request, resolve_class
from nova_perfvm.rules.slots import host_slots, smallest_size


@dataclass(frozen=True)
class Slots:
    """The slots of one class on one host, or on several hosts together.

    :ivar name: of the host or the aggregate
    :ivar host: name of the compute service; empty for several hosts
    :ivar free_cpus: for one host: the CPUs that a VM would be pinned to, per free slot
    :ivar why: why slots are unfit, in words; empty if none is unfit
    """

    name: str
    class_name: str
    total: int
    used: int
    free: int
    host: str = ""
    free_cpus: tuple[frozenset[int], ...] = ()
    why: str = ""

    @property
    def unfit(self) -> int:
        """Slots that are neither used by a VM of the class nor free for one now."""
        return self.total - self.used - self.free


def host_capacity(
    policy: Policy,
    snapshot: Snapshot,
    settings: SchedulerSettings | None = None,
) -> tuple[Slots, ...]:
    """Return the slots of each pinned class on each host.

    A host that never has slots of a class has a total of 0.
    """
    settings = settings or settings_for(policy)
    requests = [
        (c, request_of_class(policy, c, snapshot)) for c in policy.pinned_classes
    ]
    wrong = {c.name for c, r in requests if check_request(policy, r.facts)}
    return tuple(
        _slots(policy, view, vm_class, request, settings, wrong)
        for view in views_of(snapshot)
        for vm_class, request in requests
    )


def aggregate_capacity(snapshot: Snapshot, hosts: Iterable[Slots]) -> tuple[Slots, ...]:
    """Add up the slots of hosts by aggregate; a host may be in several aggregates."""
    hosts = tuple(hosts)
    return tuple(
        found
        for aggregate in sorted(snapshot.aggregates, key=lambda a: a.name)
        for found in _sums(
            aggregate.name, [slots for slots in hosts if slots.host in aggregate.hosts]
        )
    )


def cloud_capacity(hosts: Iterable[Slots]) -> tuple[Slots, ...]:
    """Add up the slots of all hosts."""
    return tuple(_sums("all hosts", list(hosts)))


def _sums(name: str, hosts: list[Slots]) -> Iterator[Slots]:
    """Add up the slots of several hosts by class."""
    for class_name in dict.fromkeys(host.class_name for host in hosts):
        mine = [host for host in hosts if host.class_name == class_name]
        yield Slots(
            name,
            class_name,
            sum(host.total for host in mine),
            sum(host.used for host in mine),
            sum(host.free for host in mine),
            why=some_of([f"{host.name}: {host.why}" for host in mine if host.why], 3),
        )


def notes(policy: Policy, snapshot: Snapshot) -> tuple[str, ...]:
    """Return a note if hosts do not show the huge pages that a class asks for."""
    requests = (request_of_class(policy, c, snapshot) for c in policy.pinned_classes)
    found = (huge_pages_unknown(request, snapshot.hosts) for request in requests)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(found)))


def request_of_class(
    policy: Policy,
    vm_class: VMClass,
    snapshot: Snapshot,
) -> Request:
    """Return the request of the smallest flavor that the policy makes for a class."""
    size = smallest_size(vm_class)
    memory_mb = size.memory_gb * 1024 if size else 0
    flavor = Flavor(
        id=vm_class.name,
        name=vm_class.name,
        vcpus=vm_class.vcpus or 0,
        memory_mb=memory_mb,
        disk_gb=size.root_gb if size else 0,
        extra_specs=properties_of(policy, vm_class, memory_mb=memory_mb).flavor,
    )
    request = request_for(flavor, volume_backed=vm_class.disk.source == "volume")
    return in_cloud(request, snapshot)


def _slots(
    policy: Policy,
    view: HostView,
    vm_class: VMClass,
    request: Request,
    settings: SchedulerSettings,
    wrong: Collection[str],
) -> Slots:
    used = sum(
        resolve_class(policy, server_facts(server)) is vm_class
        for server in view.servers
    )
    each = () if vm_class.name in wrong else filled(policy, request, view, settings)
    views = (view, *each)
    pinned = map(_pinned, views)
    free_cpus = tuple(now - before for before, now in itertools.pairwise(pinned))
    found = Slots(
        name=view.name,
        class_name=vm_class.name,
        # A host may have more than an empty one: the total has a CPU for emulator
        # threads on each node of a VM, and VMs of a former size may be smaller.
        total=max(used + len(free_cpus), _total(policy, vm_class, view, request)),
        used=used,
        free=len(free_cpus),
        host=view.host,
        free_cpus=free_cpus,
    )
    if not found.unfit:
        return found
    reasons = judge(policy, request, views[-1], settings).reasons
    why = in_words(reasons) or "no NUMA node has room"
    unknown = huge_pages_unknown(request, (view.compute,))
    return replace(found, why="; ".join((why, *unknown)))


def _pinned(view: HostView) -> frozenset[int]:
    return frozenset().union(*(cell.pinned_cpus for cell in view.facts.cells))


def _total(policy: Policy, vm_class: VMClass, view: HostView, request: Request) -> int:
    """Return the number of VMs that the host would take if empty and in service."""
    slots = host_slots(vm_class, view.facts.cells)
    return host_scheme_of(policy).capacity(view, request.demand, slots)


def filled(
    policy: Policy,
    request: Request,
    view: HostView,
    settings: SchedulerSettings,
) -> Iterator[HostView]:
    """Yield the host with one more VM each time, until the host takes no further VM.

    :param request: a request that matches its class, see :func:`.rules.check_request`
    """
    for number in itertools.count():
        after = arrived(policy, request, view, settings, f"next-{number}")
        if after is None:
            return
        view = after.view
        yield view

# SPDX-License-Identifier: Apache-2.0
"""From services to hosts, under each way to divide hosts between VMs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.hosts import HostConfigError
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.printable import number_of, some_of
from nova_perfvm.sizing.bins import Bin, Packing, VMKind, pack
from nova_perfvm.sizing.carriers import Carried, Conditions, Size, carry, sizes_of
from nova_perfvm.sizing.hosts import Cell, HostModel, room
from nova_perfvm.sizing.services import Service

# Ratios of CPUs that show how much the result depends on the ratio.
SENSITIVITY: Final = (0.7, 0.8, 0.9)
ArmName = Literal["one VM per server", "slots", "cells", "units"]
# Under cells a class is divided into VMs of these parts, if the policy has no sizes.
_PARTS: Final = (1, 2, 4)


@dataclass(frozen=True, slots=True)
class Wishes:
    """Spare hosts, and the time for the search.

    :ivar survive: hosts of each pool that may fail at once
    :ivar limit_s: seconds of search for each pool
    """

    survive: int = 0
    limit_s: float = 5.0


class Arm(NamedTuple):
    """The hosts under one way to divide them.

    :ivar hosts: hosts for the VMs
    :ivar spare: hosts that may fail
    :ivar staying: today's servers that stay, as no VM carries their service
    :ivar bound: no packing of these VMs needs fewer hosts, spare and staying included
    :ivar solved: False if a pool has more hosts than its bound, without HiGHS
    :ivar watts: power of hosts and of servers that stay; None if one is unknown
    """

    name: ArmName
    hosts: int
    spare: int
    staying: int
    bound: int
    solved: bool
    watts: float | None = None
    cost: float | None = None

    @property
    def total(self) -> int:
        """Hosts and servers together."""
        return self.hosts + self.spare + self.staying


class _Pool(NamedTuple):
    """Hosts that serve the same sizes.

    :ivar most: see :class:`.bins.Bin`
    """

    sizes: tuple[Size, ...]
    room: tuple[Cell, ...]
    most: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class ServersPlan:
    """The plan for all services.

    :ivar carried: the VMs of each service under `own`
    :ivar arms: with the ratio of CPUs as measured, or documented
    :ivar sensitivity: {ratio of CPUs: {arm: total}}
    :ivar own: the arm of the policy's placement, else the first scheme's
    """

    conditions: Conditions
    today: int
    carried: tuple[Carried, ...]
    arms: tuple[Arm, ...]
    sensitivity: dict[float, dict[ArmName, int]]
    own: Arm
    remarks: tuple[str, ...]

    def fewer(self, arm: Arm) -> float:
        """Return the part of today's servers that is saved; below 0 if more are needed.

        :returns: percent
        """
        return 100 * (self.today - arm.total) / self.today

    @property
    def sentence(self) -> str:
        """The result for a report."""
        arm, fewer = self.own, self.fewer(self.own)
        saved = f"{fewer:.0f} % fewer" if fewer > 0 else "none is saved"
        words = (
            f"from {number_of(self.today, 'server')} to "
            f"{number_of(arm.total, 'host')}: {saved}; lower bound {arm.bound}"
        )
        for amount, unit, was in (
            (arm.watts, "W", self._today_sum("watts")),
            (arm.cost, "in cost", self._today_sum("cost")),
        ):
            if amount is not None and was is not None:
                words += f"; from {was:,.0f} to {amount:,.0f} {unit}"
        return words

    def _today_sum(self, key: str) -> float | None:
        return sum_of([one.service for one in self.carried], key)


def plan(
    policy: Policy,
    model: HostModel,
    services: Sequence[Service],
    conditions: Conditions,
    wishes: Wishes,
) -> ServersPlan:
    """Return the VMs of services, and the hosts that these need.

    :param model: the hosts to plan with
    :raises PerfVMError: when the hosts cannot be divided in any way, or a service names
        a class that the policy has not
    """
    for service in services:
        if service.class_name is not None:
            policy.get_class(service.class_name)
    planner = _Planner(policy, model, services, wishes)
    arms = tuple(planner.arms(conditions))
    if not arms[1:]:
        raise PerfVMError("\n".join(planner.remarks))
    sensitivity = {}
    for ratio in SENSITIVITY:
        other = replace(conditions, ratios=conditions.ratios.with_cpu(ratio))
        sensitivity[ratio] = {arm.name: arm.total for arm in planner.arms(other)}
    # The arm of the policy's scheme, or of the first scheme: arms[0] saves no host.
    own = next((arm for arm in arms if arm.name == policy.placement), arms[1])
    return ServersPlan(
        conditions,
        sum(service.servers for service in services),
        planner.carried(conditions, own.name),
        arms,
        sensitivity,
        own,
        (*planner.remarks, *planner.unfit(policy), *_not_summed(model, services)),
    )


def _not_summed(model: HostModel, services: Iterable[Service]) -> Iterator[str]:
    """Yield a note if hosts have watts or cost and not all services, or the reverse.

    A sum needs the figure of every machine.
    """
    for key in ("watts", "cost"):
        option = f"--host-{key}"
        known = getattr(model, key) is not None
        lacking = [of.name for of in services if getattr(of, key) is None]
        if known and lacking:
            yield f"{option} not used without {key} of: {some_of(lacking, 3)}"
        elif not (known or lacking):
            yield f"{key} not used without {option}"


def sum_of(services: Sequence[Service], key: str) -> float | None:
    """Return the sum of a figure over all servers; None unless all are known."""
    values = [(of.servers, getattr(of, key)) for of in services]
    if any(value is None for _, value in values):
        return None
    return math.fsum(servers * value for servers, value in values)


class _Planner:
    """The arms of one policy, and their pools."""

    def __init__(
        self,
        policy: Policy,
        model: HostModel,
        services: Sequence[Service],
        wishes: Wishes,
    ) -> None:
        self._model, self._services, self._wishes = model, services, wishes
        self.remarks: list[str] = []
        # Arms, their sensitivity and services that stay pack the same VMs.
        self._packings: dict[tuple[tuple[VMKind, ...], Bin], Packing] = {}
        self._pools: dict[ArmName, tuple[_Pool, ...]] = {}
        for name, pools in (
            ("slots", self._of_slots),
            ("cells", self._of_cells),
            ("units", self._of_units),
        ):
            try:
                self._pools[name] = tuple(pools(policy))  # type: ignore[index]
            except HostConfigError as exc:
                self.remarks.append(f"{name}: not planned: {exc}")

    def _of_slots(self, policy: Policy) -> Iterator[_Pool]:
        for vm_class in policy.pinned_classes:
            cells = room(policy, self._model, "dedicated", (vm_class,))
            sizes = tuple(sizes_of(vm_class, cells))
            yield _Pool(sizes, cells, _most_of([vm_class]))
        yield self._shared(policy, room(policy, self._model, "shared", ()))

    def _of_cells(self, policy: Policy) -> Iterator[_Pool]:
        pinned = policy.pinned_classes
        cells = room(policy, self._model, "dedicated", pinned)
        own = scheme_of(policy).mixes or len(pinned) > 1
        parts = (1,) if own else _PARTS
        sizes = tuple(
            size for one in pinned for size in sizes_of(one, cells, parts, mixed=True)
        )
        if len(parts) > 1 and sizes:
            vcpus = sorted({size.vcpus for size in sizes})
            self.remarks.append(
                f"cells: assumes classes of {', '.join(map(str, vcpus))} vCPUs"
            )
        # The policy's max_per_host holds for no assumed class.
        yield _Pool(sizes, cells, _most_of(pinned) if own else ())
        yield self._shared(policy, room(policy, self._model, "shared", ()))

    def _of_units(self, policy: Policy) -> Iterator[_Pool]:
        if len(policy.pinned_classes) != 1:
            raise HostConfigError("elastic hosts serve exactly one pinned class")
        (vm_class,) = policy.pinned_classes
        cells = room(policy, self._model, "elastic", (vm_class,))
        sizes = tuple(sizes_of(vm_class, cells))
        yield _Pool(sizes, cells, _most_of([vm_class]))
        yield self._shared(policy, cells)

    @staticmethod
    def _shared(policy: Policy, cells: tuple[Cell, ...]) -> _Pool:
        shared = (c for c in policy.classes if not c.pinned)
        return _Pool(tuple(s for c in shared for s in sizes_of(c, cells)), cells)

    def unfit(self, policy: Policy) -> Iterator[str]:
        """Yield why no service gets VMs of a class: no flavor fits an empty host."""
        pools = itertools.chain.from_iterable(self._pools.values())
        fitting = {size.class_name for pool in pools for size in pool.sizes}
        for one in policy.classes:
            if one.flavors and one.name not in fitting:
                least = min(one.flavors.sizes, key=lambda size: size.memory_gb)
                yield (
                    f"no flavor of {one.name} fits a host of {self._model.shape} CPUs "
                    f"and {self._model.memory_gb} GiB: the smallest is "
                    f"{one.flavors.name_of(one.name, least)}"
                )

    def carried(self, conditions: Conditions, arm: ArmName) -> tuple[Carried, ...]:
        """Return each service's VMs; none where they take more hosts than servers."""
        pools = self._pools[arm]
        sizes = [size for pool in pools for size in pool.sizes]
        found = [carry(service, sizes, conditions) for service in self._services]

        def hosts(*carried: Carried) -> int:
            return sum(p.hosts for p in self._packed(pools, carried, conditions))

        # When a service stays, the hosts that its VMs shared count for the others.
        while (number := _most_wasteful(found, hosts)) is not None:
            one = found[number]
            found[number] = one.staying(
                f"its {one.all_vms} VMs would take {hosts(one)} hosts, and it has "
                f"{number_of(one.service.servers, 'server')}"
            )
        return tuple(found)

    def _packed(
        self,
        pools: Iterable[_Pool],
        carried: Sequence[Carried],
        conditions: Conditions,
    ) -> list[Packing]:
        """Return how many hosts of each pool the VMs of services take."""
        link, ratio = conditions.network_gbps, conditions.ratios.network or 1.0
        found = []
        for pool in pools:
            kinds = tuple(_kind(one) for one in carried if one.size in pool.sizes)
            host = Bin(pool.room, None if link is None else link * ratio, pool.most)
            key = kinds, host
            if key not in self._packings:
                self._packings[key] = pack(kinds, host, self._wishes.limit_s)
            found.append(self._packings[key])
        return found

    def arms(self, conditions: Conditions) -> Iterator[Arm]:
        """Yield each arm, first that of a VM per server, which saves no host."""
        for number, (name, pools) in enumerate(self._pools.items()):
            carried = self.carried(conditions, name)
            if not number:
                yield self._one_each(carried)
            yield self._arm(name, pools, carried, conditions)

    def _one_each(self, carried: Sequence[Carried]) -> Arm:
        hosts = sum(
            one.service.servers * math.ceil(one.vms / max(1, one.size.per_host))
            for one in carried
            if one.size
        )
        spare = self._wishes.survive if hosts else 0
        return self._made(
            "one VM per server", carried, hosts, spare, hosts, solved=True
        )

    def _arm(
        self,
        name: ArmName,
        pools: Sequence[_Pool],
        carried: Sequence[Carried],
        conditions: Conditions,
    ) -> Arm:
        found = self._packed(pools, carried, conditions)
        hosts, bound = sum(p.hosts for p in found), sum(p.bound for p in found)
        used = sum(bool(p.hosts) for p in found)
        # An elastic host may take the place of any other.
        spare = self._wishes.survive * (min(1, used) if name == "units" else used)
        solved = all(p.solved for p in found)
        return self._made(name, carried, hosts, spare, bound, solved=solved)

    def _made(
        self,
        name: ArmName,
        carried: Sequence[Carried],
        hosts: int,
        spare: int,
        bound: int,
        *,
        solved: bool,
    ) -> Arm:
        stay = [one.service for one in carried if one.size is None]
        staying = sum(service.servers for service in stay)
        watts, cost = (
            None if each is None or kept is None else (hosts + spare) * each + kept
            for each, kept in (
                (self._model.watts, sum_of(stay, "watts")),
                (self._model.cost, sum_of(stay, "cost")),
            )
        )
        return Arm(
            name, hosts, spare, staying, bound + spare + staying, solved, watts, cost
        )


def _most_wasteful(carried: Sequence[Carried], hosts: Callable[..., int]) -> int | None:
    """Return the index of the service whose VMs waste most hosts; None without waste.

    VMs that keep apart leave the rest of their hosts to other services.  So VMs that
    alone would take more hosts than the service has servers may waste none.

    :param hosts: returns the number of hosts that VMs of services take together
    """
    moved = [one for one in carried if one.size]
    wasted = {
        number: hosts(one) - one.service.servers
        for number, one in enumerate(carried)
        if one.size and hosts(one) > one.service.servers
    }
    together = hosts(*moved)
    if together > sum(one.service.servers for one in moved) and wasted:
        return max(wasted, key=wasted.__getitem__)
    for number in sorted(wasted, key=wasted.__getitem__, reverse=True):
        one = carried[number]
        others = hosts(*(other for other in moved if other is not one))
        if together - others > one.service.servers:
            return number
    return None


def _most_of(classes: Iterable[VMClass]) -> tuple[tuple[str, int], ...]:
    """Return the classes with ``max_per_host``, and its value."""
    return tuple(
        (c.name, c.max_per_host) for c in classes if c.max_per_host is not None
    )


def _kind(one: Carried) -> VMKind:
    size = one.size
    if size is None:
        raise ValueError(one.service.name)
    shared_cpus = one.cpus / one.vms
    return VMKind(
        one.service.name,
        one.all_vms,
        size.cell_cpus * size.cells if size.cells else shared_cpus,
        size.memory_gb,
        size.cells,
        one.network_gbps / one.vms,
        one.disk_part,
        alone=not one.service.shares_host,
        class_name=size.class_name,
    )


def notes(found: ServersPlan) -> Iterator[str]:
    """Yield what the figures rest on, and what they leave out."""
    conditions, ratios = found.conditions, found.conditions.ratios
    yield f"ratios: {ratios.source}; measured: {'yes' if ratios.measured else 'no'}"
    services = [one.service for one in found.carried]
    for key, what, missing in (
        ("network_gbps", "network", conditions.network_gbps is None),
        ("read_iops", "disk", conditions.disk is None),
        ("write_iops", "disk", conditions.disk is None),
    ):
        names = [of.name for of in services if getattr(of, key) is not None]
        if names and missing:
            option = {"network": "--link-gbps", "disk": "--alone"}[what]
            yield f"{key} not judged without {option}: {some_of(names, 3)}"
    for key in ("cpu_percent", "used_memory_gb"):
        if names := [of.name for of in services if getattr(of, key) is None]:
            yield f"{key} unknown, all of it assumed: {some_of(names, 3)}"
    shared = [
        one.service.name for one in found.carried if one.size and not one.size.cells
    ]
    if shared:
        yield (
            "assumed of VMs that share CPUs: all peaks at once, and the ratio of "
            f"pinned VMs: {some_of(shared, 3)}"
        )
    if not all(arm.solved for arm in found.arms):
        yield (
            "HiGHS is not installed (the extra [plan]): a heuristic filled the hosts, "
            "and the bound is the sum of what VMs take"
        )
    yield from found.remarks

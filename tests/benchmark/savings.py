# SPDX-License-Identifier: Apache-2.0
"""How many hosts the same VMs need, by weigher, and what is left free.

The VMs are those of :mod:`tests.benchmark.arrivals`.  Real are Nova's HostStates,
weighers and fit to NUMA nodes, PerfVMFilter, PerfVMWeigher, and plans of migrations by
the solver; no service runs, and each VM is built, or moved, by the time the next one
comes.  Hosts have 2 x 20 CPUs and 500 GB, and serve either class: PerfVMFilter keeps
the classes apart with all weighers.  No figure depends on the machine unless the solver
reaches its time limit.

    python -m tests.benchmark.savings [--seeds N] [--jobs N]
"""

import argparse
import dataclasses
import functools
import heapq
import itertools
import logging
import math
import statistics
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor

from nova import conf as nova_conf
from oslo_config import fixture as config_fixture

from nova_perfvm import constants as const
from nova_perfvm.changes.migrations import goals
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.policy import loader
from tests.benchmark import arrivals, slots_left
from tests.benchmark.command import positive
from tests.unit.facts.snapshot import clouds

HOST_VCPUS = 40 * slots_left.CPU_RATIO
# A plan every so many hours, of so many migrations at most.
PLAN_HOURS, BUDGET = 6, 20
# Hosts of the comparison, and the most that are tried, as multiples of the fewest that
# any placement needs.
EQUAL, MOST = 1.1, 3


@dataclasses.dataclass(frozen=True)
class Arm:
    """A way to place VMs.

    :ivar weighers: [filter_scheduler]weight_classes
    :ivar options: options that differ from their defaults
    :ivar plans: whether servers are migrated
    """

    weighers: tuple = (slots_left.WEIGHERS,)
    options: Mapping = dataclasses.field(default_factory=dict)
    plans: bool = False


_POLICY = loader.parse('schema_version: "1.0"\nplacement: units\n')
_OURS = (slots_left.WEIGHERS, slots_left.OURS)
ARMS = {
    "Nova's weighers (spread)": Arm(),
    "ram_weight_multiplier = -1": Arm(options={"ram_weight_multiplier": -1.0}),
    "... and cpu, disk = -1": Arm(
        options={f"{of}_weight_multiplier": -1.0 for of in ("cpu", "ram", "disk")}
    ),
    "PerfVMWeigher": Arm(_OURS),
    "... and plan defragment": Arm(_OURS, plans=True),
}


@dataclasses.dataclass
class Outcome:
    """What became of the VMs on so many hosts.

    :ivar refused: VMs refused, by class
    :ivar free: NUMA nodes that a VM of 20 vCPUs can have, at each full hour
    :ivar migrations: how many were made
    """

    refused: dict = dataclasses.field(default_factory=lambda: {"hp": 0, "general": 0})
    free: list = dataclasses.field(default_factory=list)
    migrations: int = 0


class Run:
    """The VMs of a demand pass through so many hosts.

    :ivar running: (VM, its request, its HostState) by number
    """

    def __init__(self, vms, hosts, seed, *, plans=False):
        self._vms = vms
        self._cloud = slots_left.Cloud(slots_left.Workload(hosts=hosts, seed=seed))
        self._plans = plans
        self.outcome = Outcome()
        self.running = {}
        self._leaving = []

    def until(self, hours, *, patient=True):
        """Let the time pass; end at the first refusal unless patient."""
        ticks = ((float(hour), None) for hour in range(1, hours + 1))
        coming = ((vm.start, number) for number, vm in enumerate(self._vms))
        for now, number in heapq.merge(coming, ticks, key=lambda event: event[0]):
            while self._leaving and self._leaving[0][0] <= now:
                self._leave(heapq.heappop(self._leaving)[1])
            if number is not None:
                self._arrive(number)
            else:
                self._tick(round(now))
            if not patient and any(self.outcome.refused.values()):
                break
        return self.outcome

    def _arrive(self, number):
        vm = self._vms[number]
        spec = _request(vm)
        host = self._cloud.place(vm.kind, spec)
        if host is None:
            self.outcome.refused[vm.kind] += 1
        else:
            self.running[number] = vm, spec, host
            heapq.heappush(self._leaving, (vm.end, number))

    def _leave(self, number):
        vm, spec, host = self.running.pop(number)
        self._cloud.remove(vm.kind, spec, host)

    def _tick(self, hour):
        if self._plans and hour % PLAN_HOURS == 0:
            names = sorted(host.host for host in self._cloud.hosts)
            self._carry_out(plan(names, self.running))
        self.outcome.free.append(self._cloud.free_slots)

    def _carry_out(self, moves):
        hosts = {host.host: host for host in self._cloud.hosts}
        for move in moves:
            number = int(move.name)
            vm, spec, source = self.running[number]
            self._cloud.remove(vm.kind, spec, source)
            # Nova chooses the CPUs anew.
            spec, target = _request(vm), hosts[move.target]
            self._cloud.put(vm.kind, spec, target)
            self.running[number] = vm, spec, target
        self.outcome.migrations += len(moves)


def plan(hosts, running):
    """Return the moves of ``plan defragment`` on these hosts.

    The snapshot shows elastic hosts, on which Placement keeps the classes apart as
    PerfVMFilter does here.

    :param hosts: their names
    """
    seen = _Seen(_POLICY)
    for host in hosts:
        seen.add_elastic(host)
    for number, (vm, spec, host) in running.items():
        seen.add_vm(str(number), vm, spec, host.host)
    # A machine in use does not change the plan.
    options = PlanOptions(max_moves=BUDGET, time_limit_s=120)
    planning = Planning(_POLICY, seen.snapshot(), settings_for(_POLICY), options)
    return goals.defragment(planning, _POLICY.pinned_classes[0]).moves


class _Seen(clouds.Cloud):
    """The cloud as snapshots show it."""

    def __init__(self, policy):
        super().__init__(policy)
        like = self.flavors[clouds.GENERAL]
        for vcpus, memory_gb in arrivals.SIZES:
            name = f"g.{vcpus}c.{memory_gb}g"
            self.flavors[name] = dataclasses.replace(
                like,
                id=name,
                name=name,
                vcpus=vcpus,
                memory_mb=int(memory_gb * 1024),
                disk_gb=0,
            )

    def add_vm(self, name, vm, spec, host):
        """Add a VM with the CPUs that Nova has pinned it to."""
        if vm.kind == "general":
            self.add_general(name, host, "g.{}c.{}g".format(*vm.size))
            self.allocate_units(f"i-{name}", host)
            return
        (cell,) = spec.numa_topology.cells
        self.add_hp(name, host, min(cell.cpu_pinning.values()), cell.id)
        resources = {const.RC_UNIT: const.UNITS_PER_CHILD}
        self.allocate(f"i-{name}", f"{host}_perfvm_{'ab'[cell.id]}", resources)


def _request(vm):
    """Return the request for a VM; general VMs of a size share one."""
    if vm.kind == "hp":
        # Nova writes the CPUs into it.
        return slots_left.make_spec(vm.kind, None)
    return _general_request(*vm.size)


@functools.cache
def _general_request(vcpus, memory_gb):
    return slots_left.make_spec("general", (vcpus, int(memory_gb * 1024), 0))


def bound(vms):
    """Return a number of hosts that no placement of the VMs needs fewer than.

    A host has two VMs of 20 vCPUs, or general VMs as its CPUs and memory permit.
    """
    events = [(vm.start, 1, vm) for vm in vms] + [(vm.end, -1, vm) for vm in vms]
    high = vcpus = memory_gb = most = 0
    # At the same time a VM leaves before another comes.
    for _, sign, vm in sorted(events, key=lambda event: event[:2]):
        if vm.kind == "hp":
            high += sign
        else:
            vcpus += sign * vm.size[0]
            memory_gb += sign * vm.size[1]
        shared = max(vcpus / HOST_VCPUS, memory_gb * 1024 / slots_left.HOST_MEMORY_MB)
        hosts = math.ceil(high / slots_left.SLOTS_PER_HOST) + math.ceil(shared)
        most = max(most, hosts)
    return most


def fewest(least, most, fits):
    """Return a number of hosts that suffices, where one host fewer does not.

    :param least: the first number that is tried
    :param fits: whether so many hosts are enough
    :returns: None when ``most`` are not enough
    """
    step, enough = 1, least
    while not fits(enough):
        if enough == most:
            return None
        least, enough, step = enough + 1, min(most, enough + step), 2 * step
    while least < enough:
        middle = (least + enough) // 2
        if fits(middle):
            enough = middle
        else:
            least = middle + 1
    return enough


@dataclasses.dataclass(frozen=True)
class Result:
    """What an arm has done with the VMs of one seed.

    :ivar bound: no placement needs fewer hosts
    :ivar needed: hosts without a refusal; None if MOST times the bound are too few
    :ivar asked: VMs of 20 vCPUs
    :ivar equal: the outcome on as many hosts as all arms get
    """

    bound: int
    needed: int
    hosts: int
    asked: int
    equal: Outcome


def measure(name, demand):
    """Return the Result of an arm."""
    # The process runs nothing else, so its options may change.
    nova_conf.CONF([], project="nova", default_config_files=[])
    logging.disable(logging.CRITICAL)
    arm, vms = ARMS[name], arrivals.arrivals(demand)
    least = bound(vms)

    def run(hosts, *, patient=False):
        passing = Run(vms, hosts, demand.seed, plans=arm.plans)
        return passing.until(demand.hours, patient=patient)

    with config_fixture.Config(nova_conf.CONF) as config:
        weighers = list(arm.weighers)
        config.config(group="filter_scheduler", weight_classes=weighers, **arm.options)
        needed = fewest(
            least, MOST * least, lambda hosts: not any(run(hosts).refused.values())
        )
        hosts = math.ceil(EQUAL * least)
        outcome = run(hosts, patient=True)
    asked = sum(vm.kind == "hp" for vm in vms)
    return Result(least, needed, hosts, asked, outcome)


def heading(options, results):
    """Return the lines above those of the arms."""
    bounds = " ".join(str(result.bound) for result in results)
    hosts = " ".join(str(result.hosts) for result in results)
    asked = sum(result.asked for result in results)
    return (
        f"{options.hp} VMs of 20 vCPUs and {options.general} general VMs on average, "
        f"{options.hours} hours, seeds 1 to {options.seeds}\n"
        f"no placement needs fewer hosts than {bounds}\n"
        f"nodes free, refusals and migrations: on {hosts} hosts, of {asked} VMs of 20 "
        f"vCPUs\n"
        f"{'':26} {'hosts needed':>19} {'+':>6} {'nodes free':>11} "
        f"{'20 refused':>10} {'others':>8} {'migrations':>10}\n"
    )


def row(name, results):
    """Return the line of an arm: sums and means of all seeds."""
    equal = [result.equal for result in results]
    needed = " ".join(
        str(result.needed or f">{MOST * result.bound}") for result in results
    )
    over = f">{MOST - 1:.0%}"
    if all(result.needed for result in results):
        over = f"{statistics.mean(one.needed / one.bound for one in results) - 1:.0%}"
    free = statistics.mean(itertools.chain(*(one.free for one in equal)))
    refused = {k: sum(one.refused[k] for one in equal) for k in ("hp", "general")}
    moved = statistics.mean(one.migrations for one in equal)
    return (
        f"{name:26} {needed:>19} {over:>6} {free:11.1f} {refused['hp']:10} "
        f"{refused['general']:8} {moved:10.0f}\n"
    )


def main(arguments=None):
    """Print the table."""
    demand = arrivals.Demand()
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmark.savings",
        description="Show how many hosts the same VMs need, by weigher.",
    )
    for name, default in (
        ("seeds", 5),
        ("jobs", 2),
        ("hp", demand.hp),
        ("general", demand.general),
        ("hours", demand.hours),
    ):
        parser.add_argument(
            f"--{name}", type=positive, default=default, help="(%(default)s)"
        )
    options = parser.parse_args(arguments)
    demands = [
        arrivals.Demand(options.hp, options.general, options.hours, seed)
        for seed in range(1, options.seeds + 1)
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        found = {
            name: [pool.submit(measure, name, demand) for demand in demands]
            for name in ARMS
        }
        for number, (name, futures) in enumerate(found.items()):
            results = [future.result() for future in futures]
            if not number:
                sys.stdout.write(heading(options, results))
            sys.stdout.write(row(name, results))
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The built-in scenario: what a proof measures, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.measure.bench import run
from nova_perfvm.measure.bench.scenario import Scenario, Target, Tools
from nova_perfvm.measure.bench.tools import cyclictest, fio, iperf3, memory, sysbench
from nova_perfvm.policy import VMClass

GENERATOR: Final = "generator"
# What of a proof goes by while nothing is measured, in seconds: servers boot, tools
# are installed, machines are looked at.
_BESIDE_S: Final = 240
_QUICK_S: Final = 600
# Twenty rounds prove a VM as fast as its host in more than nine of ten cases, and ten
# longer ones do not; five give an interval (doc/source/contributor/statistics.rst).
_ROUNDS: Final = 20
_QUICK_ROUNDS: Final = 5
# Of a run of a tool, the longest with which a proof ends within an hour; fio adds a
# run for each of its jobs.
_RUN_S: Final = 10
_RUN_WITH_DISK_S: Final = 6
# Of a quick measurement: the longest that fits, or the last.
_QUICK_RUNS_S: Final = (8, 6, 5, 4, 3, 2, 1)
# Size of each fio thread's file.
_FILE: Final = "1g"
_QUICK_FILE: Final = "256m"
# What may stand before commands there, by the kind of machine.
_PREFIXES: Final = {"host": (), "guest": (("sudo", "-n"),)}


@dataclass(frozen=True)
class Machines:
    """The machines that take part in a proof.

    :ivar host: the host, whose files are collected and whose baseline is measured
    :ivar nodes: the host's NUMA nodes that have CPUs
    :ivar vms: all VMs of the flavor on the host
    :ivar generator: the machine at the network's other end; None for no network
    :ivar address: IP address of the generator
    """

    host: Target
    nodes: tuple[int, ...]
    vms: tuple[Target, ...]
    generator: Target | None = None
    address: str = ""


def scenario_of(
    flavor: PolicyFlavor,
    vm_class: VMClass,
    machines: Machines,
    *,
    quick: bool = False,
    baseline: bool = True,
    directory: str | None = None,
) -> Scenario:
    """Return the built-in scenario, or a quick one for a measurement.

    All VMs run at once.  The host runs as often at the same time, each time bound to
    as many nodes as a VM has.

    :param baseline: whether to measure the host, too
    :param directory: directory on the disk to measure; None for no disk
    """
    vms = machines.vms
    # Each run is bound to as many NUMA nodes as a VM has.
    cells = vm_class.cells_per_vm
    starts = range(0, len(machines.nodes) - cells + 1, cells)
    bound = [machines.nodes[start : start + cells] for start in starts]
    hosts = tuple(
        replace(
            machines.host,
            name=f"host{number + 1}",
            node=bound[number % len(bound)][0] if bound else None,
            more_nodes=bound[number % len(bound)][1:] if bound else (),
        )
        for number in range(len(vms))
    )
    together = {"hosts": hosts, "vms": vms} if baseline else {"vms": vms}
    servers = (machines.generator,) if machines.generator else ()

    def with_runs_of(seconds: int) -> Scenario:
        return Scenario(
            targets=(*(t for of in together.values() for t in of), *servers),
            groups={name: tuple(t.name for t in of) for name, of in together.items()},
            tools=_tools(
                flavor, machines, seconds, directory, _QUICK_FILE if quick else _FILE
            ),
            repeats=_QUICK_ROUNDS if quick else _ROUNDS,
            warm_up=0 if quick else 1,
        )

    if not quick:
        return with_runs_of(_RUN_WITH_DISK_S if directory else _RUN_S)
    for seconds in _QUICK_RUNS_S:
        found = with_runs_of(seconds)
        if _whole_s(found) <= _QUICK_S:
            break
    return found


def minutes(scenario: Scenario) -> int:
    """Return about how many minutes a whole proof takes."""
    return round(_whole_s(scenario) / 60)


def _whole_s(scenario: Scenario) -> float:
    return _BESIDE_S + run.planned_s(scenario.steps(seed=0))


def differences(
    scenario: Scenario, flavor: PolicyFlavor, vm_class: VMClass, nodes: tuple[int, ...]
) -> Iterator[str]:
    """Yield the differences of a scenario from the built-in one of a flavor.

    More rounds, longer runs and other names are no difference.

    :param nodes: the host's NUMA nodes that have CPUs
    """
    measuring = {who for group in scenario.groups.values() for who in group}
    hosts, vms = (
        tuple(t for t in scenario.targets if t.name in measuring and t.kind == kind)
        for kind in ("host", "guest")
    )
    if not hosts or not vms:
        yield "it measures no host, or no VM"
        return
    network, disk = scenario.tools.iperf3, scenario.tools.fio
    machines = Machines(
        hosts[0],
        nodes,
        vms,
        scenario.target(network.server) if network else None,
        network.address if network else "",
    )
    wanted = scenario_of(
        flavor, vm_class, machines, directory=disk.directory if disk else None
    )
    groups = sorted(sorted(group) for group in scenario.groups.values())
    if groups != sorted(sorted(one.name for one in of) for of in (hosts, vms)):
        yield "groups other than the host's runs and all VMs"
    bound = [_nodes(wanted.target(who)) for who in wanted.groups["hosts"]]
    if sorted(bound) != sorted(map(_nodes, hosts)):
        yield f"host runs on nodes {[*map(_nodes, hosts)]}, not {bound}"
    for one in (*hosts, *vms):
        if one.fio_directory or one.prefix not in {(), *_PREFIXES[one.kind]}:
            yield f"{one.name} has a prefix or a directory of its own"
    if scenario.repeats < wanted.repeats or scenario.warm_up < wanted.warm_up:
        yield (
            f"{scenario.repeats} rounds after {scenario.warm_up} to warm up, not "
            f"{wanted.repeats} after {wanted.warm_up}"
        )
    if scenario.working_set_mb is not None:
        yield f"working_set_mb is {scenario.working_set_mb}"
    yield from _differences(scenario.tools, wanted.tools)


def _nodes(host: Target) -> str:
    return ",".join(map(str, (host.node, *host.more_nodes)))


def _differences(tools: Tools, wanted: Tools) -> Iterator[str]:
    """Yield each difference from the built-in tools; they may run longer."""
    for key in sorted(tools.used().keys() | wanted.used().keys()):
        found, needed = getattr(tools, key), getattr(wanted, key)
        if found is None or needed is None:
            yield f"{key} is {'added' if found else 'left out'}"
        elif found.seconds < needed.seconds:
            yield f"{key} takes {found.seconds} s, not {needed.seconds}"
        elif replace(found, seconds=needed.seconds) != needed:
            yield f"{key} has other options"


def load(flavor: PolicyFlavor, machines: Machines, seconds: int) -> Tools:
    """Return the tools that load all CPUs of a VM, and the network if measured."""
    threads = (flavor.vcpus,)
    return Tools(
        sysbench_cpu=sysbench.CPU(threads, seconds),
        # Both directions would want the same ports at once.
        iperf3=_network(flavor, machines, seconds, ("send",)),
    )


def _tools(
    flavor: PolicyFlavor,
    machines: Machines,
    seconds: int,
    directory: str | None,
    size: str = _FILE,
) -> Tools:
    """Return the tools for a flavor's endpoints, with a thread for each vCPU."""
    threads: Any = (flavor.vcpus,)
    return Tools(
        sysbench_cpu=sysbench.CPU(threads, seconds),
        memory_bandwidth=memory.Bandwidth(threads, seconds),
        memory_latency=memory.Latency(threads, seconds),
        cyclictest=cyclictest.CyclicTest(threads, seconds),
        iperf3=_network(flavor, machines, seconds),
        fio=fio.Fio(directory, size=size, seconds=seconds) if directory else None,
    )


def _network(
    flavor: PolicyFlavor,
    machines: Machines,
    seconds: int,
    directions: tuple[Literal["send", "receive"], ...] = ("send", "receive"),
) -> iperf3.IPerf3 | None:
    if machines.generator is None:
        return None
    return iperf3.IPerf3(
        server=machines.generator.name,
        address=machines.address,
        connections=(flavor.vcpus,),
        protocols=("tcp",),
        directions=directions,
        seconds=seconds,
    )

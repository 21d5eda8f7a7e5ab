# SPDX-License-Identifier: Apache-2.0
"""What a proof measures, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.measure.bench import run
from nova_perfvm.measure.bench.scenario import Scenario, Target, Tools
from nova_perfvm.measure.bench.tools import cyclictest, fio, iperf3, memory, sysbench
from nova_perfvm.policy import VMClass

GENERATOR: Final = "generator"
# A proof in seconds, and what of it goes by while nothing is measured: servers boot,
# tools are installed, machines are looked at.
_WHOLE_S: Final = 3600
_QUICK_S: Final = 600
_BESIDE_S: Final = 240
# With ten rounds a VM as fast as its host is proven in more than nine of ten cases;
# with five an interval can be told at all (doc/source/contributor/statistics.rst).
_WHOLE_ROUNDS: Final = 10
_QUICK_ROUNDS: Final = 5
# What a busy neighbour can take: its part of the memory's bandwidth and of caches.
_BESIDE_LOADED: Final = ("memory_bandwidth", "cyclictest")
# Of a run of a tool, the longest that fits; the shortest where none does.
_SECONDS: Final = (30, 20, 15, 10, 8, 6, 5, 4, 3)


@dataclass(frozen=True)
class Machines:
    """Who takes part in a proof.

    :ivar host: where collecting logs in to, and the baseline is measured
    :ivar nodes: the host's NUMA nodes that have CPUs
    :ivar vms: all VMs of the flavor on it
    :ivar generator: what the network is measured against; None for no network
    :ivar address: of the generator, for the others
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
    """Return the scenario with the longest runs for which there is time.

    Each VM runs alone and all at once; a quick one only at once.  The host runs as
    often at the same time, each time bound to a node.

    :param baseline: whether to measure the host, too
    :param directory: on the disk to measure; None for no disk
    """
    vms = machines.vms
    bound = vm_class.cells_per_vm == 1 and machines.nodes
    hosts = tuple(
        replace(
            machines.host,
            name=f"host{number + 1}",
            node=bound[number % len(bound)] if bound else None,
        )
        for number in range(len(vms))
    )
    together = {"hosts": hosts, "vms": vms} if baseline else {"vms": vms}
    groups = {name: tuple(one.name for one in of) for name, of in together.items()}
    if len(vms) > 1 and not quick:
        alone = (*hosts[: int(baseline)], *vms)
        groups |= {f"{one.name}-alone": (one.name,) for one in alone}
    servers = (machines.generator,) if machines.generator else ()
    budget_s = (_QUICK_S if quick else _WHOLE_S) - _BESIDE_S
    for seconds in _SECONDS:
        found = Scenario(
            targets=(*(t for of in together.values() for t in of), *servers),
            groups=groups,
            tools=_tools(flavor, machines, seconds, directory),
            repeats=_QUICK_ROUNDS if quick else _WHOLE_ROUNDS,
            warm_up=0 if quick else 1,
            noisy_neighbour=_BESIDE_LOADED if len(vms) > 1 and not quick else (),
        )
        if run.planned_s(found.steps(seed=0)) <= budget_s:
            break
    return found


def minutes(scenario: Scenario) -> int:
    """Return about how many minutes a whole proof takes."""
    return round((_BESIDE_S + run.planned_s(scenario.steps(seed=0))) / 60)


def load(flavor: PolicyFlavor, machines: Machines, seconds: int) -> Tools:
    """Return what keeps all CPUs of a VM busy, and its network if there is one."""
    threads = (flavor.vcpus,)
    return Tools(
        sysbench_cpu=sysbench.CPU(threads, seconds),
        # Both directions would want the same ports at once.
        iperf3=_network(flavor, machines, seconds, ("send",)),
    )


def _tools(
    flavor: PolicyFlavor, machines: Machines, seconds: int, directory: str | None
) -> Tools:
    """Return what measures the endpoints of a flavor, each with all of its vCPUs."""
    threads: Any = (flavor.vcpus,)
    return Tools(
        sysbench_cpu=sysbench.CPU(threads, seconds),
        memory_bandwidth=memory.Bandwidth(threads, seconds),
        memory_latency=memory.Latency(threads, seconds),
        cyclictest=cyclictest.CyclicTest(threads, seconds),
        iperf3=_network(flavor, machines, seconds),
        fio=fio.Fio(directory, size="1g", seconds=seconds) if directory else None,
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

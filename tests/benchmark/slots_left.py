# SPDX-License-Identifier: Apache-2.0
"""What PerfVMWeigher saves: slots left over by the same arrivals and departures.

Real HostStates, filters and weighers of Nova, no services. VMs of both classes
come at random to hosts without cpu sets, each of which serves either class, and
leave at random; every setting sees the same VMs come and go at the same times.
No figure depends on the machine.

    python -m tests.benchmark.slots_left
"""

import dataclasses
import heapq
import logging
import random
import sys

from nova import conf as nova_conf
from nova.scheduler import filters as nova_filters
from nova.scheduler import weights as nova_weights
from nova.scheduler.filters import numa_topology_filter
from nova.virt import hardware
from oslo_config import fixture as config_fixture

from nova_perfvm.scheduler import filters
from tests.unit.scheduler import states

WEIGHERS = "nova.scheduler.weights.all_weighers"
OURS = "nova_perfvm.scheduler.weights.PerfVMWeigher"

# Each name is a setting of nova.conf: weight_classes, and options that differ
# from their defaults.
SETTINGS = {
    "Nova's weighers": ([WEIGHERS], {}),
    "... told to stack": (
        [WEIGHERS],
        {f"{name}_weight_multiplier": -1.0 for name in ("cpu", "ram", "disk")},
    ),
    "... and PerfVMWeigher": ([WEIGHERS, OURS], {}),
}

SLOTS_PER_HOST = 2
HOST_MEMORY_MB = 512000
HOST_DISK_GB = 4000
# What Nova gives new hosts by default (initial_cpu_allocation_ratio).
CPU_RATIO = 4.0
HP_MEMORY_MB = 65536
GENERAL_SIZES = ((1, 2048, 20), (2, 4096, 40), (4, 8192, 40), (8, 16384, 80))


@dataclasses.dataclass(frozen=True)
class Workload:
    """How VMs come and go.

    ``hosts`` serve either class, ``shared_hosts`` general VMs alone. ``hp`` and
    ``general`` are how many VMs of a class would run at a time on average if
    none were refused; lifetimes are exponential, their mean is 1.
    """

    hosts: int = 100
    shared_hosts: int = 0
    arrivals: int = 2000
    hp: int = 100
    general: int = 150
    seed: int = 20


@dataclasses.dataclass
class Tally:
    """What became of the VMs of one run.

    ``free`` holds the free slots at each arrival of the second half, when the
    cloud is as full as it gets.
    """

    asked: dict
    refused: dict
    free: list

    @property
    def mean_free(self):
        return sum(self.free) / len(self.free)


def arrivals(load):
    """Return (time, class, size, lifetime) of each VM that arrives."""
    rng = random.Random(load.seed)
    now = 0.0
    for _ in range(load.arrivals):
        now += rng.expovariate(load.hp + load.general)
        kind = "hp" if rng.random() * (load.hp + load.general) < load.hp else "general"
        yield now, kind, rng.choice(GENERAL_SIZES), rng.expovariate(1)


def make_spec(kind, size):
    """Return the request for a VM."""
    if kind == "hp":
        spec = states.request_spec(memory_mb=HP_MEMORY_MB)
    else:
        vcpus, memory_mb, root_gb = size
        spec = states.request_spec("general", vcpus, memory_mb, extra_specs={})
        spec.flavor.root_gb = root_gb
    spec.instance_group = None
    return spec


def make_host(number, *, slots=True):
    """Return an idle host of 2 x 20 CPUs that serves either class, or general VMs."""
    cpus = range(40)
    topology = states.numa_topology(
        "2x20",
        dedicated=cpus if slots else (),
        shared=cpus,
        memory_mb=HOST_MEMORY_MB,
        mempages=[(4, HOST_MEMORY_MB // 2 * 256, 0, 0)],
    )
    state = states.host_state(f"host{number}", topology)
    state.vcpus_total = 40
    state.cpu_allocation_ratio = CPU_RATIO
    state.total_usable_ram_mb = state.free_ram_mb = HOST_MEMORY_MB
    state.free_disk_mb = HOST_DISK_GB * 1024
    return state


def has_capacity(state, spec):
    """Return whether Placement would offer a host."""
    vcpus = state.vcpus_total * state.cpu_allocation_ratio - state.vcpus_used
    return (
        vcpus >= spec.vcpus
        and state.free_ram_mb >= spec.memory_mb
        and state.free_disk_mb >= spec.root_gb * 1024
    )


def leave(state, spec):
    """Take a VM off its host, as the compute's next report would."""
    state.free_ram_mb += spec.memory_mb
    state.free_disk_mb += spec.root_gb * 1024
    state.vcpus_used -= spec.vcpus
    state.num_instances -= 1
    if spec.numa_topology is not None:
        state.numa_topology = hardware.numa_usage_from_instance_numa(
            state.numa_topology, spec.numa_topology, free=True
        )


class Cloud:
    """Hosts, and the part of nova-scheduler that chooses among them."""

    def __init__(self, load):
        config = nova_conf.CONF.filter_scheduler
        self.hosts = [
            make_host(number, slots=number < load.hosts)
            for number in range(load.hosts + load.shared_hosts)
        ]
        self.with_slots = {host.host for host in self.hosts[: load.hosts]}
        # Nova's list has no order either.
        random.Random(load.seed).shuffle(self.hosts)
        self.vms = {host.host: {"hp": 0, "general": 0} for host in self.hosts}
        self.filter_handler = nova_filters.HostFilterHandler()
        self.filters = [
            filters.PerfVMFilter(),
            numa_topology_filter.NUMATopologyFilter(),
        ]
        self.weight_handler = nova_weights.HostWeightHandler()
        self.weighers = [
            cls()
            for cls in self.weight_handler.get_matching_classes(config.weight_classes)
        ]

    def place(self, kind, spec):
        """Return the host that a VM was put on, None if all refused."""
        offered = [host for host in self.hosts if has_capacity(host, spec)]
        for host in offered:
            host.allocation_candidates = [{"mappings": {"": [host.uuid]}}]
        passed = list(self.filters[0].filter_all(offered, spec))
        weighed = self.weight_handler.get_weighed_objects(self.weighers, passed, spec)
        if not weighed:
            return None
        best = weighed[0].obj
        self.put(kind, spec, best)
        return best

    def put(self, kind, spec, host):
        """Build a VM on a host that passed PerfVMFilter."""
        # Of these VMs it asks no more than PerfVMFilter, for 100 times the cost
        # per host: asking it about the chosen host is enough, and about pinned VMs.
        if spec.numa_topology and not self.filters[1].host_passes(host, spec):
            raise AssertionError(f"{host.host} passed PerfVMFilter, cannot pin")
        host.consume_from_request(spec)
        # It has been built by the time the next VM arrives.
        host.num_io_ops -= 1
        self.vms[host.host][kind] += 1

    def remove(self, kind, spec, host):
        leave(host, spec)
        self.vms[host.host][kind] -= 1

    @property
    def free_slots(self):
        """Slots left, counted from what was placed and not from HostStates."""
        return sum(
            SLOTS_PER_HOST - self.vms[host]["hp"]
            for host in self.with_slots
            if not self.vms[host]["general"]
        )


def run(load):
    """Let a workload pass through a cloud of the current configuration."""
    cloud = Cloud(load)
    tally = Tally({"hp": 0, "general": 0}, {"hp": 0, "general": 0}, [])
    departures = []
    for number, (now, kind, size, lifetime) in enumerate(arrivals(load)):
        while departures and departures[0][0] <= now:
            cloud.remove(*heapq.heappop(departures)[2:])
        spec = make_spec(kind, size)
        tally.asked[kind] += 1
        host = cloud.place(kind, spec)
        if host is None:
            tally.refused[kind] += 1
        else:
            heapq.heappush(departures, (now + lifetime, number, kind, spec, host))
        if number >= load.arrivals // 2:
            tally.free.append(cloud.free_slots)
    return tally


def compare(load):
    """Return a Tally for each setting, the same VMs coming and going in all."""
    tallies = {}
    for name, (weight_classes, options) in SETTINGS.items():
        with config_fixture.Config(nova_conf.CONF) as config:
            config.config(
                group="filter_scheduler", weight_classes=weight_classes, **options
            )
            tallies[name] = run(load)
    return tallies


def main():
    """Print the tables."""
    logging.disable(logging.CRITICAL)
    nova_conf.CONF([], project="nova", default_config_files=[])
    write = sys.stdout.write
    for load in (Workload(), Workload(hosts=90, shared_hosts=10)):
        slots = load.hosts * SLOTS_PER_HOST
        write(
            f"{load.hosts} hosts that serve either class ({slots} slots), "
            f"{load.shared_hosts} for general VMs alone; {load.arrivals} VMs\n"
            f"{'weighers':21} {'slots free: mean':>17} {'least':>6} {'hp refused':>14} "
            f"{'general refused':>16}\n"
        )
        for name, tally in compare(load).items():
            refused = {k: f"{tally.refused[k]} of {n}" for k, n in tally.asked.items()}
            write(
                f"{name:21} {tally.mean_free:17.1f} {min(tally.free):6} "
                f"{refused['hp']:>14} {refused['general']:>16}\n"
            )
        write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

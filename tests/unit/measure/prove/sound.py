# SPDX-License-Identifier: Apache-2.0
"""All that a proof rests on, without a fault: a host of 2x20 with two VMs."""

import copy
import functools
import json
import random
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench.scenario import Target
from nova_perfvm.measure.prove import plan, proof
from nova_perfvm.measure.prove.inputs import BOOT, UUID
from nova_perfvm.measure.samples import Machine, Measurement, Samples
from nova_perfvm.policy import HostShape, loader
from tests.unit.measure import guests, hosts
from tests.unit.rules import hosts as rules

FLAVOR = "hp.20c.128g"
CPU = "Xeon Gold 6248"
# What a machine is like, of all that bench run has collected before it measures.
STATE = (
    *("/proc/cmdline", "/proc/cpuinfo", BOOT, UUID, f"{hosts.CPU}/online"),
    *(f"{hosts.CPU}/smt/control", f"{hosts.CPU}/cpu*/cpufreq/scaling_*"),
    *(f"{hosts.CPU}/intel_pstate/*", "/sys/kernel/mm/ksm/run"),
    *("/sys/class/net/*/statistics/*", "/proc/stat", "/proc/vmstat"),
    *(f"{hosts.CPU}/vulnerabilities/*", hosts.CLOCK),
    *("/proc/net/softnet_stat", "/proc/interrupts", "*_count"),
)
KERNELS = {"compute1": "6.8.0", "rgw1": "6.8.0", "rgw2": "6.8.0"}
ROUNDS = 20
# By which the host is measured first.
SEED = 4
# {metric: (tool, unit, better, threads, value of the host, VM / host)}.
METRICS = {
    "cpu.events_per_second": ("sysbench", "1/s", "higher", (1, 20), 1000, 0.95),
    "cpu.latency_p95_ms": ("sysbench", "ms", "lower", (20,), 0.7, 1.2),
    "memory.bandwidth_mib_per_second": (
        *("sysbench", "MiB/s", "higher", (20,), 9000, 0.9),
    ),
    "memory.random_access_ns": ("sysbench", "ns", "lower", (1,), 95, 1.05),
    "network.bits_per_second": ("iperf3", "bit/s", "higher", (20,), 1e10, 0.92),
    "scheduling.loaded.latency_p99_9_us": ("cyclictest", "us", "lower", (20,), 40, 1.3),
}
# All others are information.
ENDPOINTS = tuple(name for name in METRICS if name != "cpu.latency_p95_ms")
VERSIONS = {"sysbench": "1.0.20", "iperf3": "3.12", "cyclictest": "2.4"}
MACHINES = {
    "node0": Machine("host", KERNELS["compute1"], CPU, "performance", 0),
    "node1": Machine("host", KERNELS["compute1"], CPU, "performance", 1),
    "vm1": Machine("guest", KERNELS["rgw1"], CPU),
    "vm2": Machine("guest", KERNELS["rgw2"], CPU),
}


def identity(hostname):
    """Return the files that tell kernel and CPU."""
    virtual = "" if hostname == "compute1" else " hypervisor"
    return {
        "/proc/sys/kernel/osrelease": f"{KERNELS[hostname]}\n",
        "/proc/cpuinfo": guests.cpuinfo(virtual or guests.OF_HOST, CPU),
        BOOT: f"{hostname}-0000-4000-8000-000000000000\n",
    }


def host():
    """Return what is collected on the host."""
    found = hosts.host()
    return replace(found, files={**found.files, **identity("compute1")})


def guest(number, **changes):
    """Return what is collected in a VM."""
    found = replace(guests.guest(**changes), hostname=f"rgw{number}")
    files = identity(found.hostname) | {
        UUID: f"{hosts.UUIDS[number - 1]}\n",
        "/sys/class/net/eth0/address": f"fa:16:3e:00:00:0{number}\n",
        "/proc/meminfo": f"MemTotal:       {126 * 2**20} kB\n",
    }
    return guests.having(found, files=files)


@functools.cache
def _measured():
    """Return what bench run has measured, with some noise."""
    draw = random.Random(4)
    found = []
    for metric, (tool, unit, better, threads, value, ratio) in METRICS.items():
        for number in range(1, ROUNDS + 1):
            for count in threads:
                found += [
                    Measurement(
                        who=who,
                        machine=machine,
                        tool=tool,
                        tool_version=VERSIONS[tool],
                        metric=metric,
                        unit=unit,
                        better=better,
                        threads=count,
                        round=number,
                        at_once=2,
                        value=value
                        * (ratio if machine.kind == "guest" else 1)
                        * draw.lognormvariate(0, 0.02),
                    )
                    for who, machine in MACHINES.items()
                ]
    return found


def measured():
    """Return a list of its own of it."""
    return list(_measured())


@functools.cache
def _seen():
    """Return what bench run has seen of each target."""
    machines = {"node0": host(), "node1": host(), "vm1": guest(1), "vm2": guest(2)}
    generator = {BOOT: "generator-0000-4000-8000-000000000000\n"}
    machines[plan.GENERATOR] = replace(
        host(), hostname="load1", files={**host().files, **generator}
    )
    return {
        who: {
            "hostname": one.hostname,
            "clock": {"offset_s": 0.2, "uncertainty_s": 0.001},
            "last_level_cache_bytes": 56 * 2**20,
            "collected": {
                "files": {
                    path: text
                    for pattern in STATE
                    for path, text in one.matching(pattern).items()
                }
            },
        }
        for who, one in machines.items()
    }


@functools.cache
def policy_document(shape="2x20", **changes):
    """Return the policy for hosts of a shape, with some keys exchanged."""
    shapes = (HostShape.parse(shape),)
    return loader.dump(replace(rules.policy(**changes), host_shapes=shapes))


@functools.cache
def scenario(document=None, directory=None, address="192.0.2.30"):
    """Return the built-in scenario, with the names of the targets here.

    :param document: the policy; the one of this module by default
    :param directory: on the disk to measure; None for no disk
    :param address: of the generator
    """
    policy = loader.parse(document or policy_document())
    flavors = {one.name: one for one in generate_flavors(policy)}
    flavor = flavors[FLAVOR]
    found = plan.scenario_of(
        flavor,
        policy.get_class(flavor.class_name),
        plan.Machines(
            Target("host", "host"),
            (0, 1),
            (Target("vm1", "guest"), Target("vm2", "guest")),
            Target(plan.GENERATOR, "host"),
            address,
        ),
        directory=directory,
    )
    names = {"host1": "node0", "host2": "node1"}
    return replace(
        found,
        targets=tuple(
            replace(one, name=names.get(one.name, one.name)) for one in found.targets
        ),
        groups={
            name: tuple(names.get(who, who) for who in group)
            for name, group in found.groups.items()
        },
    )


def noted(step, at, took_s=12.2, **beside):
    """Return what is noted of a step that began at a time.

    :param beside: what ran beside it on the host
    """
    who = list(step.runs)
    beside = {"vms": 2, "cpu_s": 0.31, "most_s": 0.2, "seconds": took_s - 2} | beside
    return {
        "key": step.key,
        "warm_up": step.round < 1,
        "targets": who,
        "started_at": at.isoformat(),
        "started_apart_s": 0.001,
        "took_s": took_s,
        "ahead_s": dict.fromkeys(who, 0.201),
        "affinity": {"node0": "0-19", "node1": "20-39"},
        "beside": {one: dict(beside) for one in who if one.startswith("node")},
    }


@functools.cache
def _run():
    """Return what is noted while it is measured: host and VMs in turn, 55 minutes."""
    at = datetime.fromisoformat("2026-11-22T09:00:00.000+00:00")
    others = {"cpus": 40, "threads": 40, "others_s": 0.9, "loudest": "qemu-system-x86"}
    steps = [
        noted(step, at + timedelta(seconds=13 * number), **others)
        for number, step in enumerate(scenario().steps(SEED))
    ]
    return {
        "scenario": scenario().as_document(),
        "seed": SEED,
        "working_set_mb": 224,
        "sessions": [
            {"started_at": "2026-11-22T08:59:00.000+00:00", "targets": _seen()}
        ],
        "steps": steps,
        "failures": [],
    }


def run():
    """Return a copy of its own of it."""
    return copy.deepcopy(_run())


@dataclass
class Case:
    """What was seen, which a fault is planted in."""

    host: object = field(default_factory=host)
    guests: list = field(default_factory=lambda: [guest(1), guest(2)])
    measured: list = field(default_factory=measured)
    run: dict = field(default_factory=run)
    policy: str = field(default_factory=policy_document)
    flavor: str = FLAVOR
    baseline: object = None

    def samples(self):
        """Return what was measured."""
        return Samples(tuple(self.measured), run=self.run)

    def write(self, directory):
        """Write what was collected and measured to files of their own."""
        guests_of = {f"guest{n}.json": one for n, one in enumerate(self.guests, 1)}
        for name, one in {"host.json": self.host, **guests_of}.items():
            (directory / name).write_text(hosts.as_json(one))
        document = json.loads(samples.dumps(self.samples())) | {"run": self.run}
        (directory / "samples.json").write_text(json.dumps(document))

    def record(self):
        """Return the record of it."""
        return proof.make(
            policy=self.policy,
            flavor=self.flavor,
            seen=(self.host, tuple(self.guests)),
            measured=self.samples(),
            baseline=self.baseline,
        )

    def judged(self):
        """Return what is judged by it."""
        return proof.judged(self.record())

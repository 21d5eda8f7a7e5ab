# SPDX-License-Identifier: Apache-2.0
"""All files of a certificate, without a fault: a host of 2x20 with two VMs."""

import copy
import functools
import json
import random
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from nova_perfvm.documents import textfile
from nova_perfvm.facts import snapshot as snapshots
from nova_perfvm.measure import samples
from nova_perfvm.measure.prove import certificate
from nova_perfvm.measure.prove.inputs import UUID, Paths, load
from nova_perfvm.measure.samples import Machine, Measurement, Samples
from nova_perfvm.policy import HostShape, loader
from tests.unit.measure import guests, hosts
from tests.unit.rules import hosts as rules

FLAVOR = "hp.20c.128g"
CPU = "Xeon Gold 6248"
BOOT = "/proc/sys/kernel/random/boot_id"
# What a machine is like, of all that bench run has collected before it measures.
STATE = (
    *("/proc/cmdline", "/proc/cpuinfo", BOOT, UUID, f"{hosts.CPU}/online"),
    *(f"{hosts.CPU}/smt/control", f"{hosts.CPU}/cpu*/cpufreq/scaling_*"),
    *(f"{hosts.CPU}/intel_pstate/*", "/sys/kernel/mm/ksm/run"),
    "/sys/class/net/*/statistics/*",
)
KERNELS = {"compute1": "6.8.0", "rgw1": "6.1.0", "rgw2": "6.1.0"}
ROUNDS = 6
# {metric: (tool, unit, better, threads, value of the host, VM / host)}.
METRICS = {
    "cpu.events_per_second": ("sysbench", "1/s", "higher", (1, 20), 1000, 0.95),
    "cpu.latency_p95_ms": ("sysbench", "ms", "lower", (20,), 0.7, 1.2),
    "memory.bandwidth_mib_per_second": (
        *("sysbench", "MiB/s", "higher", (20,), 9000, 0.9),
    ),
    "memory.random_access_ns": ("sysbench", "ns", "lower", (1,), 95, 1.05),
    "network.bits_per_second": ("iperf3", "bit/s", "higher", (20,), 1e10, 0.92),
    "scheduling.latency_p99_9_us": ("cyclictest", "us", "lower", (20,), 40, 1.3),
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
    return {
        who: {
            "hostname": one.hostname,
            "clock": {"offset_s": 0.2, "uncertainty_s": 0.001},
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


def run():
    """Return what bench run notes beside it: host and VMs in turn, once a round."""
    begun = datetime.fromisoformat("2026-11-22T09:25:00.000+00:00")
    groups = {"host": ["node0", "node1"], "vms": ["vm1", "vm2"]}
    steps = []
    for number in range(1, ROUNDS + 1):
        for group in sorted(groups, reverse=number % 2 == 0):
            steps.append(
                {
                    "key": f"{number}/{group}/sysbench cpu/20",
                    "targets": list(groups[group]),
                    "started_at": (
                        begun + timedelta(minutes=2 * len(steps))
                    ).isoformat(),
                    "started_apart_s": 0.001,
                    "took_s": 60.4,
                    "ahead_s": dict.fromkeys(groups[group], 0.201),
                    "beside": {
                        who: {"vms": 2, "cpu_s": 0.31, "most_s": 0.2, "seconds": 10.2}
                        for who in groups[group]
                        if who.startswith("node")
                    },
                }
            )
    return {
        "scenario": {"targets": {who: {"kind": m.kind} for who, m in MACHINES.items()}},
        "sessions": [
            {
                "started_at": "2026-11-22T09:20:00.000+00:00",
                "targets": copy.deepcopy(_seen()),
            }
        ],
        "steps": steps,
        "failures": [],
    }


@functools.cache
def policy_document(shape="2x20", **changes):
    """Return the policy for hosts of a shape, with some keys exchanged."""
    shapes = (HostShape.parse(shape),)
    return loader.dump(replace(rules.policy(**changes), host_shapes=shapes))


@dataclass
class Case:
    """The files, which a fault is planted in.

    :ivar texts: {role: change of the text that is written}
    """

    host: object = field(default_factory=host)
    guests: list = field(default_factory=lambda: [guest(1), guest(2)])
    measured: list = field(default_factory=measured)
    run: dict | None = field(default_factory=run)
    policy: str = field(default_factory=policy_document)
    flavor: str = FLAVOR
    texts: dict = field(default_factory=dict)
    snapshot: object = None
    guest_names: list = field(default_factory=list)

    def write(self, directory):
        """Write all files; return their paths."""
        found = {
            "policy.yaml": self.policy,
            "host.json": hosts.as_json(self.host),
            "samples.json": self._samples(),
        }
        names = []
        for number, one in enumerate(self.guests, 1):
            names.append(f"guest{number}.json")
            found[names[-1]] = hosts.as_json(one)
        if self.snapshot is not None:
            found["snapshot.json"] = snapshots.dumps(self.snapshot)
        for name, text in found.items():
            changed = self.texts.get(name, lambda same: same)(text)
            if changed is None:
                (directory / name).unlink(missing_ok=True)
            else:
                (directory / name).write_text(changed)
        return Paths(
            host=str(directory / "host.json"),
            guests=[str(directory / name) for name in self.guest_names or names],
            samples=str(directory / "samples.json"),
            policy=str(directory / "policy.yaml"),
            snapshot=str(directory / "snapshot.json") if self.snapshot else None,
        )

    def _samples(self):
        document = json.loads(samples.dumps(Samples(tuple(self.measured))))
        if self.run is not None:
            document["run"] = self.run
        return json.dumps(document)

    def made(self, directory, **given):
        """Certify; return what was judged, and the record."""
        read = functools.partial(
            load,
            self.write(directory),
            self.flavor,
            read_snapshot=lambda path: snapshots.loads(textfile.read(path)),
            within_s=3600,
        )
        return certificate.make(
            read,
            **{"made_at": "2026-11-22T10:30:00+00:00"} | given,
        )

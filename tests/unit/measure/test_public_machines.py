# SPDX-License-Identifier: Apache-2.0
"""Machines with more NUMA nodes than sockets, from a collected file to VMs.

Cores and nodes are those that the vendors publish: AMD's tuning guides for EPYC 7003
(NPS, L3 as NUMA), Intel's for SNC, and NVIDIA's for GH200, whose GPU memory is on nodes
without CPUs.
"""

import dataclasses

import testtools

from nova_perfvm.diagnose.capacity import host_capacity
from nova_perfvm.diagnose.survey.collected import as_snapshot
from nova_perfvm.findings import Level
from nova_perfvm.generate.hosts import HostRequest, generate, rendering
from nova_perfvm.measure import nova_conf
from nova_perfvm.measure.checks.host.numa_nodes import node_shape
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect import hypervisor
from nova_perfvm.measure.collect.collected import Collected, CommandOutput
from nova_perfvm.measure.observed import topology
from nova_perfvm.policy import shape_slots
from tests.unit.generate.hosts.requests import policy_of

CPU, NODE = "/sys/devices/system/cpu", "/sys/devices/system/node"
GB_KB = 2**20
# (machine, nodes, cores of a node, threads, nodes without CPUs;
#  vCPUs and numa_nodes of the class; VMs on a host)
MACHINES = (
    ("2 x EPYC 7763, NPS1", (2, 64, 2, 0), (20, 1), 6),
    ("2 x EPYC 7763, NPS2", (4, 32, 2, 0), (20, 1), 4),
    ("2 x EPYC 7763, NPS4", (8, 16, 2, 0), (20, 2), 4),
    ("2 x EPYC 7763, L3 as NUMA", (16, 8, 2, 0), (24, 3), 5),
    ("2 x Xeon 8480+, SNC2", (4, 28, 2, 0), (28, 1), 4),
    ("2 x Xeon 6972P, SNC3", (6, 32, 2, 0), (32, 1), 6),
    ("2 x Xeon 8490H, SNC4", (8, 15, 2, 0), (30, 2), 4),
    ("GH200", (1, 72, 1, 8), (36, 1), 2),
)


def collected(nodes, cores, threads, empty=0, without=(), efficient=""):
    """Return what is collected on a host, numbered as Linux does on x86.

    :param empty: number of nodes without CPUs
    :param without: CPUs that are offline
    """
    total = nodes * cores
    every = range(total * threads)
    online = [cpu for cpu in every if cpu not in without]
    files = {
        f"{CPU}/online": ",".join(map(str, online)),
        f"{CPU}/present": f"0-{len(every) - 1}",
        f"{CPU}/possible": f"0-{len(every) - 1}",
    }
    for node in range(nodes + empty):
        own = [c for c in online if c % total // cores == node] if node < nodes else []
        files[f"{NODE}/node{node}/cpulist"] = ",".join(map(str, own))
        meminfo = f"Node {node} MemTotal: {256 * GB_KB} kB\n"
        files[f"{NODE}/node{node}/meminfo"] = meminfo
        for cpu in own:
            siblings = [cpu % total + n * total for n in range(threads)]
            listed = ",".join(str(c) for c in siblings if c in online)
            files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = listed
    if efficient:
        files["/sys/devices/cpu_atom/cpus"] = efficient
    return Collected(
        kind="host",
        hostname="h1",
        taken_at="2026-11-22T10:00:00+00:00",
        files=files,
        commands={"virsh -r list --all --uuid": CommandOutput(0, "")},
    )


def policy_for(shape, size, placement="slots"):
    vcpus, nodes = size
    return policy_of(
        placement,
        shape,
        vcpus=vcpus,
        numa_nodes=nodes,
        max_per_host=None,
        flavors={"name": "hp", "memory_gb": [8 * nodes]},
    )


class MachinesTest(testtools.TestCase):
    def test_what_one_gets(self):
        for _machine, built, size, vms in MACHINES:
            host = collected(*built)
            seen = topology.read(host)
            shape = "x".join(map(str, built[:3])).removesuffix("x1")
            self.assertEqual(shape, str(seen))
            policy = policy_for(shape, size)
            (pinned,) = policy.pinned_classes
            self.assertEqual(vms, shape_slots(pinned, seen.shape))

            config = generate(HostRequest(policy, seen, "dedicated"))
            self.assertEqual(vms, config.slots)
            self.assertNotIn("host_shape", " ".join(config.warnings))

            # As configured; Placement's inventories are not collected.
            conf = {nova_conf.PATH: rendering.nova_conf(config)}
            host = dataclasses.replace(host, files=host.files | conf)
            policy = policy_for(shape, size, "none")
            snapshot = as_snapshot([hypervisor.facts(host, policy)])
            (slots,) = host_capacity(policy, snapshot)
            self.assertEqual(vms, slots.total)

    def test_the_check_of_hosts(self):
        for _machine, built, size, _ in MACHINES:
            host = collected(*built)
            policy = policy_for(str(topology.read(host)), size)
            subject = HostSubject(host, policy)
            levels = {one.level for one in node_shape.findings(subject)}
            self.assertEqual({Level.OK}, levels)


class OddTest(testtools.TestCase):
    def shown(self, host):
        found = node_shape.findings(HostSubject(host, policy_for("2x20", (20, 1))))
        return {one.level for one in found}, " ".join(one.observed for one in found)

    def warned(self, host):
        policy = policy_for("2x20", (18, 1))
        config = generate(HostRequest(policy, topology.read(host), "dedicated"))
        return " ".join(config.warnings)

    def test_a_cpu_that_is_offline(self):
        host = collected(2, 20, 1, without=(39,))
        levels, words = self.shown(host)
        self.assertIn(Level.FAILURE, levels)
        self.assertIn("CPUs 39 are offline", words)
        self.assertIn("node 1 has 19 cores, others 20", self.warned(host))

    def test_fast_and_efficient_cores(self):
        levels, words = self.shown(collected(2, 20, 1, efficient="12-19"))
        self.assertIn(Level.WARNING, levels)
        self.assertIn("CPUs 12-19 of node 0 are efficient cores", words)
        # Efficient cores have one thread: 8 of 2 threads, and 12 of one.
        host = collected(2, 20, 2, without=(*range(48, 60), *range(68, 80)))
        self.assertIn("node 0 has cores of 1 and 2 threads", self.warned(host))

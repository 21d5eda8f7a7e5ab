# SPDX-License-Identifier: Apache-2.0
"""Checks of where VMs were put: shape, CPU sets, pins, memory's node."""

from nova_perfvm.policy import loader
from tests.unit.measure import hosts
from tests.unit.measure.checks.host.case import (
    CONF,
    FAIL,
    FIRST,
    PASS,
    SKIP,
    WARN,
    HostCase,
    having,
    view,
    with_class,
)
from tests.unit.measure.hosts import CPU, NODE, UUIDS

SECOND_NODE = f"{NODE}/node1/meminfo"


def smt(pins=None, sets="cpu_dedicated_set=0-81"):
    """Return a host of two threads a core, whose first VM has such pins."""
    files = hosts.topology(cores=21, threads=2) | {CONF: f"[compute]\n{sets}\n"}
    host = having(hosts.roomy(), files)
    return hosts.with_domains(host, vm1=hosts.domain_xml(1, pins)) if pins else host


def configured(sets):
    return {CONF: f"[compute]\n{sets}\n"}


def with_vm(number, xml, **changes):
    return hosts.with_domains(hosts.roomy(**changes), **{f"vm{number}": xml})


def pinned(*cpus):
    """Return a host whose first VM has its vCPUs on these CPUs."""
    return with_vm(1, hosts.domain_xml(1, [str(cpu) for cpu in cpus]))


class ShapeTest(HostCase):
    def test_node_shape(self):
        less = {SECOND_NODE: f"Node 1 MemTotal: {128 * 2**20} kB\n"}
        memory = "memory of the nodes"
        self.assert_cases(
            "node_shape",
            (FAIL, "shape", "2x21x2", hosts.topology(cores=21, threads=2)),
            (FAIL, "shape", "21 + 20 cores", {f"{CPU}/online": "0-40\n"}),
            (WARN, memory, "128.0 GiB on node 1", less),
            (WARN, "memory for class high-performance", "128.0 GiB", less),
            (SKIP, memory, "", {SECOND_NODE: None}),
        )
        other = loader.load()
        self.assert_cases("node_shape", (FAIL, "shape", "2x21", {}), policy=other)

    def test_memoryless_nodes(self):
        none = {SECOND_NODE: "Node 1 MemTotal: 0 kB\n"}
        self.assert_cases(
            "memoryless_nodes",
            (PASS, "node 0", "", none),
            (FAIL, "node 1", "", none),
            (PASS, "node 0", "", {SECOND_NODE: None}),
            (SKIP, "node 1", "", {SECOND_NODE: None}),
            # A node of memory alone.
            (SKIP, "node 2", "", {f"{NODE}/node2/cpulist": "\n"}),
        )

    def test_smt(self):
        pairs = [str(cpu + 42 * n) for cpu in range(10) for n in (0, 1)]
        others = [str(cpu + 42) for cpu in range(20, 40)]
        shared = "cpu_dedicated_set=0-39\ncpu_shared_set=42-81"
        unread = {f"{CPU}/cpu3/topology/thread_siblings_list": None}
        self.assert_cases(
            "smt",
            (PASS, "*", "", smt()),
            (FAIL, FIRST, "on 10 cores", smt(pairs)),
            (FAIL, FIRST, "0,42", smt(pairs)),
            # The other thread is somebody else's.
            (FAIL, "*", "", smt(others)),
            (FAIL, "*", "", smt(others, shared)),
            (SKIP, FIRST, "", unread),
            (PASS, "instance-00000002", "", unread),
        )
        threads = with_class(smt="threads")
        self.assert_cases("smt", (SKIP, FIRST, "", smt(pairs)), policy=threads)
        self.assert_cases("smt", (SKIP, "*", "", {}), policy=None)


class CPUsTest(HostCase):
    def test_cpu_sets(self):
        node, both = "node 1, class high-performance", "dedicated and shared"
        overlap = "cpu_dedicated_set = 0-39\ncpu_shared_set = 39-41"
        unread = having(hosts.roomy(), {CONF: None})
        sharing = hosts.general_xml(3, "39-41")
        floating = hosts.general_xml(3).replace(" cpuset='20-39'", "")
        every, own = configured("cpu_dedicated_set = 0-41"), "the host's own CPUs"
        self.assert_cases(
            "cpu_sets",
            (FAIL, both, "CPUs 39", configured(overlap)),
            (FAIL, "online", "77", configured("cpu_dedicated_set = 0-39,77")),
            (FAIL, node, "19, room for 0", configured("cpu_dedicated_set = 0-38")),
            (WARN, node, "21, room for 1", configured("cpu_dedicated_set = 0-39,41")),
            (WARN, own, "none", every),
            (SKIP, "*", "", configured("cpu_dedicated_set = 3-1")),
            # What the VMs show.
            (PASS, both, "0-39", unread),
            (SKIP, own, "", unread),
            (FAIL, both, "CPUs 39", hosts.with_domains(unread, vm3=sharing)),
            (FAIL, both, "CPUs 0-39", hosts.with_domains(unread, vm3=floating)),
        )
        # What the snapshot has.
        self.assert_cases("cpu_sets", (PASS, "*", "", unread), nova=view())
        assumed = view(hosts.snapshot(cells=False))
        unknown = (SKIP, "CPUs of each node", "", unread)
        self.assert_cases("cpu_sets", unknown, nova=assumed)

    def test_vcpu_pins(self):
        xml = hosts.domain_xml(1)
        for cpu in range(20):
            xml = xml.replace(f"    <vcpupin vcpu='{cpu}' cpuset='{cpu}'/>\n", "")
        names = [f"{FIRST}: {n}" for n in ("one CPU each", "NUMA nodes", "nobody else")]
        each, nodes, alone = names
        two_nodes = pinned(*range(5, 25))
        sharing = with_vm(3, hosts.general_xml(3, "0-3,40-41"))
        doctype = "<!DOCTYPE x [<!ENTITY a 'b'>]>" + hosts.domain_xml(1)
        lies = ("", "<domain", "<other/>", doctype, "<domain><vcpu/></domain>")
        self.assert_cases(
            "vcpu_pins",
            (FAIL, each, "vCPUs 19 have not", pinned(*range(19), "18-19")),
            *((FAIL, name, "", with_vm(1, xml)) for name in names),
            (FAIL, nodes, "0-1", two_nodes),
            (FAIL, alone, "20-24", two_nodes),
            (FAIL, alone, "instance-00000002", two_nodes),
            (FAIL, alone, "on 19 CPUs", pinned(*range(19), 18)),
            (FAIL, alone, "0-3", sharing),
            *((SKIP, UUIDS[0], "cannot be understood", with_vm(1, t)) for t in lies),
        )

    def test_two_cells_on_two_nodes(self):
        xml = hosts.domain_xml(1, [str(cpu) for cpu in (*range(10), *range(20, 30))])
        cell = "<cell id='0' cpus='0-19' memory='134217728' unit='KiB'/>"
        self.assertIn(cell, xml)
        two = (
            "<cell id='0' cpus='0-9' memory='67108864' unit='KiB'/>"
            "<cell id='1' cpus='10-19' memory='67108864' unit='KiB'/>"
        )
        host = with_vm(1, xml.replace(cell, two), vms=1)
        one = (FAIL, f"{FIRST}: NUMA nodes", "0, 1", host)
        self.assert_cases("vcpu_pins", one)
        policy = with_class(numa_nodes=2)
        self.assert_cases("vcpu_pins", (PASS, "*", "", host), policy=policy)


class BindingTest(HostCase):
    def test_numatune(self):
        memory = "<memory mode='strict' nodeset='0'/>"
        memnode = "<memnode cellid='0' mode='strict' nodeset='0'/>"
        other = memnode.replace("nodeset='0'", "nodeset='1'")
        name = f"{FIRST}: memory"
        self.assert_cases(
            "numatune",
            (FAIL, name, "preferred", (memory, memory.replace("strict", "preferred"))),
            (FAIL, name, "node 1", (memory, memory.replace("'0'", "'1'"))),
            (FAIL, name, "node 0-1", (memory, memory.replace("'0'", "'0-1'"))),
            (FAIL, name, "bound nowhere", (memory, "")),
            (FAIL, f"{name} of its node 0", "node 1", (memnode, other)),
        )

    def test_emulator_pin(self):
        pin = "<emulatorpin cpuset='0-19'/>"
        self.assert_cases(
            "emulator_pin",
            (FAIL, FIRST, "floats", (pin, "")),
            (FAIL, FIRST, "own 20", (pin, pin.replace("19", "20"))),
        )
        self.assert_cases(
            "emulator_pin",
            (FAIL, FIRST, "own 0-19", {}),
            (PASS, FIRST, "40-41", (pin, "<emulatorpin cpuset='40-41'/>")),
            policy=with_class(emulator_threads="share"),
        )

    def test_iothread_pin(self):
        pin = "<iothreadpin iothread='1' cpuset='0-19'/>"
        self.assert_cases(
            "iothread_pin",
            (WARN, FIRST, "none", ("<iothreads>1</iothreads>", "")),
            (FAIL, f"{FIRST}: I/O thread 1", "floats", (pin, "")),
            (
                *(FAIL, f"{FIRST}: I/O thread 1", "own 30"),
                (pin, pin.replace("0-19", "5,30")),
            ),
        )

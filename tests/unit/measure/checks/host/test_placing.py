# SPDX-License-Identifier: Apache-2.0
"""Checks of where VMs were put: shape, CPU sets, pins, memory's node."""

import dataclasses

from nova_perfvm.measure.collect import hypervisor
from nova_perfvm.policy import loader
from tests.unit.measure import hosts
from tests.unit.measure.checks.host.case import (
    CONF,
    FAIL,
    FIRST,
    NOTE,
    PASS,
    SKIP,
    WARN,
    HostCase,
    having,
    view,
    with_class,
)
from tests.unit.measure.hosts import CPU, NODE, UUIDS

NATIVE = "cache='none' io='native'"
SCSI = (
    "bus='virtio'/>",
    (
        "bus='scsi'/></disk><controller type='scsi' index='0' model='virtio-scsi'>"
        "<driver queues='20'/></controller><disk device='cdrom'>"
    ),
)
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
        self.assert_cases(
            "node_shape",
            (FAIL, "host", "2x21x2", hosts.topology(cores=21, threads=2)),
            (FAIL, "host", "21 + 20 cores", {f"{CPU}/online": "0-40\n"}),
            (WARN, "host", "host 256.0 GiB on node 0, 128.0 GiB on node 1", less),
            (WARN, "host", "200 GiB of a node for the largest flavor", less),
            (SKIP, "host", "it was not collected", {SECOND_NODE: None}),
            (SKIP, "host", "'x' in CPU list", {"/sys/devices/cpu_atom/cpus": "x"}),
        )
        other = loader.load()
        self.assert_cases("node_shape", (FAIL, "host", "2x21", {}), policy=other)

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
            (FAIL, FIRST, "two vCPUs of the VM share a core: CPUs 0,42", smt(pairs)),
            # The other thread is somebody else's.
            (FAIL, "*", "others' vCPUs", smt(others)),
            (FAIL, "*", "others' vCPUs", smt(others, shared)),
            (SKIP, FIRST, "", unread),
            (PASS, "instance-00000002", "", unread),
        )
        threads = with_class(smt="threads")
        self.assert_cases("smt", (SKIP, FIRST, "", smt(pairs)), policy=threads)
        self.assert_cases("smt", (SKIP, "*", "", {}), policy=None)


class CPUsTest(HostCase):
    def test_cpu_sets_without_the_cores_of_a_host(self):
        """Classes of whole cores need them, others do not."""
        cores = f"{CPU}/cpu*/topology/thread_siblings_list"
        unread = dict.fromkeys(hosts.roomy().matching(cores))
        self.assertNotEqual({}, unread)
        for level, policy in ((PASS, with_class(smt="threads")), (SKIP, with_class())):
            self.assert_cases("cpu_sets", (level, "*", "", unread), policy=policy)

    def test_cpu_sets(self):
        overlap = "cpu_dedicated_set = 0-39\ncpu_shared_set = 39-41"
        unread = having(hosts.roomy(), {CONF: None})
        sharing = hosts.general_xml(3, "39-41")
        floating = hosts.general_xml(3).replace(" cpuset='20-39'", "")
        every = configured("cpu_dedicated_set = 0-41")
        self.assert_cases(
            "cpu_sets",
            (FAIL, "host", "CPUs 39 are dedicated and shared", configured(overlap)),
            (FAIL, "host", "no CPUs 77", configured("cpu_dedicated_set = 0-39,77")),
            (FAIL, "host", "no CPUs 77", configured("cpu_shared_set = 77")),
            (FAIL, "host", "node 1 has 19", configured("cpu_dedicated_set = 0-38")),
            (WARN, "host", "node 1 has 21", configured("cpu_dedicated_set = 0-39,41")),
            (WARN, "host", "no CPU is left to the host", every),
            (SKIP, "*", "", configured("cpu_dedicated_set = 3-1")),
            # What the VMs show.
            (PASS, "host", "dedicated 0-39", unread),
            (SKIP, "host", "other VMs may come", unread),
            (FAIL, "host", "CPUs 39 are", hosts.with_domains(unread, vm3=sharing)),
            (FAIL, "host", "CPUs 0-39 are", hosts.with_domains(unread, vm3=floating)),
        )
        # What the snapshot has.
        self.assert_cases("cpu_sets", (PASS, "*", "", unread), nova=view())
        assumed = view(hosts.snapshot(cells=False))
        unknown = (SKIP, "host", "Nova's sets are not known", unread)
        self.assert_cases("cpu_sets", unknown, nova=assumed)

    def test_cpus_that_vms_of_either_kind_take(self):
        """``host config --mode elastic --reserve`` writes such a set."""

        def elastic(collected, listed="0-39"):
            conf = f"[DEFAULT]\nvcpu_pin_set = {listed}\n"
            return having(collected, {CONF: conf})

        empty, pinned = hosts.roomy(vms=0), hosts.roomy()
        general = hosts.general_xml(1, "0-39")
        shared = hosts.with_domains(empty, vm1=general)
        both = hosts.with_domains(pinned, vm3=hosts.general_xml(3, "0-39"))
        kind = "VMs of either kind take CPUs 0-39, /etc/nova/nova.conf"
        self.assert_cases(
            "cpu_sets",
            *((PASS, "*", kind, elastic(host)) for host in (empty, shared, pinned)),
            (PASS, "*", "CPUs 40-41 are the host's own", elastic(empty)),
            (PASS, "*", "node 1 has 20 cores", elastic(pinned)),
            (FAIL, "host", "CPUs 0-39 are dedicated and shared", elastic(both)),
            (FAIL, "host", "node 1 has 19", elastic(pinned, "0-38")),
            (FAIL, "host", "no CPUs 400", elastic(empty, "0-39,400")),
        )
        told = view(hosts.snapshot())
        cells = [
            dataclasses.replace(cell, cpuset=cell.pcpuset)
            for cell in told.hosts[0].cells
        ]
        told = dataclasses.replace(
            told, hosts=(dataclasses.replace(told.hosts[0], cells=tuple(cells)),)
        )
        kind, unread = (
            "either kind take CPUs 0-39, snapshot",
            having(empty, {CONF: None}),
        )
        self.assert_cases("cpu_sets", (PASS, "*", kind, unread), nova=told)
        self.assert_cases("smt", (PASS, FIRST, "20 cores", elastic(pinned)))
        self.assert_cases("isolation", (SKIP, "*", "", elastic(empty)))
        facts = hypervisor.facts(elastic(pinned))
        self.assertEqual((frozenset(range(40)),) * 2, facts.sets)

    def test_vcpu_pins(self):
        xml = hosts.domain_xml(1)
        for cpu in range(20):
            xml = xml.replace(f"    <vcpupin vcpu='{cpu}' cpuset='{cpu}'/>\n", "")
        two_nodes = pinned(*range(5, 25))
        sharing = with_vm(3, hosts.general_xml(3, "0-3,40-41"))
        doctype = "<!DOCTYPE x [<!ENTITY a 'b'>]>" + hosts.domain_xml(1)
        lies = ("", "<domain", "<other/>", doctype, "<domain><vcpu/></domain>")
        self.assert_cases(
            "vcpu_pins",
            (FAIL, FIRST, "vCPUs 19 have not one", pinned(*range(19), "18-19")),
            (FAIL, FIRST, "vCPUs 0-19 have not one", with_vm(1, xml)),
            (FAIL, FIRST, "NUMA nodes none of the host", with_vm(1, xml)),
            (FAIL, FIRST, "on NUMA nodes 0-1 of the host, not on 1", two_nodes),
            (FAIL, FIRST, "shares CPUs 20-24 with instance-00000002", two_nodes),
            (FAIL, FIRST, "20 vCPUs are on 19 CPUs", pinned(*range(19), 18)),
            (FAIL, FIRST, "shares CPUs 0-3 with instance-00000003", sharing),
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
        one = (FAIL, FIRST, "0, 1", host)
        self.assert_cases("vcpu_pins", one)
        policy = with_class(numa_nodes=2)
        self.assert_cases("vcpu_pins", (PASS, "*", "", host), policy=policy)


class BindingTest(HostCase):
    def test_numatune(self):
        memory = "<memory mode='strict' nodeset='0'/>"
        memnode = "<memnode cellid='0' mode='strict' nodeset='0'/>"
        other = memnode.replace("nodeset='0'", "nodeset='1'")
        loose = memory.replace("strict", "preferred")
        self.assert_cases(
            "numatune",
            (FAIL, FIRST, "memory: preferred, from node 0;", (memory, loose)),
            (FAIL, FIRST, "from node 1;", (memory, memory.replace("'0'", "'1'"))),
            (FAIL, FIRST, "from node 0-1;", (memory, memory.replace("'0'", "'0-1'"))),
            (FAIL, FIRST, "memory is bound nowhere", (memory, "")),
            (FAIL, FIRST, "its node 0: strict, from node 1;", (memnode, other)),
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
            # As Nova writes it.
            (NOTE, FIRST, "QEMU's main thread serves vda, no I/O thread", {}),
            (PASS, FIRST, "I/O thread 1", (NATIVE, f"{NATIVE} iothread='1'")),
            (NOTE, FIRST, "serves vda", SCSI),
            (
                PASS,
                FIRST,
                "",
                tuple(s.replace("queues='20'", "iothread='1'") for s in SCSI),
            ),
            (FAIL, FIRST, "I/O thread 1 has no pin", (pin, "")),
            (FAIL, FIRST, "VMs own 30", (pin, pin.replace("0-19", "5,30"))),
        )

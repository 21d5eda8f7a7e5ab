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


class NodeShapeTest(HostCase):
    code = "node_shape"

    def test_other_shapes_fail(self):
        self.assert_found(FAIL, "shape", "2x21", policy=loader.load())
        smt = having(hosts.host(), hosts.topology(threads=2))
        self.assert_found(FAIL, "shape", "2x21x2", collected=smt)
        uneven = having(hosts.host(), {f"{CPU}/online": "0-40\n"})
        self.assert_found(FAIL, "shape", "21 + 20 cores", collected=uneven)

    def test_memory(self):
        less = f"Node 1 MemTotal: {128 * 2**20} kB\n"
        host = having(hosts.host(), {f"{NODE}/node1/meminfo": less})
        self.assert_found(
            WARN, "memory of the nodes", "128.0 GiB on node 1", collected=host
        )
        name = "memory for class high-performance"
        self.assert_found(WARN, name, "128.0 GiB", collected=host)
        host = having(hosts.host(), {f"{NODE}/node1/meminfo": None})
        self.assert_found(SKIP, "memory of the nodes", collected=host)


class MemorylessNodesTest(HostCase):
    code = "memoryless_nodes"

    def test_a_node_without_memory_fails(self):
        path = f"{NODE}/node1/meminfo"
        host = having(hosts.host(), {path: "Node 1 MemTotal: 0 kB\n"})
        self.assertEqual({"node 0": PASS, "node 1": FAIL}, self.statuses(host))
        host = having(hosts.host(), {path: None})
        self.assertEqual({"node 0": PASS, "node 1": SKIP}, self.statuses(host))

    def test_a_node_of_memory_alone(self):
        host = having(hosts.host(), {f"{NODE}/node2/cpulist": "\n"})
        self.assert_found(SKIP, "node 2", collected=host)


class SMTTest(HostCase):
    code = "smt"

    def smt(self, pins=None):
        host = having(
            hosts.host(),
            hosts.topology(threads=2) | {CONF: "[compute]\ncpu_dedicated_set=0-81\n"},
        )
        return hosts.with_domains(host, vm1=hosts.domain_xml(1, pins)) if pins else host

    def test_one_thread_of_each_core(self):
        self.assert_all(PASS, self.smt())

    def test_two_threads_of_a_core(self):
        pins = [str(cpu + 42 * n) for cpu in range(10) for n in (0, 1)]
        one = self.assert_found(FAIL, FIRST, "on 10 cores", collected=self.smt(pins))
        self.assertIn("0,42", one.observed)
        policy = with_class(smt="threads")
        self.assert_found(SKIP, FIRST, collected=self.smt(pins), policy=policy)

    def test_the_other_thread_is_somebody_elses(self):
        pins = [str(cpu + 42) for cpu in range(20, 40)]
        self.assert_all(FAIL, self.smt(pins))
        conf = "[compute]\ncpu_dedicated_set=0-39\ncpu_shared_set=42-81\n"
        self.assert_all(FAIL, having(self.smt(), {CONF: conf}))

    def test_siblings_that_were_not_read(self):
        path = f"{CPU}/cpu3/topology/thread_siblings_list"
        host = having(hosts.host(), {path: None})
        self.assertEqual([SKIP, PASS], list(self.statuses(host).values()))
        self.assert_all(SKIP, hosts.host(), policy=None)


class CPUSetsTest(HostCase):
    code = "cpu_sets"

    def configured(self, text):
        return having(hosts.host(), {CONF: f"[compute]\n{text}\n"})

    def test_sets(self):
        node = "node 1, class high-performance"
        for text, status, subject, words in (
            (
                "cpu_dedicated_set = 0-39\ncpu_shared_set = 39-41",
                *(FAIL, "dedicated and shared", "CPUs 39"),
            ),
            ("cpu_dedicated_set = 0-39,77", FAIL, "online", "77"),
            ("cpu_dedicated_set = 0-38", FAIL, node, "19, room for 0"),
            ("cpu_dedicated_set = 0-39,41", WARN, node, "21, room for 1"),
            ("cpu_dedicated_set = 0-41", WARN, "the host's own CPUs", "none"),
        ):
            host = self.configured(text)
            self.assert_found(status, subject, words, collected=host)
        (one,) = self.findings(self.configured("cpu_dedicated_set = 3-1"))
        self.assertEqual((SKIP, CONF), (one.level, one.source))

    def test_of_the_snapshot(self):
        host = having(hosts.host(), {CONF: None})
        self.assert_all(PASS, host, nova=view())
        assumed = view(hosts.snapshot(cells=False))
        self.assert_found(SKIP, "CPUs of each node", collected=host, nova=assumed)

    def test_of_the_vms(self):
        host = having(hosts.host(), {CONF: None})
        self.assert_found(PASS, "dedicated and shared", "0-39", collected=host)
        self.assert_found(SKIP, "the host's own CPUs", collected=host)
        host = hosts.with_domains(host, vm3=hosts.general_xml(3, "39-41"))
        self.assert_found(FAIL, "dedicated and shared", "CPUs 39", collected=host)
        floating = hosts.general_xml(3).replace(" cpuset='20-39'", "")
        host = hosts.with_domains(host, vm3=floating)
        self.assert_found(FAIL, "dedicated and shared", "CPUs 0-39", collected=host)


class VCPUPinsTest(HostCase):
    code = "vcpu_pins"

    def pinned(self, pins):
        return hosts.with_domains(hosts.host(), vm1=hosts.domain_xml(1, pins))

    def test_a_vcpu_of_several_cpus(self):
        host = self.pinned([*(str(cpu) for cpu in range(19)), "18-19"])
        name = f"{FIRST}: one CPU each"
        self.assert_found(FAIL, name, "vCPUs 19 have not", collected=host)

    def test_no_pins_at_all(self):
        xml = hosts.domain_xml(1)
        for cpu in range(20):
            xml = xml.replace(f"    <vcpupin vcpu='{cpu}' cpuset='{cpu}'/>\n", "")
        host = hosts.with_domains(hosts.host(), vm1=xml)
        found = {s: v for s, v in self.statuses(host).items() if FIRST in s}
        self.assertEqual([FAIL] * 3, list(found.values()), found)

    def test_two_nodes(self):
        host = self.pinned([str(cpu) for cpu in range(5, 25)])
        self.assert_found(FAIL, f"{FIRST}: NUMA nodes", "0-1", collected=host)
        one = self.assert_found(FAIL, f"{FIRST}: nobody else", "20-24", collected=host)
        self.assertIn("instance-00000002", one.observed)

    def test_somebody_else_is_there(self):
        """A vCPU of its own, or a VM that shares."""
        host = self.pinned([*(str(cpu) for cpu in range(19)), "18"])
        self.assert_found(FAIL, f"{FIRST}: nobody else", "on 19 CPUs", collected=host)
        host = hosts.with_domains(hosts.host(), vm3=hosts.general_xml(3, "0-3,40-41"))
        self.assert_found(FAIL, f"{FIRST}: nobody else", "0-3", collected=host)

    def test_two_cells_on_two_nodes(self):
        xml = hosts.domain_xml(1, [str(cpu) for cpu in (*range(10), *range(20, 30))])
        cell = "<cell id='0' cpus='0-19' memory='134217728' unit='KiB'/>"
        self.assertIn(cell, xml)
        two = (
            "<cell id='0' cpus='0-9' memory='67108864' unit='KiB'/>"
            "<cell id='1' cpus='10-19' memory='67108864' unit='KiB'/>"
        )
        host = hosts.with_domains(hosts.host(vms=1), vm1=xml.replace(cell, two))
        self.assert_all(PASS, host, policy=with_class(numa_nodes=2))
        self.assert_found(FAIL, f"{FIRST}: NUMA nodes", "0, 1", collected=host)

    def test_xml_that_lies(self):
        doctype = "<!DOCTYPE x [<!ENTITY a 'b'>]>" + hosts.domain_xml(1)
        for text in ("", "<domain", "<other/>", doctype, "<domain><vcpu/></domain>"):
            host = hosts.with_domains(hosts.host(), vm1=text)
            self.assert_found(SKIP, UUIDS[0], "cannot be understood", collected=host)


class NUMATuneTest(HostCase):
    code = "numatune"

    def test_faults(self):
        memory = "<memory mode='strict' nodeset='0'/>"
        memnode = "<memnode cellid='0' mode='strict' nodeset='0'/>"
        for old, new, subject, word in (
            (memory, memory.replace("strict", "preferred"), "memory", "preferred"),
            (memory, memory.replace("'0'", "'1'"), "memory", "node 1"),
            (memory, memory.replace("'0'", "'0-1'"), "memory", "node 0-1"),
            (memory, "", "memory", "bound nowhere"),
            (
                memnode,
                memnode.replace("nodeset='0'", "nodeset='1'"),
                "memory of its node 0",
                "node 1",
            ),
        ):
            host = hosts.edited(hosts.host(), 1, (old, new))
            with self.subTest(new=new):
                self.assert_found(FAIL, f"{FIRST}: {subject}", word, collected=host)


class EmulatorPinTest(HostCase):
    code = "emulator_pin"
    pin = "<emulatorpin cpuset='0-19'/>"

    def test_faults(self):
        for new, word in (("", "floats"), (self.pin.replace("19", "20"), "own 20")):
            host = hosts.edited(hosts.host(), 1, (self.pin, new))
            self.assert_found(FAIL, FIRST, word, collected=host)

    def test_threads_that_are_promised_apart(self):
        policy = with_class(emulator_threads="share")
        self.assert_found(FAIL, FIRST, "own 0-19", policy=policy)
        new = (self.pin, "<emulatorpin cpuset='40-41'/>")
        host = hosts.edited(hosts.host(), 1, new)
        self.assert_found(PASS, FIRST, "40-41", collected=host, policy=policy)


class IOThreadPinTest(HostCase):
    code = "iothread_pin"

    def test_faults(self):
        pin = "<iothreadpin iothread='1' cpuset='0-19'/>"
        host = hosts.edited(hosts.host(), 1, ("<iothreads>1</iothreads>", ""))
        self.assert_found(WARN, FIRST, "none", collected=host)
        name = f"{FIRST}: I/O thread 1"
        for new, word in (("", "floats"), (pin.replace("0-19", "5,30"), "own 30")):
            host = hosts.edited(hosts.host(), 1, (pin, new))
            self.assert_found(FAIL, name, word, collected=host)

# SPDX-License-Identifier: Apache-2.0
"""A hypervisor of two NUMA nodes: sound, with faults planted in its kernel, mended.

What is planted is seen by the very check that is about it, and by no other.
"""

import dataclasses

from nova_perfvm.findings import Level
from nova_perfvm.measure import nova_conf
from nova_perfvm.measure.checks import host as checks
from nova_perfvm.measure.checks import report
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.policy import loader
from tests.guest import hypervisor, machine

POLICY = """\
schema_version: "1.0"
host_shape: 2x4
classes:
  high-performance:
    vcpus: 4
    cpu_policy: dedicated
    numa_nodes: 1
    max_per_host: 2
    exclusive: host
    vif_multiqueue: true
    disk: {source: volume}
    flavors: {name: "hp.{vcpus}c.{memory_gb}g", memory_gb: [1]}
  general: {default: true}
"""
DEDICATED = "[compute]\ncpu_dedicated_set = 0-7\n"
# Those that are about nodes, threads, cgroups and pages.
CODES = (
    *("node_shape", "memoryless_nodes", "smt", "cpu_sets", "vcpu_pins", "numatune"),
    *("emulator_pin", "iothread_pin", "threads_allowed", "cpuset_cgroup"),
    *("memory_local", "huge_pages", "interface_queues", "class_rules"),
)
A, B = "instance-00000001", "instance-00000002"
FAIL, WARN, PASS, SKIP = Level.FAILURE, Level.WARNING, Level.OK, Level.UNKNOWN
NOTE = Level.NOTE
# A VM of huge pages and one without; VMs own all CPUs, as their class is as large as
# a node.  No disk uses the I/O thread that Nova gives each VM.
SOUND = {
    ("huge_pages", A): SKIP,
    ("cpu_sets", "host"): WARN,
    ("iothread_pin", A): NOTE,
    ("iothread_pin", B): NOTE,
}


class TwoNodesTest(machine.GuestCase):
    """Cgroups of version 2, in which each vCPU has one, and all under a slice."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        more = (hypervisor.PACKAGES, hypervisor.MODULES)
        cls.host = cls.started(hypervisor.Hypervisor, *more)
        cls.policy = loader.parse(POLICY)

    def judged(self):
        """Return {(code, subject): its worst outcome}."""
        collected = self.host.collect()
        files = {**collected.files, nova_conf.PATH: DEDICATED}
        collected = dataclasses.replace(collected, files=files)
        subject = HostSubject(collected, self.policy)
        found = report.run(checks_of(checks), collected, subject)
        return {
            (code, outcome.subject): outcome
            for outcome in reversed(found.findings)
            if (code := outcome.code.removeprefix("hypervisor.")) in CODES
        }

    def assert_found(self, expected, found):
        """Look that all holds but for what is expected: {(code, subject): status}."""
        others = {key: one.level for key, one in found.items() if one.level != PASS}
        self.assertEqual(SOUND | expected, others, "\n".join(map(str, found.values())))

    def assert_says(self, words, found, code, subject):
        """Look at what is observed."""
        self.assertIn(words, found[code, subject].observed)

    def test_sound_then_at_fault_then_mended(self):
        """Each round mends what the round before has planted."""
        self.host.start(1, 2, hugepages=[2])
        self.a, self.b = self.host.vms[1], self.host.vms[2]
        self.look_at_sound_vms()
        self.move_the_memory_and_let_a_vcpu_float()
        self.move_huge_pages_and_let_own_threads_float()
        self.narrow_cpusets()
        self.share_a_cpu()
        self.stop_a_cpu()
        self.assert_found({}, self.judged())

    def look_at_sound_vms(self):
        found = self.judged()
        self.assert_found({}, found)
        # Each of them has been asked about both.
        self.assertEqual(set(CODES), {code for code, _ in found})
        for code in ("memory_local", "emulator_pin", "huge_pages", "threads_allowed"):
            self.assertLessEqual({(code, A), (code, B)}, found.keys())
        self.assert_says("2x4", found, "node_shape", "host")

    def move_the_memory_and_let_a_vcpu_float(self):
        host, a, b = self.host, self.a, self.b
        # The kernel moves none out of a cpuset.
        host.write(a.cpuset("emulator", "mems"), "0-1")
        host.shell(f"migratepages {a.pid} 0 1")
        host.write(b.cpuset("vcpu2", "cpus"), "4-7")
        found = self.judged()
        self.assert_found(
            {
                ("memory_local", A): FAIL,
                ("cpuset_cgroup", A): WARN,
                ("threads_allowed", B): FAIL,
            },
            found,
        )
        self.assert_says("0.00 %", found, "memory_local", A)
        self.assert_says("nodes 0-1", found, "cpuset_cgroup", A)
        observed = "vCPU 2 (CPU 2/KVM) may use CPUs 4-7"
        self.assert_says(observed, found, "threads_allowed", B)
        # The remedy, as it says.
        self.assertIn("migratepages PID FROM TO", found["memory_local", A].remedy)
        host.shell(f"migratepages {a.pid} 1 0")
        host.write(a.cpuset("emulator", "mems"), "0")
        host.write(b.cpuset("vcpu2", "cpus"), "6")

    def move_huge_pages_and_let_own_threads_float(self):
        host, a, b = self.host, self.a, self.b
        # vhost's thread of the kernel is in QEMU's cgroup, too.
        host.write(a.cpuset("emulator", "cpus"), "0-7")
        host.reserve(0)
        host.shell(f"migratepages {b.pid} 1 0")
        found = self.judged()
        self.assert_found(
            {("threads_allowed", A): FAIL, ("memory_local", B): FAIL}, found
        )
        self.assert_says("may use CPUs 0-7", found, "threads_allowed", A)
        self.assert_says("0.00 %", found, "memory_local", B)
        host.write(a.cpuset("emulator", "cpus"), "0-3")
        host.shell(f"migratepages {b.pid} 0 1")

    def narrow_cpusets(self):
        """A vCPU on another VM's CPU, and one with the other node's memory."""
        host, a, b = self.host, self.a, self.b
        host.write(a.cpuset("vcpu3", "cpus"), "4")
        host.write(b.cpuset("vcpu0", "mems"), "0")
        found = self.judged()
        self.assert_found(
            {
                ("threads_allowed", A): FAIL,
                ("cpuset_cgroup", A): FAIL,
                ("cpuset_cgroup", B): FAIL,
                # In version 2 all memory of a process follows any of its threads.
                ("memory_local", B): FAIL,
            },
            found,
        )
        observed = "vCPU 3 has CPU 3, its cpuset 4"
        self.assert_says(observed, found, "cpuset_cgroup", A)
        observed = "vCPU 3 (CPU 3/KVM) may use CPUs 4"
        self.assert_says(observed, found, "threads_allowed", A)
        host.write(b.cpuset("vcpu0", "mems"), "1")

    def share_a_cpu(self):
        """The same for libvirt, too: what was asked for is done, and is wrong."""
        host, a = self.host, self.a
        host.describe(1, [0, 1, 2, 4])
        found = self.judged()
        pins = {
            subject
            for (code, subject), one in found.items()
            if code == "vcpu_pins" and one.level == FAIL
        }
        self.assertEqual({A, B}, pins)
        for observed in (f"shares CPUs 4 with {B}", "on NUMA nodes 0-1"):
            self.assert_says(observed, found, "vcpu_pins", A)
        self.assertEqual(PASS, found["threads_allowed", A].level)
        host.describe(1)
        host.write(a.cpuset("vcpu3", "cpus"), "3")

    def stop_a_cpu(self):
        """When its vCPU moves, and where to, is up to the kernel."""
        online = "/sys/devices/system/cpu/cpu7/online"
        self.host.write(online, "0")
        found = self.judged()
        self.assertEqual(FAIL, found["node_shape", "host"].level)
        self.assertEqual(FAIL, found["cpu_sets", "host"].level)
        self.assert_says("CPUs 7 do not run", found, "cpu_sets", "host")
        self.host.write(online, "1")
        self.host.await_allowed(self.b.threads["CPU 3/KVM"], "7")

# SPDX-License-Identifier: Apache-2.0
"""A real process of QEMU, judged as a pinned VM of this machine.

libvirt is pretended; threads, affinities, cgroups and pages are the kernel's own.
"""

import dataclasses
import os
import shutil
import subprocess
import time

import testtools

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.measure import collector, reading
from nova_perfvm.measure.checks import host as package
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collected import CommandOutput
from nova_perfvm.measure.observed import domains, processes
from nova_perfvm.measure.observed.processes import Role
from nova_perfvm.measure.outcome import Status

QEMU = "qemu-system-x86_64"
UUID = "7e7e7e7e-1111-4222-8333-777777777777"
MEMORY_MB = 64
PATIENCE_S = 60
CHECKS = {check.code: check for check in checks_of(package)}


def domain_xml(cpus, node):
    pins = "".join(
        f"<vcpupin vcpu='{vcpu}' cpuset='{cpu}'/>" for vcpu, cpu in enumerate(cpus)
    )
    own = format_cpus(cpus)
    return f"""\
<domain type='qemu' id='1'><name>vm</name><uuid>{UUID}</uuid>
<memory unit='MiB'>{MEMORY_MB}</memory><vcpu>{len(cpus)}</vcpu>
<iothreads>1</iothreads>
<cputune>{pins}<emulatorpin cpuset='{own}'/>
<iothreadpin iothread='1' cpuset='{own}'/></cputune>
<numatune><memory mode='strict' nodeset='{node}'/></numatune></domain>"""


class RealProcessTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        if shutil.which(QEMU) is None:
            self.skipTest(f"{QEMU} is not installed")
        self.cpus = sorted(os.sched_getaffinity(0))[:2]
        self.process = subprocess.Popen(
            [
                *(QEMU, "-name", "guest=vm,debug-threads=on", "-uuid", UUID),
                *("-M", "q35,memory-backend=ram", "-accel", "tcg,thread=multi"),
                *("-smp", str(len(self.cpus)), "-m", str(MEMORY_MB)),
                "-object",
                f"memory-backend-ram,id=ram,size={MEMORY_MB}M,prealloc=on",
                *("-object", "iothread,id=iothread1"),
                *("-display", "none", "-nodefaults", "-no-user-config"),
            ]
        )
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.threads = self.wait_for_threads()

    def collect(self):
        host = reading.loads(collector.dumps(collector.collect("host", 0)), "here")
        node = 0
        for candidate in range(8):
            path = f"/sys/devices/system/node/node{candidate}/cpulist"
            if path in host.files:
                node = candidate
                break
        xml = domain_xml(self.cpus, node)
        commands = {
            domains.LIST: CommandOutput(0, f"{UUID}\n"),
            domains.dumpxml(UUID): CommandOutput(0, xml),
        }
        unread = {k: v for k, v in host.unread.items() if k != "/proc"}
        return dataclasses.replace(host, commands=commands, unread=unread)

    def wait_for_threads(self):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            for one in processes.read(self.collect()):
                if one.uuid == UUID and len(one.of(Role.VCPU)) == len(self.cpus):
                    return one
            time.sleep(0.2)
        raise AssertionError("QEMU has not started its vCPUs")

    def statuses(self, code):
        outcomes = CHECKS[f"hypervisor.{code}"].outcomes(HostSubject(self.collect()))
        return {one.subject: one.status for one in outcomes}

    def bind(self, task, cpus):
        os.sched_setaffinity(int(task.path.rpartition("/")[2]), cpus)

    def test_threads(self):
        if len(self.cpus) < 2:
            self.skipTest("one CPU: every thread is where it should be")
        # As QEMU starts them, vCPUs float.
        self.assertEqual(Status.FAIL, self.statuses("threads_allowed")["vm: vCPUs"])
        for task in self.threads.of(Role.VCPU):
            self.bind(task, {self.cpus[task.number]})
        for task in (*self.threads.of(Role.EMULATOR), *self.threads.of(Role.IOTHREAD)):
            self.bind(task, set(self.cpus))
        self.assertEqual(
            {
                "vm: vCPUs": Status.PASS,
                "vm: I/O threads": Status.PASS,
                "vm: emulator threads": Status.PASS,
            },
            self.statuses("threads_allowed"),
        )
        # Each on a CPU of its own, but the wrong one.
        for task in self.threads.of(Role.VCPU):
            self.bind(task, {self.cpus[1 - task.number]})
        self.assertEqual(Status.FAIL, self.statuses("threads_allowed")["vm: vCPUs"])

    def test_memory(self):
        host = self.collect()
        subject = HostSubject(host)
        memory = processes.memory(host, self.threads)
        self.assertGreaterEqual(sum(memory.by_node.values()), MEMORY_MB * 1024)
        if len(subject.nodes) == 1:
            self.assertEqual({"vm": Status.PASS}, self.statuses("memory_local"))

    def test_cgroups(self):
        # Whichever version this machine has.
        found = processes.cpu_set(self.collect(), self.threads.path)
        self.assertLessEqual(set(self.cpus), found.cpus)
        self.assertEqual(Status.PASS, self.statuses("cpuset_cgroup")["vm: CPUs"])

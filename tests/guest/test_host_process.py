# SPDX-License-Identifier: Apache-2.0
"""A real process of QEMU, judged as a pinned VM of this machine.

libvirt is pretended; threads, affinities, cgroups and pages are the kernel's own.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time

import fixtures
import testtools

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks import host as package
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.checks.wait_limits import WARN_ABOVE
from nova_perfvm.measure.collect import collector, reading
from nova_perfvm.measure.collect.collected import CommandOutput
from nova_perfvm.measure.observed import cgroups, domains, processes, schedstat
from nova_perfvm.measure.observed.processes import Role

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


class QEMUCase(testtools.TestCase):
    """QEMU with a vCPU for each of some CPUs; it starts nothing but its BIOS."""

    VCPUS = 2

    def setUp(self):
        super().setUp()
        if shutil.which(QEMU) is None:
            self.skipTest(f"{QEMU} is not installed")
        self.cpus = sorted(os.sched_getaffinity(0))[: self.VCPUS]
        self.process = subprocess.Popen(
            [
                *(QEMU, "-name", "guest=vm,debug-threads=on", "-uuid", UUID),
                *("-M", "q35,memory-backend=ram", "-accel", "tcg,thread=multi"),
                *("-smp", str(len(self.cpus)), "-m", str(MEMORY_MB)),
                "-object",
                f"memory-backend-ram,id=ram,size={MEMORY_MB}M,prealloc=on",
                *("-object", "iothread,id=iothread1"),
                *("-display", "none", "-nodefaults", "-no-user-config"),
                *self.disk(),
            ]
        )
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.threads = self.wait_for_threads()

    def disk(self):
        return ()

    def collect(self, interval_s=0):
        document = collector.collect("host", interval_s)
        host = reading.loads(collector.dumps(document), "here")
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

    def statuses(self, code, host=None):
        """Return {subject: its worst level}."""
        subject = HostSubject(host or self.collect())
        outcomes = CHECKS[f"hypervisor.{code}"].findings(subject)
        worst_last = sorted(outcomes, key=lambda one: one.level)
        return {one.subject: one.level for one in worst_last}

    def bind(self, task, cpus):
        os.sched_setaffinity(int(task.path.rpartition("/")[2]), cpus)


class RealProcessTest(QEMUCase):
    def test_threads(self):
        if len(self.cpus) < 2:
            self.skipTest("one CPU: every thread is where it should be")
        # As QEMU starts them, vCPUs float.
        self.assertEqual(Level.FAILURE, self.statuses("threads_allowed")["vm"])
        for task in self.threads.of(Role.VCPU):
            self.bind(task, {self.cpus[task.number]})
        for task in (*self.threads.of(Role.EMULATOR), *self.threads.of(Role.IOTHREAD)):
            self.bind(task, set(self.cpus))
        self.assertEqual({"vm": Level.OK}, self.statuses("threads_allowed"))
        # Each on a CPU of its own, but the wrong one.
        for task in self.threads.of(Role.VCPU):
            self.bind(task, {self.cpus[1 - task.number]})
        self.assertEqual(Level.FAILURE, self.statuses("threads_allowed")["vm"])

    def test_memory(self):
        host = self.collect()
        subject = HostSubject(host)
        memory = processes.memory(host, self.threads)
        self.assertGreaterEqual(sum(memory.by_node.values()), MEMORY_MB * 1024)
        if len(subject.nodes) == 1:
            self.assertEqual({"vm": Level.OK}, self.statuses("memory_local"))

    def test_cgroups(self):
        # Whichever version this machine has.
        found = cgroups.cpu_set(self.collect(), self.threads.path)
        self.assertLessEqual(set(self.cpus), found.cpus)
        self.assertEqual(Level.OK, self.statuses("cpuset_cgroup")["vm"])


class BusyTest(QEMUCase):
    """A vCPU that never rests, alone on its CPU and not."""

    VCPUS = 1
    INTERVAL_S = 2
    # A boot sector: jmp to itself, nothing, and the mark that makes it one.
    LOOP = b"\xeb\xfe".ljust(510, b"\0") + b"\x55\xaa"

    def disk(self):
        directory = self.useFixture(fixtures.TempDir()).path
        path = pathlib.Path(directory, "loop.img")
        path.write_bytes(self.LOOP.ljust(1024 * 1024, b"\0"))
        return ("-drive", f"file={path},format=raw,if=ide,snapshot=on")

    def setUp(self):
        super().setUp()
        (self.vcpu,) = self.threads.of(Role.VCPU)
        self.bind(self.vcpu, set(self.cpus))
        if "0 0 0" in pathlib.Path(self.vcpu.path, schedstat.NAME).read_text():
            self.skipTest("this kernel counts nothing (CONFIG_SCHED_INFO)")
        end = time.monotonic() + PATIENCE_S
        while self.active_share(self.collect(self.INTERVAL_S)) < 0.9:
            self.assertLess(time.monotonic(), end, "the guest does not run its loop")

    def scheduled(self, host):
        return schedstat.read(host, self.vcpu.path)

    def active_share(self, host):
        """Return the part of the time that it ran or was ready to."""
        did = self.scheduled(host)
        return (did.ran_ns + did.waited_ns) / 1e9 / host.interval_s

    def look(self):
        """Return what part of its time the vCPU waited, and the verdict."""
        host = self.collect(self.INTERVAL_S)
        did = self.scheduled(host)
        share = did.waited_ns / (did.ran_ns + did.waited_ns)
        return share, self.statuses("vcpu_wait", host)["vm"]

    def look_beside_another(self):
        loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            os.sched_setaffinity(loop.pid, set(self.cpus))
            return self.look()
        finally:
            loop.kill()
            loop.wait()

    def test_waiting(self):
        alone, beside = [], []
        # The machine has other work at times: the least of each is compared.
        for _ in range(3):
            alone.append(self.look())
            beside.append(self.look_beside_another())
        self.assertEqual({Level.FAILURE}, {status for _, status in beside})
        self.assertLess(
            min(share for share, _ in alone), min(share for share, _ in beside)
        )
        for share, status in alone:
            if share < WARN_ABOVE / 2:
                self.assertEqual(Level.OK, status)

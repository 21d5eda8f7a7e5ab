# SPDX-License-Identifier: Apache-2.0
"""What the kernel says of QEMU's processes."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import time

import fixtures
import testtools

from nova_perfvm.measure.collect import collector, reading
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import cgroups, processes
from nova_perfvm.measure.observed.processes import Role
from tests.unit.measure import hosts

PID = hosts.FIRST_PID + 100


def of(files, **rest):
    return Collected("host", "h", "2026-11-22T10:00:00+00:00", files=files, **rest)


class ProcessTest(testtools.TestCase):
    def test_threads(self):
        first, second = processes.read(hosts.host())
        self.assertEqual((PID, hosts.UUIDS[0]), (first.pid, first.uuid))
        self.assertEqual(hosts.UUIDS[1], second.uuid)
        self.assertEqual(list(range(20)), [task.number for task in first.of(Role.VCPU)])
        self.assertEqual([1], [task.number for task in first.of(Role.IOTHREAD)])
        self.assertEqual(PID + 2, first.of(Role.VHOST)[0].number)
        self.assertEqual(20, len(first.of(Role.VHOST)))
        self.assertEqual([PID], [task.number for task in first.of(Role.EMULATOR)])

    def test_names_of_threads(self):
        for comm, role, number in (
            ("CPU 17/KVM", Role.VCPU, 17),
            ("CPU 0/TCG", Role.VCPU, 0),
            ("IO iothread12", Role.IOTHREAD, 12),
            ("IO mon_iothread", Role.EMULATOR, 8),
            ("vhost-7", Role.VHOST, 8),
            ("vnc_worker", Role.EMULATOR, 8),
            ("CPU-like", Role.EMULATOR, 8),
            ("kvm-nx-lpage-re", Role.KVM, 8),
        ):
            files = {"/proc/7/comm": "kvm\n", "/proc/7/task/8/comm": f"{comm}\n"}
            ((task,),) = [process.tasks for process in processes.read(of(files))]
            self.assertEqual((role, number), (task.role, task.number), comm)

    def test_threads_of_the_kernel(self):
        files = {"/proc/7/comm": "kvm\n", "/proc/9/comm": "vhost-7\n"}
        (process,) = processes.read(of(files))
        (task,) = process.of(Role.VHOST)
        self.assertEqual("/proc/9", task.path)

    def memory(self, text):
        host = of({"/proc/7/comm": "kvm\n", "/proc/7/numa_maps": text})
        (process,) = processes.read(host)
        return processes.memory(host, process)

    def test_memory(self):
        found = self.memory(
            "55d0 default file=/usr/bin/qemu mapped=9 N0=900 kernelpagesize_kB=4\n"
            "7f01 bind:0 anon=3 dirty=3 N0=2 N1=1 kernelpagesize_kB=4\n"
            "7f02 bind:1 file=/dev/hugepages/libvirt/ram huge dirty=4 N1=4 "
            "kernelpagesize_kB=2048\n"
            "7f03 prefer:1 file=/memfd:ram\\040(deleted) N1=5 kernelpagesize_kB=4\n"
            "7f04 default heap anon=1 N0=1 kernelpagesize_kB=4\n"
            "7f05 default stack\n"
            "7f06 default file=/var/lib/libvirt/qemu/ram/1/pc N0=1 "
            "kernelpagesize_kB=4\n"
        )
        self.assertEqual({0: 16, 1: 4 + 8192 + 20}, found.by_node)
        self.assertEqual({4: 40, 2048: 8192}, found.by_page)

    def test_memory_that_nobody_can_tell(self):
        for text in (
            "",
            "7f01",
            "7f01 default\n",
            "7f02 default huge N0=4\n",
            "7f02 default anon=4 N0=4 kernelpagesize_kB=\n",
            "7f02 default anon=4 N0=x kernelpagesize_kB=4\n",
            f"7f02 default anon=4 N0={'9' * 5000} kernelpagesize_kB=4\n",
        ):
            self.assertRaises(NotReadError, self.memory, text)
        # Before Linux 3.14 small pages did not tell their size.
        self.assertEqual({0: 12}, self.memory("7f01 default anon=3 N0=3\n").by_node)

    def test_status(self):
        path = "/proc/7"
        host = of({f"{path}/status": hosts.status("kvm", "0-3,9", "1")})
        self.assertEqual({0, 1, 2, 3, 9}, processes.allowed_cpus(host, path))
        cut_off = "Name:\tkvm\nCpus_allowed_li"
        for text in ("", "Cpus_allowed_list:\tx\n", "Cpus_allowed_list:\t\n", cut_off):
            bad = of({f"{path}/status": text})
            self.assertRaises(NotReadError, processes.allowed_cpus, bad, path)

    def test_cgroups(self):
        cpus, mems = "cpuset.cpus", "cpuset.mems"
        one = "/sys/fs/cgroup/cpuset/vm"
        two = "/sys/fs/cgroup/vm"
        for cgroup, files, source in (
            (
                "9:memory:/x\n5:cpu,cpuset:/vm/vcpu0\n0::/other\n",
                {f"{one}/vcpu0/{cpus}": "3", f"{one}/vcpu0/{mems}": "0"},
                f"{one}/vcpu0",
            ),
            (
                "0::/vm/vcpu0\n",
                {f"{two}/{cpus}.effective": "3", f"{two}/{mems}.effective": "0"},
                two,
            ),
            (
                "0::/\n",
                {
                    "/sys/fs/cgroup/cpuset.cpus.effective": "3",
                    "/sys/fs/cgroup/cpuset.mems.effective": "0",
                },
                "/sys/fs/cgroup",
            ),
        ):
            host = of({"/proc/7/cgroup": cgroup, **files})
            found = cgroups.cpu_set(host, "/proc/7")
            self.assertEqual(({3}, {0}, source), tuple(found))
        for cgroup in ("", "9:memory:/x\n", "0::/vm\n"):
            host = of({"/proc/7/cgroup": cgroup})
            self.assertRaises(NotReadError, cgroups.cpu_set, host, "/proc/7")


class RealProcessTest(testtools.TestCase):
    """A process of this machine that is called like QEMU."""

    def test_what_the_kernel_of_this_machine_says(self):
        if not pathlib.Path("/proc/self/numa_maps").exists():
            self.skipTest("this kernel has no NUMA")
        directory = self.useFixture(fixtures.TempDir()).path
        program = shutil.copy(shutil.which("sleep"), f"{directory}/qemu-sleep")
        cpu = min(os.sched_getaffinity(0))
        process = subprocess.Popen([program, "60"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.sched_setaffinity(process.pid, {cpu})
        # Popen() returns a moment before the kernel gives it its name.
        name = pathlib.Path(f"/proc/{process.pid}/comm")
        while process.poll() is None and name.read_text() != "qemu-sleep\n":
            time.sleep(0.01)
        document = collector.collect("host", 0)
        host = reading.loads(collector.dumps(document), "this machine")
        # It may be a machine that hides the processes of others.
        seen = dataclasses.replace(host, unread={})
        found = {one.pid: one for one in processes.read(seen)}
        one = found[process.pid]
        self.assertEqual("", one.uuid)
        (task,) = one.of(Role.EMULATOR)
        self.assertEqual({cpu}, processes.allowed_cpus(host, task.path))
        memory = processes.memory(host, one)
        self.assertGreater(sum(memory.by_node.values()), 0)

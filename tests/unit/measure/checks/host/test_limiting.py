# SPDX-License-Identifier: Apache-2.0
"""Checks of a VM's CPU, devices and memory, and of what limits them."""

from dataclasses import replace

import testtools

from nova_perfvm.findings import Level
from nova_perfvm.measure.observed import cpu_flags
from nova_perfvm.policy.classes import Disk
from tests.unit.measure import hosts
from tests.unit.measure.checks.host.case import (
    FAIL,
    FIRST,
    PASS,
    PROC,
    SCOPE,
    SKIP,
    UUIDS,
    WARN,
    HostCase,
    changed,
    findings,
    having,
    with_class,
)

GB = 2**20
DRIVER = "cache='none' io='native'/>"
SOURCE = "<source dev='/dev/nvme1n1' index='1'/>"


class CPUTest(HostCase):
    def test_what_is_sound(self):
        """A mode that QEMU knows, and what the host does not have either."""
        path = f"{PROC}/cmdline"
        own = (
            hosts.host()
            .files[path]
            .replace("Cascadelake-Server,", "host,migratable=on,")
        )
        model = "<model fallback='forbid'>Cascadelake-Server</model>"
        through = having(
            hosts.edited(
                hosts.host(),
                1,
                ("mode='custom' match='exact' check='full'", "mode='host-passthrough'"),
                (model, ""),
            ),
            {path: own},
        )
        whole = hosts.host().files[path]
        plugged = whole.replace("\x0020,sockets", "\x0012,maxcpus=20,sockets")
        old = whole.replace("-accel\0kvm\0", "").replace("usb=off", "accel=kvm,usb=off")
        self.assert_cases(
            "virtual_cpu",
            (PASS, "*", "", {}),
            (PASS, FIRST, "", through),
            (PASS, FIRST, "", ("name='hle'", "name='amx-tile'")),
            (PASS, FIRST, "", {path: plugged}),
            (PASS, FIRST, "", {path: old}),
        )

    def test_caches_that_the_guest_sees(self):
        path = f"{PROC}/cmdline"
        whole = hosts.host().files[path]
        for more, status in (
            ("l3-cache=off", WARN),
            ("host-cache-info=on,l3-cache=off", PASS),
        ):
            told = {path: whole.replace(",rtm=off", f",rtm=off,{more}")}
            self.assert_cases("virtual_cpu", (status, FIRST, "", told))

    def test_names_of_features(self):
        for libvirt, kernel in (
            ("tsc-deadline", "tsc_deadline_timer"),
            ("sse4.2", "sse4_2"),
            ("avx512vnni", "avx512_vnni"),
            ("avx512ifma", "avx512ifma"),
            ("lzcnt", "abm"),
            ("hle", "hle"),
        ):
            self.assertEqual(kernel, cpu_flags.kernel_name(libvirt))


class LimitsTest(HostCase):
    def test_cpu_limits(self):
        scope = f"{SCOPE.removesuffix('/libvirt')}/cpu.weight"
        task = f"{PROC}/task/{PROC.rpartition('/')[2]}"
        realtime = {f"{task}/stat": hosts.task_stat(1, "q) (x", policy=1)}
        free = {"/proc/sys/kernel/sched_rt_runtime_us": "-1\n"}
        none = ("<cputune>", "<cputune><quota>-1</quota><shares>20480</shares>")
        old = {f"virsh -r schedinfo {UUIDS[0]}": None}
        commands = {k: v for k, v in hosts.host().commands.items() if k not in old}
        lone = {
            path: "0::/\n"
            for path in hosts.host().files
            if path.startswith(f"{PROC}/") and path.endswith("/cgroup")
        }
        self.assert_cases(
            "cpu_limits",
            (PASS, "*", "", {}),
            (PASS, FIRST, "", none),
            # The cgroups tell it, too.
            (PASS, FIRST, "", replace(hosts.host(), commands=commands)),
            (PASS, FIRST, "", lone),
            (WARN, FIRST, "cpu.weight: 1", {scope: "1\n"}),
            (PASS, FIRST, "", {scope: "10000\n"}),
            (WARN, FIRST, "real time", realtime),
            (PASS, FIRST, "", realtime | free),
            (SKIP, FIRST, "read only once", replace(hosts.host(), later={})),
        )

    def test_limits_that_the_policy_asks_for(self):
        policy = with_class(disk=Disk(read_iops=20000, write_iops=10000))

        def tuned(**limits):
            text = "".join(f"<{n}>{value}</{n}>" for n, value in limits.items())
            return (SOURCE, f"{SOURCE}<iotune>{text}</iotune>")

        disk = FIRST
        self.assert_cases(
            "io_limits",
            (
                PASS,
                disk,
                "",
                tuned(read_iops_sec=20000, write_iops_sec=12000),
            ),
            (PASS, disk, "", tuned(total_iops_sec=30000)),
            (FAIL, disk, "total_iops_sec 29999", tuned(total_iops_sec=29999)),
            (WARN, disk, "no limit", {}),
            (WARN, disk, "no limit", tuned(total_iops_sec=0)),
            policy=policy,
        )
        self.assert_cases(
            "io_limits",
            (PASS, "*", "", {}),
            (FAIL, disk, "read_iops_sec", tuned(read_iops_sec=10**6)),
        )


class DevicesTest(HostCase):
    def test_what_is_no_fault(self):
        rbd = ("type='block' device='disk'", "type='network' device='disk'")
        cached = (DRIVER, DRIVER.replace("none", "writeback"))
        cdrom = (
            "<interface ",
            (
                "<disk type='file' device='cdrom'><driver cache='writeback'/>"
                "<target dev='sda' bus='sata'/></disk><interface "
            ),
        )
        scsi = (
            "bus='virtio'/>",
            (
                "bus='scsi'/><serial>volume</serial></disk>"
                "<controller type='scsi' model='virtio-scsi'>"
                "<driver queues='20'/>"
                "</controller><disk device='cdrom'>"
            ),
        )
        number = PROC.rpartition("/")[2]
        thread = f"{PROC}/task/{int(number) + 2}/status"
        away = {thread: hosts.status("vhost", "41", 0)}
        hidden = ("<apic/>", "<kvm><hidden state='on'/></kvm>")
        self.assert_cases(
            "virtual_devices",
            (PASS, "*", "", {}),
            (PASS, "*", "", cdrom),
            (PASS, FIRST, "", scsi),
            (
                WARN,
                FIRST,
                "4",
                (DRIVER, DRIVER.replace("/", " queues='4'/")),
            ),
            (
                WARN,
                FIRST,
                "",
                hosts.edited(hosts.host(), 1, rbd, cached),
            ),
            (
                WARN,
                FIRST,
                "",
                (DRIVER, DRIVER.replace("none", "directsync")),
            ),
            (
                WARN,
                FIRST,
                "threads",
                (DRIVER, DRIVER.replace("native", "threads")),
            ),
            (
                WARN,
                FIRST,
                "timer",
                ("name='vhost'", "name='vhost' txmode='timer'"),
            ),
            (WARN, FIRST, "hidden", hidden),
            (
                WARN,
                FIRST,
                "copy_on_read",
                (DRIVER, DRIVER.replace("cache", "copy_on_read='on' cache")),
            ),
            (WARN, FIRST, "ioeventfd", (DRIVER, f"ioeventfd='off' {DRIVER}")),
            (WARN, FIRST, "vhost may run on node 1", away),
            (
                WARN,
                FIRST,
                "encrypted",
                ("<devices>", "<launchSecurity/><devices>"),
            ),
        )

    def test_machine_types(self):
        """Of those from QEMU 5.2 on a disk has a queue for each vCPU."""
        for machine, status in (
            *((m, PASS) for m in ("pc-i440fx-5.2", "pc-q35-10.0", "pc-q35-rhel8.4.0")),
            *(
                (m, PASS)
                for m in ("pc-i440fx-rhel10.0.0", "pc-i440fx-noble", "virt-9.2")
            ),
            *(
                (m, FAIL)
                for m in ("pc-i440fx-2.11", "pc-q35-rhel8.3.0", "pc-i440fx-focal")
            ),
            ("of-nobody", PASS),
        ):
            host = changed(("machine='pc-q35-9.2'", f"machine='{machine}'"))
            found = findings("hypervisor.virtual_devices", host)
            told = {one.level for one in found if one.subject == FIRST}
            self.assertEqual({status}, told, machine)

    def test_notes(self):
        host = changed(("<backingStore/>", "<encryption format='luks'/><mirror/>"))
        found = findings("hypervisor.virtual_devices", host)
        (note,) = [one for one in found if one.level is Level.NOTE]
        self.assertEqual(
            "vda: QEMU encrypts it; vda: a block job copies it", note.observed
        )


class MemoryTest(HostCase):
    def test_memory_whole(self):
        maps = f"{PROC}/numa_maps"
        self.assert_cases(
            "memory_whole",
            (PASS, "*", "", {}),
            (
                PASS,
                FIRST,
                "",
                {maps: hosts.numa_maps({0: 120 * GB})},
            ),
            (SKIP, FIRST, "1.00 GiB of", {maps: hosts.numa_maps({0: GB})}),
            (
                FAIL,
                FIRST,
                "64.00 GiB of",
                (f">{128 * GB}</current", f">{64 * GB}</current"),
            ),
        )

    def test_two_cells(self):
        cell = "<cell id='0' cpus='0-19' memory='134217728' unit='KiB'/>"
        cells = "".join(
            f"<cell id='{n}' cpus='{cpus}' memory='64' unit='GiB'/>"
            for n, cpus in enumerate(("0-9", "10-19"))
        )
        pins = [str(cpu) for cpu in (*range(10), *range(20, 30))]
        host = hosts.with_domains(
            hosts.host(vms=1), vm1=hosts.domain_xml(1, pins).replace(cell, cells)
        )
        for near, far, status in ((64, 64, PASS), (65, 64, PASS), (126, 2, FAIL)):
            maps = hosts.numa_maps({0: near * GB, 1: far * GB})
            found = having(host, {f"{PROC}/numa_maps": maps})
            self.assert_cases("memory_local", (status, FIRST, "", found))


class KVMThreadTest(testtools.TestCase):
    def test_kvms_own_thread_is_no_stray(self):
        """Made by a vCPU before libvirt has bound it, it may run anywhere."""
        task = f"{PROC}/task/4999"
        for comm in ("kvm-nx-lpage-re", "kvm-pit/4100"):
            files = {
                f"{task}/comm": f"{comm}\n",
                f"{task}/stat": hosts.task_stat(4999, comm),
                f"{task}/status": hosts.status(comm, "0-39", "0-1"),
                f"{task}/cgroup": hosts.host().files[f"{PROC}/cgroup"],
            }
            for code in ("threads_allowed", "emulator_pin", "cpu_limits"):
                found = findings(f"hypervisor.{code}", having(hosts.host(), files))
                self.assertEqual({PASS}, {one.level for one in found}, found)

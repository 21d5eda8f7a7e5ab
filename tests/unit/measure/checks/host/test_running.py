# SPDX-License-Identifier: Apache-2.0
"""Checks of what the kernel does: threads, cgroups, pages, interrupts, settings."""

from tests.unit.measure import guests, hosts
from tests.unit.measure.checks.host.case import (
    CONF,
    FAIL,
    FIRST,
    PASS,
    PID,
    PROC,
    SCOPE,
    SKIP,
    WARN,
    HostCase,
    having,
    with_class,
)
from tests.unit.measure.hosts import CPU


class VcpuWaitTest(HostCase):
    code = "vcpu_wait"

    def counted(self, ran_s, waited_s, vcpu=3, **more):
        """Return a host of whose first VM a vCPU ran and waited so long."""
        path = f"{PROC}/task/{PID + 10 + vcpu}/schedstat"
        host = hosts.host()
        later = {path: hosts.schedstat(100 + ran_s, 0.5 + waited_s)}
        return having(host, later={**host.later, **later}, **more)

    def test_the_vcpu_that_waits_most(self):
        for waited_s, status in ((0, PASS), (0.1, PASS), (0.2, WARN), (0.6, FAIL)):
            host = self.counted(1, waited_s)
            self.assert_found(status, FIRST, collected=host)
            self.assertEqual(PASS, self.statuses(host)["instance-00000002"])
        # Enough to tell; and one that waits is told however little it ran.
        self.assert_found(PASS, FIRST, collected=self.counted(0.45, 0.06))
        self.assert_found(WARN, FIRST, collected=self.counted(0.002, 0.2))
        found = self.assert_found(FAIL, FIRST, collected=self.counted(1, 0.6))
        self.assertEqual(
            "vCPU 3 waited 6.0% of 10 s for a CPU, all 0.4%", found.observed
        )

    def test_what_tells_nothing(self):
        path = f"{PROC}/task/{PID + 13}/schedstat"
        host = hosts.host()
        once = {p: text for p, text in host.later.items() if p != path}
        zeros = {path: "0 0 0\n"}
        for words, blind in (
            ("less than 5% of the time between the looks (3)", self.counted(0, 0)),
            # It waited for four fifths of what it asked for.
            ("1 of 20 vCPUs asked for less", self.counted(0.002, 0.008)),
            ("(3): put load on it", self.counted(0.45, 0.04)),
            ("it was read only once", having(host, later=once)),
            ("it was not collected", having(host, {path: None})),
            ("counts nothing", having(host, zeros, later=host.later | zeros)),
            ("three numbers", having(host, {path: "1 2\n"})),
            ("backwards", self.counted(-1, 0)),
            ("is not known", having(host, interval_s=0)),
            ("19 of 20 threads", having(host, {path[:-9] + "comm": "x\n"})),
        ):
            self.assert_found(SKIP, FIRST, words, collected=blind)
        # What is seen of the others counts nevertheless.
        waiting = self.counted(1, 3, vcpu=4)
        self.assert_found(FAIL, FIRST, collected=having(waiting, {path: None}))


class ThreadsAllowedTest(HostCase):
    code = "threads_allowed"

    def moved(self, task, cpus, host=None):
        path = f"{PROC}/task/{PID + task}/status"
        return having(host or hosts.host(), {path: hosts.status("x", cpus, "0")})

    def test_threads_elsewhere(self):
        for task, cpus, status, subject in (
            (13, "3-4", FAIL, "vCPUs"),
            (13, "0-41", FAIL, "vCPUs"),
            (13, "7", FAIL, "vCPUs"),
            (0, "0-20", FAIL, "emulator threads"),
            (0, "0-19,41", WARN, "emulator threads"),
            (1, "0-41", FAIL, "I/O threads"),
            (2, "0-41", FAIL, "vhost threads"),
            (2, "40-41", WARN, "vhost threads"),
        ):
            with self.subTest(task=task, cpus=cpus):
                host = self.moved(task, cpus)
                self.assert_found(
                    status, f"{FIRST}: {subject}", f"CPUs {cpus}", collected=host
                )

    def test_vhost_as_a_thread_of_the_kernel(self):
        task = f"{PROC}/task/{PID + 2}"
        dropped = {f"{task}/{name}": None for name in ("comm", "status", "cgroup")}
        own = {"/proc/77/comm": f"vhost-{PID}\n"}
        for cpus, status in (("0-19", PASS), ("0-41", FAIL)):
            files = {"/proc/77/status": hosts.status("vhost", cpus, "0-1")}
            host = having(hosts.host(), dropped | own | files)
            one = self.assert_found(status, f"{FIRST}: vhost threads", collected=host)
            self.assertTrue(one.source.startswith("/proc/77/status"))
        host = having(hosts.host(), dropped)
        self.assert_found(SKIP, f"{FIRST}: vhost threads", collected=host)

    def test_what_was_not_read(self):
        path = f"{PROC}/task/{PID + 13}"
        host = having(hosts.host(), {f"{path}/status": None})
        self.assert_found(SKIP, f"{FIRST}: vCPUs", collected=host)
        host = having(hosts.host(), {f"{path}/comm": "qemu-system-x86\n"})
        self.assert_found(SKIP, f"{FIRST}: vCPUs", "19 of 20", collected=host)
        host = having(hosts.host(), {f"{PROC}/cmdline": "qemu\0-uuid\0"})
        self.assert_found(SKIP, FIRST, "no such process", collected=host)
        host = having(hosts.host(), unread={"/proc": "processes of others are hidden"})
        self.assert_all(SKIP, host)


class CPUSetCgroupTest(HostCase):
    code = "cpuset_cgroup"

    def test_a_cpuset_without_the_cpu(self):
        path = f"{SCOPE}/vcpu3/cpuset.cpus.effective"
        host = having(hosts.host(), {path: "4-41\n"})
        self.assert_found(FAIL, f"{FIRST}: CPUs", "4-41", collected=host)

    def test_memory_of_other_nodes(self):
        path = f"{SCOPE}/emulator/cpuset.mems.effective"
        for mems, status in (("0-1", WARN), ("1", FAIL)):
            host = having(hosts.host(), {path: f"{mems}\n"})
            self.assert_found(status, f"{FIRST}: memory", collected=host)

    def test_version_1(self):
        host = hosts.host()
        files = {
            path: text.replace("0::", "5:cpuset:")
            for path, text in host.files.items()
            if path.endswith("/cgroup")
        }
        for path, text in host.files.items():
            if path.startswith("/sys/fs/cgroup") and not path.endswith("effective"):
                files[path.replace("cgroup", "cgroup/cpuset", 1)] = text
            if path.startswith("/sys/fs/cgroup"):
                files[path] = None
        self.assert_all(PASS, having(host, files))

    def test_the_next_above(self):
        host = hosts.host()
        files = {path: None for path in host.files if path.startswith(SCOPE)}
        slice_ = "/sys/fs/cgroup/machine.slice/cpuset"
        files |= {f"{slice_}.cpus.effective": "0-41", f"{slice_}.mems.effective": "0-1"}
        host = having(host, files)
        self.assert_found(PASS, f"{FIRST}: CPUs", collected=host)
        self.assert_found(WARN, f"{FIRST}: memory", "0-1", collected=host)

    def test_what_was_not_read(self):
        files = {f"{PROC}/cgroup": None}
        self.assert_found(SKIP, FIRST, collected=having(hosts.host(), files))
        host = hosts.host()
        files = {path: None for path in host.files if "/sys/fs/cgroup" in path}
        self.assert_all(SKIP, having(host, files))


class MemoryLocalTest(HostCase):
    code = "memory_local"

    def split(self, remote, page_kb=4):
        kb = 128 * 2**20
        far = int(kb * remote) // page_kb * page_kb
        text = hosts.numa_maps({0: kb - far, 1: far}, page_kb)
        return having(hosts.host(), {f"{PROC}/numa_maps": text})

    def test_remote_pages(self):
        for remote, status, word in (
            (0.005, PASS, "99.5"),
            (0.02, FAIL, "98.0"),
            (0.0101, FAIL, "98.9"),
            (1, FAIL, "0.00 %"),
        ):
            for page_kb in (4, 2048):
                host = self.split(remote, page_kb)
                self.assert_found(status, FIRST, word, collected=host)

    def test_what_was_not_read(self):
        for text in (None, "", "7f2c40000000 default\n", "7f default huge N0=3\n"):
            host = having(hosts.host(), {f"{PROC}/numa_maps": text})
            self.assert_found(SKIP, FIRST, collected=host)


class HugePagesTest(HostCase):
    code = "huge_pages"

    def test_got_or_not(self):
        host = hosts.host(pages_kb=2048)
        self.assert_all(PASS, host)
        for text in (
            hosts.numa_maps({0: 128 * 2**20}),
            hosts.numa_maps({0: 64 * 2**20}, 2048),
            hosts.numa_maps({0: 128 * 2**20}, 1048576),
        ):
            found = having(host, {f"{PROC}/numa_maps": text})
            self.assert_found(FAIL, FIRST, collected=found)

    def test_promised_and_not_asked_for(self):
        self.assert_all(FAIL, hosts.host(), policy=with_class(mem_page_size="large"))
        self.assert_all(SKIP, hosts.host(), policy=with_class(mem_page_size="small"))


class InterfaceQueuesTest(HostCase):
    code = "interface_queues"
    subject = f"{FIRST}: tap1"

    def test_too_few(self):
        for queues in ("", " queues='8'"):
            host = hosts.edited(hosts.host(), 1, (" queues='20'", queues))
            self.assert_found(FAIL, self.subject, collected=host)

    def test_others(self):
        for change in (
            ("type='kvm'", "type='qemu'"),
            ("<interface type='bridge'>", "<interface type='hostdev'>"),
            ("<model type='virtio'/>", "<model type='e1000'/>"),
        ):
            host = hosts.edited(hosts.host(), 1, (" queues='20'", ""), change)
            self.assert_found(SKIP, self.subject, collected=host)
        self.assert_all(SKIP, hosts.host(), policy=with_class(vif_multiqueue=False))
        self.assert_all(SKIP, hosts.host(), policy=None)


class IRQAffinityTest(HostCase):
    code = "irq_affinity"

    def test_affinity(self):
        path = "/proc/irq/25/effective_affinity_list"
        host = having(hosts.host(), {path: "7\n"})
        self.assert_found(WARN, "affinity", "25 (mlx5_comp0", collected=host)
        host = having(hosts.host(), {path: None, path.replace("25", "24"): None})
        self.assert_found(PASS, "affinity", collected=host)
        host = having(host, {"/proc/irq/24/smp_affinity_list": "0-41\n"})
        self.assert_found(WARN, "affinity", collected=host)

    def fired(self, more, name="mlx5_comp0@pci:0000:00:03.0"):
        looks = [
            guests.interrupts([(name, {7: n, 41: 5 + n // 2})], 42)
            for n in (100, 100 + more)
        ]
        return having(
            hosts.host(),
            {"/proc/interrupts": looks[0]},
            later={"/proc/interrupts": looks[1]},
        )

    def test_fired(self):
        for more, status in ((50, PASS), (2000, WARN), (20000, FAIL), (0, SKIP)):
            self.assert_found(status, "fired", collected=self.fired(more))
        host = self.fired(20000)
        self.assert_found(FAIL, "fired", "2000 a second on CPU 7", collected=host)

    def test_what_tells_nothing_of_them(self):
        host = self.fired(20000, "vfio-msix[3](0000:00:03.0)")
        self.assert_all(SKIP, host)
        self.assert_found(SKIP, "fired", collected=having(hosts.host(), later={}))


class NICNodeTest(HostCase):
    code = "nic_node"

    def test_a_node_without_a_nic(self):
        net = "/sys/class/net/eth1"
        for files in (
            {f"{net}/device/numa_node": "0\n"},
            {f"{net}/operstate": "down\n"},
        ):
            host = having(hosts.host(), files)
            self.assertEqual({"node 0": PASS, "node 1": WARN}, self.statuses(host))


class SettingsTest(HostCase):
    def test_files(self):
        none = (None, SKIP)
        for code, subject, path, *expected in (
            (
                *("governor", "governor", f"{CPU}/cpu7/cpufreq/scaling_governor"),
                *(("performance\n", PASS), ("powersave\n", WARN), none),
            ),
            (
                *("tuned", "profile", "/etc/tuned/active_profile"),
                *(("virtual-host\n", PASS), ("balanced\n", WARN), ("\n", WARN)),
                *(("virtual-host powersave\n", WARN), ("our-own\n", SKIP), none),
            ),
            (
                *("ksm", "KSM", "/sys/kernel/mm/ksm/run"),
                *(("2\n", PASS), ("1\n", FAIL), none),
            ),
            (
                *("numa_balancing", "NUMA balancing"),
                "/proc/sys/kernel/numa_balancing",
                *(("0\n", PASS), ("1\n", WARN), ("\n", WARN), none),
            ),
        ):
            self.code = code
            for text, status in expected:
                host = having(hosts.host(), {path: text})
                with self.subTest(path=path, text=text):
                    if text is None:
                        self.assert_all(status, host)
                    else:
                        self.assert_found(status, subject, collected=host)

    def test_pages_that_are_merged_on_a_node(self):
        self.code = "ksm"
        files = {
            "/sys/kernel/mm/ksm/run": "1\n",
            "/sys/kernel/mm/ksm/merge_across_nodes": "0\n",
        }
        self.assert_found(WARN, "KSM", collected=having(hosts.host(), files))

    def test_hosts_without_pinned_vms(self):
        host = having(hosts.host(vms=0), {CONF: "[compute]\ncpu_shared_set = 0-41\n"})
        for code in ("ksm", "numa_balancing", "irq_affinity", "isolation", "cpu_sets"):
            self.code = code
            self.assert_all(SKIP, host)


class IsolationTest(HostCase):
    code = "isolation"

    def booted(self, arguments, **files):
        return having(hosts.host(), {"/proc/cmdline": f"quiet {arguments}\n", **files})

    def test_arguments(self):
        for arguments, expected in (
            ("nohz_full=0-39", {"nohz_full": PASS}),
            ("nohz_full=0-38", {"nohz_full": WARN}),
            ("nohz_full=0-41", {"nohz_full": WARN}),
            ("", {"nohz_full": WARN}),
            ("nohz_full=x", {"": SKIP}),
            (
                "nohz_full=0-39 isolcpus=0-39",
                {"isolcpus": PASS, "isolcpus: domain": WARN, "nohz_full": PASS},
            ),
            (
                "nohz_full=0-39 isolcpus=managed_irq,domain,0-39",
                {"isolcpus": PASS, "isolcpus: domain": WARN, "nohz_full": PASS},
            ),
        ):
            with self.subTest(arguments=arguments):
                self.assertEqual(expected, self.statuses(self.booted(arguments)))

    def test_cpus_that_vms_share(self):
        conf = "[compute]\ncpu_dedicated_set = 0-19\ncpu_shared_set = 20-39\n"
        host = having(self.booted("nohz_full=0-39"), {CONF: conf})
        self.assert_found(FAIL, "nohz_full", "20-39", collected=host)

    def test_where_vms_own_every_cpu(self):
        conf = {CONF: "[compute]\ncpu_dedicated_set = 0-41\n"}
        host = having(self.booted(""), conf)
        self.assert_found(SKIP, "nohz_full", collected=host)

    def test_where_sets_are_not_known(self):
        host = having(self.booted(""), {CONF: None})
        self.assert_found(SKIP, "nohz_full", collected=host)
        host = having(self.booted("nohz_full=0-41"), {CONF: None})
        self.assert_found(PASS, "nohz_full", collected=host)
        host = having(self.booted("nohz_full=0-19"), {CONF: None})
        self.assert_found(WARN, "nohz_full", "leaves out 20-39", collected=host)

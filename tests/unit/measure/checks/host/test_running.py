# SPDX-License-Identifier: Apache-2.0
"""Checks of what the kernel does: threads, cgroups, pages, interrupts, settings."""

import dataclasses

from nova_perfvm.measure.collect.collected import CommandOutput
from tests.unit.measure import guests, hosts
from tests.unit.measure.checks.host.case import (
    CONF,
    FAIL,
    FIRST,
    NOTE,
    PASS,
    PID,
    PROC,
    SCOPE,
    SKIP,
    WARN,
    HostCase,
    findings,
    having,
    view,
    with_class,
)
from tests.unit.measure.hosts import CPU

TASK = f"{PROC}/task/{PID + 13}"
SCHEDSTAT = f"{TASK}/schedstat"


def counted(ran_s, waited_s, vcpu=3, **more):
    """Return a host of whose first VM a vCPU ran and waited so long."""
    path = f"{PROC}/task/{PID + 10 + vcpu}/schedstat"
    host = hosts.roomy()
    later = {path: hosts.schedstat(100 + ran_s, 0.5 + waited_s)}
    return having(host, later={**host.later, **later}, **more)


def fired(more, name="mlx5_comp0@pci:0000:00:03.0"):
    """Return a host on whose CPU 7 a device fired so often between the looks."""
    first, later = (
        guests.interrupts([(name, {7: n, 41: 5 + n // 2})], 42)
        for n in (100, 100 + more)
    )
    host = having(hosts.roomy(), {"/proc/interrupts": first})
    return having(host, later={"/proc/interrupts": later})


class WaitingTest(HostCase):
    def test_vcpu_wait(self):
        host = hosts.roomy()
        once = {p: text for p, text in host.later.items() if p != SCHEDSTAT}
        zeros = {SCHEDSTAT: "0 0 0\n"}
        few = "less than 5% of the time between the looks (3)"
        most = "vCPU 3 waited 6.0% of 10 s for a CPU, all 0.4%"
        self.assert_cases(
            "vcpu_wait",
            (PASS, FIRST, "", counted(1, 0.1)),
            (WARN, FIRST, "", counted(1, 0.2)),
            (FAIL, FIRST, most, counted(1, 0.6)),
            (PASS, "instance-00000002", "", counted(1, 0.6)),
            # Enough to tell; and one that waits is told however little it ran.
            (PASS, FIRST, "", counted(0.45, 0.06)),
            (WARN, FIRST, "", counted(0.002, 0.2)),
            (SKIP, FIRST, few, counted(0, 0)),
            # It waited for four fifths of what it asked for.
            (SKIP, FIRST, "1 of 20 vCPUs asked for less", counted(0.002, 0.008)),
            (SKIP, FIRST, "(3): put load on it", counted(0.45, 0.04)),
            (SKIP, FIRST, "it was read only once", having(host, later=once)),
            (SKIP, FIRST, "it was not collected", {SCHEDSTAT: None}),
            (SKIP, FIRST, "counts nothing", having(host, zeros, later=once | zeros)),
            (SKIP, FIRST, "three numbers", {SCHEDSTAT: "1 2\n"}),
            (SKIP, FIRST, "backwards", counted(-1, 0)),
            (SKIP, FIRST, "is not known", having(host, interval_s=0)),
            (SKIP, FIRST, "19 of 20 threads", {f"{TASK}/comm": "x\n"}),
            # What is seen of the others counts nevertheless.
            (FAIL, FIRST, "", having(counted(1, 3, vcpu=4), {SCHEDSTAT: None})),
        )

    def test_host_time(self):
        def softirqs(ticks):
            host = hosts.host()
            stat = hosts.stat(40, 1000, at={7: ticks})
            return having(host, later={**host.later, "/proc/stat": stat})

        price = "take 2.1% of CPU 7 (2.0% interrupts, mostly NET_RX), 0.7% of all"
        self.assert_cases(
            "host_time",
            (PASS, FIRST, "0.6% of all", hosts.host()),
            (WARN, FIRST, price, softirqs(20)),
            (FAIL, FIRST, "", softirqs(60)),
            (PASS, "instance-00000002", "", softirqs(60)),
            # What threads took of it counts, too.
            (FAIL, FIRST, "7.0% of CPU 3 (0.5% interrupts", counted(1, 0.65)),
            (SKIP, FIRST, "only 19 CPUs", {SCHEDSTAT: None}),
            (SKIP, FIRST, "read only once", having(hosts.host(), later={})),
        )

    def test_a_wait_that_is_not_counted(self):
        later = {**hosts.roomy().later, SCHEDSTAT: hosts.schedstat(101)}
        host = having(hosts.host(), {SCHEDSTAT: hosts.schedstat(100)}, later=later)
        self.assert_cases("vcpu_wait", (SKIP, FIRST, "never waited", host))


class ThreadsTest(HostCase):
    def test_threads_allowed(self):
        name = "threads_allowed"
        for task, cpus, status, who in (
            (13, "3-4", FAIL, "vCPU 3 (CPU 3/KVM)"),
            (13, "0-41", FAIL, "vCPU 3"),
            (13, "7", FAIL, "vCPU 3"),
            (0, "0-20", FAIL, "emulator thread"),
            (0, "0-19,41", WARN, "emulator thread"),
            (1, "0-41", FAIL, "I/O thread 1"),
            (2, "0-41", FAIL, "vhost thread"),
            (2, "40-41", WARN, "vhost thread"),
        ):
            moved = {f"{PROC}/task/{PID + task}/status": hosts.status("x", cpus, "0")}
            for words in (who, f"may use CPUs {cpus}"):
                self.assert_cases(name, (status, FIRST, words, moved))
        hidden = {"/proc": "processes of others are hidden"}
        self.assert_cases(
            name,
            (SKIP, FIRST, "it was not collected", {f"{TASK}/status": None}),
            (SKIP, FIRST, "19 of 20 vCPUs", {f"{TASK}/comm": "qemu-kvm\n"}),
            (SKIP, FIRST, "no such process", {f"{PROC}/cmdline": "qemu\0-uuid\0"}),
            (SKIP, "*", "", having(hosts.roomy(), unread=hidden)),
        )

    def test_vhost_as_a_thread_of_the_kernel(self):
        dropped = {
            path: None
            for path, text in hosts.host().files.items()
            if path.startswith(PROC) and text == f"vhost-{PID}\n"
        }
        named = dropped | {"/proc/77/comm": f"vhost-{PID}\n"}
        own, all_ = (
            named | {"/proc/77/status": hosts.status("vhost", cpus, "0-1")}
            for cpus in ("0-19", "0-39")
        )
        self.assert_cases(
            "threads_allowed",
            (PASS, FIRST, "", own),
            (FAIL, FIRST, "vhost thread 77", all_),
            (SKIP, FIRST, "0 of 1 vhost threads", dropped),
        )

    def test_cpuset_cgroup(self):
        own = [path for path in hosts.roomy().files if path.startswith(SCOPE)]
        slice_ = "/sys/fs/cgroup/machine.slice/cpuset"
        # The next above tells.
        above = {f"{slice_}.cpus.effective": "0-39", f"{slice_}.mems.effective": "0-1"}
        above |= dict.fromkeys(own)
        mems = f"{SCOPE}/emulator/cpuset.mems.effective"
        cpus = {f"{SCOPE}/vcpu3/cpuset.cpus.effective": "4-41\n"}
        self.assert_cases(
            "cpuset_cgroup",
            (FAIL, FIRST, "vCPU 3 has CPU 3, its cpuset 4-41", cpus),
            (WARN, FIRST, "memory of nodes 0-1", {mems: "0-1\n"}),
            (FAIL, FIRST, "memory of nodes 1", {mems: "1\n"}),
            (WARN, FIRST, "memory of nodes 0-1", above),
            (SKIP, FIRST, "", {f"{PROC}/cgroup": None}),
            (SKIP, FIRST, "", dict.fromkeys(own)),
        )


class MemoryTest(HostCase):
    def test_memory_local(self):
        path = f"{PROC}/numa_maps"
        kb = 128 * 2**20
        for remote, status, word in (
            (0.005, PASS, "99.5"),
            (0.02, FAIL, "98.0"),
            (0.0101, FAIL, "98.9"),
            (1, FAIL, "0.00 %"),
        ):
            for page_kb in (4, 2048):
                far = int(kb * remote) // page_kb * page_kb
                split = {path: hosts.numa_maps({0: kb - far, 1: far}, page_kb)}
                self.assert_cases("memory_local", (status, FIRST, word, split))
        for text in (None, "", "7f2c40000000 default\n", "7f default huge N0=3\n"):
            self.assert_cases("memory_local", (SKIP, FIRST, "", {path: text}))

    def test_huge_pages(self):
        host = hosts.roomy(pages_kb=2048)
        small, half, other = (
            having(host, {f"{PROC}/numa_maps": hosts.numa_maps({0: gb * 2**20}, kb)})
            for gb, kb in ((128, 4), (64, 2048), (128, 1048576))
        )
        self.assert_cases(
            "huge_pages",
            (PASS, "*", "", host),
            *((FAIL, FIRST, "", found) for found in (small, half, other)),
        )
        policy = with_class(mem_page_size="1GB")
        # All of the domain's own size, which is not its class's.
        self.assert_cases("huge_pages", (FAIL, "*", "1048576 KiB", host), policy=policy)
        policy = with_class(mem_page_size="2MB")
        self.assert_cases("huge_pages", (PASS, "*", "", host), policy=policy)
        for size, status in (("large", FAIL), ("small", SKIP)):
            policy = with_class(mem_page_size=size)
            self.assert_cases("huge_pages", (status, "*", "", {}), policy=policy)


class DevicesTest(HostCase):
    def test_interface_queues(self):
        def edited(*changes):
            return hosts.edited(hosts.roomy(), 1, *changes)

        none = (" queues='20'", "")
        self.assert_cases(
            "interface_queues",
            (FAIL, FIRST, "tap1 has 1 queues", none),
            (FAIL, FIRST, "tap1 has 8 queues", (" queues='20'", " queues='8'")),
            *(
                (SKIP, FIRST, "", edited(none, change))
                for change in (
                    ("type='kvm'", "type='qemu'"),
                    ("<interface type='bridge'>", "<interface type='hostdev'>"),
                    ("<model type='virtio'/>", "<model type='e1000'/>"),
                )
            ),
        )
        for policy in (with_class(vif_multiqueue=False), None):
            self.assert_cases("interface_queues", (SKIP, "*", "", {}), policy=policy)

    def test_irq_affinity(self):
        effective = "/proc/irq/{}/effective_affinity_list"
        old = {effective.format(25): None, effective.format(24): None}
        anywhere = old | {"/proc/irq/24/smp_affinity_list": "0-41\n"}
        self.assert_cases(
            "irq_affinity",
            (WARN, "host", "25 (mlx5_comp0", {effective.format(25): "7\n"}),
            (PASS, "*", "", old),
            (WARN, "host", "24 (mlx5_comp0", anywhere),
            (PASS, "*", "5 a second on CPU 7", fired(50)),
            (WARN, "host", "200 a second on CPU 7", fired(2000)),
            (FAIL, "host", "2000 a second on CPU 7", fired(20000)),
            (SKIP, "*", "", fired(0)),
            (SKIP, "*", "", fired(20000, "vfio-msix[3](0000:00:03.0)")),
            (SKIP, "*", "it was read only once", having(hosts.roomy(), later={})),
            # Nobody can keep them away: their cost is judged.
            (SKIP, "*", "8500 a second on CPU 0, and VMs own", hosts.host()),
            (SKIP, "*", "interrupts are on theirs", hosts.host()),
        )

    def test_packets(self):
        def lost(nic, counter, first, more):
            path = f"/sys/class/net/{nic}/statistics/{counter}"
            host = having(hosts.roomy(), {path: f"{first}\n"})
            return having(host, later={**host.later, path: f"{first + more}\n"})

        self.assert_cases(
            "nic_losses",
            (PASS, "*", "", lost("eth0", "rx_dropped", 0, 10)),
            (WARN, "eth0", "rx_dropped 90 beside", lost("eth0", "rx_dropped", 0, 90)),
            (FAIL, "tap1", "tx_dropped 9000", lost("tap1", "tx_dropped", 0, 9000)),
            # What was lost before says nothing of now.
            (PASS, "*", "", lost("eth1", "rx_dropped", 900_000, 0)),
            (SKIP, "*", "only once", having(hosts.roomy(), later={})),
        )
        path = "/proc/net/softnet_stat"
        host = hosts.roomy()
        dropping = {**host.later, path: hosts.softnet(42, 91000, 90)}
        self.assert_cases(
            "softnet_drops",
            (PASS, "*", "", host),
            (FAIL, "host", "3780 of", having(host, later=dropping)),
        )

    def test_nic_node(self):
        net = "/sys/class/net/eth1"
        for files in (
            {f"{net}/device/numa_node": "0\n"},
            {f"{net}/operstate": "down\n"},
        ):
            self.assert_cases("nic_node", (WARN, "host", "none on node 1", files))
        untold = {f"/sys/class/net/eth{n}/device/numa_node": "-1\n" for n in (0, 1)}
        self.assert_cases("nic_node", (SKIP, "host", "the node of eth1", untold))
        host = having(hosts.roomy(vms=1), files=untold)
        files = {p: text for p, text in host.files.items() if "/node1/" not in p}
        one_node = dataclasses.replace(host, files=files)
        self.assert_cases("nic_node", (PASS, "host", "eth1 on node 0", one_node))
        slot = "pci0000:00/0000:00:14.0/usb1/1-14/1-14:1.0"
        usb = {
            "/sys/class/net/usb0": f"../../devices/{slot}/net/usb0",
            "/sys/class/net/usb0/device/driver": "../../bus/usb/drivers/cdc_ether",
        }
        host = hosts.roomy()
        host = dataclasses.replace(host, links=host.links | usb)
        self.assert_cases("nic_node", (PASS, "host", "eth1 on node 1", host))
        slow = {f"{net}/speed": "1000\n"}
        words = "node 1 has 1000 of 25000 Mbit/s"
        self.assert_cases("nic_node", (WARN, "host", words, slow))
        # The kernel shows -1 for virtio's NICs.
        untold = {f"{net}/speed": "-1\n"}
        self.assert_cases("nic_node", (SKIP, "host", "the speed of eth1", untold))

    def test_nic_settings(self):
        table = "RX flow hash indirection table for eth1 with {} RX ring(s):\n"
        table += "    0:      0     1     2     3     0     1     2     3\n"
        features = "Features for eth1:\nrx-checksumming: {}\n"
        features += "generic-receive-offload: on\nrx-vlan-offload: off\n"
        # A USB device of the management controller, among others.
        none = "on\ntx-checksumming: off\n\ttx-checksum-ipv4: off [fixed]\n"
        none += "\ttx-checksum-sctp: off [fixed]"
        for status, word, on, rings in (
            (PASS, "off: none", "on", 4),
            (PASS, "off: none", "off [fixed]", 4),
            (PASS, "off: none", none, 4),
            (WARN, "off: tx-checksumming", none.replace("[fixed]", "", 1), 4),
            (WARN, "off: rx-checksumming", "off", 4),
            (WARN, "RSS uses 4 of 20 rings", "on", 20),
        ):
            commands = {
                "ethtool -k eth1": CommandOutput(0, features.format(on)),
                "ethtool -x eth1": CommandOutput(0, table.format(rings)),
            }
            host = hosts.roomy()
            host = dataclasses.replace(host, commands=host.commands | commands)
            self.assert_cases("nic_settings", (status, "eth1", word, host))


class SettingsTest(HostCase):
    def test_files(self):
        ksm = "/sys/kernel/mm/ksm"
        for code, path, expected in (
            (
                *("governor", f"{CPU}/cpu7/cpufreq/scaling_governor"),
                {"performance\n": PASS, "powersave\n": WARN},
            ),
            (
                *("tuned", "/etc/tuned/active_profile"),
                {"virtual-host\n": PASS, "balanced\n": WARN, "\n": WARN}
                | {"virtual-host powersave\n": WARN, "our-own\n": SKIP},
            ),
            ("ksm", f"{ksm}/run", {"2\n": PASS, "1\n": FAIL}),
            (
                *("numa_balancing", "/proc/sys/kernel/numa_balancing"),
                {"0\n": PASS, "1\n": WARN, "\n": WARN},
            ),
        ):
            for text, status in expected.items():
                self.assert_cases(code, (status, "*", "", {path: text}))
            self.assert_cases(code, (SKIP, "*", "", {path: None}))
        on_a_node = {f"{ksm}/run": "1\n", f"{ksm}/merge_across_nodes": "0\n"}
        self.assert_cases("ksm", (WARN, "*", "within nodes", on_a_node))

    def test_clocks(self):
        frequency = f"{CPU}/cpu7/cpufreq"
        slow = {f"{frequency}/scaling_governor": "powersave\n"}
        lowest = slow | {f"{frequency}/scaling_driver": "acpi-cpufreq\n"}
        ceiling = f"{frequency}/scaling_max_freq"
        preferred = f"{frequency}/energy_performance_preference"
        every = {p: None for p in hosts.roomy().files if p.endswith("info_max_freq")}
        efficient = {f"{CPU}/cpu{n}/cpufreq/cpuinfo_max_freq": "1\n" for n in (5, 6)}
        self.assert_cases("governor", (FAIL, "host", "lowest clock", lowest))
        self.assert_cases(
            "frequency",
            (PASS, "*", "", {}),
            (WARN, "host", "7 is held at 77%", {ceiling: "3000000\n"}),
            (FAIL, "host", "1.80 of 3.90 GHz", {ceiling: "1800000\n"}),
            (FAIL, "host", f"CPUs 5-6 of {FIRST} are of a slower kind", efficient),
            (WARN, "host", "turbo is off", {f"{CPU}/intel_pstate/no_turbo": "1\n"}),
            (WARN, "host", "boost is off", {f"{CPU}/cpufreq/boost": "0\n"}),
            (WARN, "host", "saves power", {preferred: "balance_power\n"}),
            (SKIP, "*", "firmware", every),
        )

    def test_hardware(self):
        idle = f"{CPU}/cpu0/cpuidle/state3"
        deep = {f"{idle}/name": "C6\n", f"{idle}/latency": "133\n"}
        kvm = "/sys/module/kvm_intel/parameters"
        virtual = "processor: 0\nflags: hypervisor"
        self.assert_cases(
            "hardware",
            (PASS, "*", "", {}),
            (
                SKIP,
                "host",
                "flag",
                {"/proc/cpuinfo": virtual},
            ),
            (FAIL, "host", "ept of kvm_intel is N", {f"{kvm}/ept": "N\n"}),
            (NOTE, "host", "enable_apicv of kvm_intel", {f"{kvm}/enable_apicv": "N\n"}),
            (NOTE, "host", "C6 in 133 us", deep | {f"{idle}/disable": "0\n"}),
            (PASS, "*", "", deep | {f"{idle}/disable": "1\n"}),
        )

    def test_memory(self):
        ksm = {"/sys/kernel/mm/ksm/pages_sharing": "7\n"}
        self.assert_cases("ksm", (SKIP, "*", "7 pages are still merged", ksm))
        thp = {"/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"}
        swapped = hosts.status("qemu", "0-19", 0).replace("       0 kB", "2000 kB")
        self.assert_cases(
            "swap",
            (PASS, FIRST, "nothing", {}),
            (WARN, FIRST, "2 MiB", {f"{PROC}/status": swapped}),
            (WARN, FIRST, "4 KiB", thp),
        )

    def test_power_management(self):
        on = "[compute]\ncpu_dedicated_set = 0-39\n[libvirt]\ncpu_power_management = "
        one = hosts.roomy(vms=1)

        def resting(conf, online="0-19,40-41"):
            return having(one, {f"{CPU}/online": f"{online}\n", CONF: conf})

        governors = f"{on}true\ncpu_power_management_strategy = governor\n"
        shape = "the node of CPUs that are offline"
        self.assert_cases(
            "cpu_sets",
            (PASS, "host", "CPUs 20-39 rest", resting(f"{on}True\n")),
            (FAIL, "host", "CPUs 20-39 do not run", resting(f"{on}False\n")),
            (FAIL, "host", "CPUs 20-39 do not run", resting(governors)),
            # What the host has not got is no CPU at rest.
            *(
                (FAIL, "host", f"no CPUs {cpus}", resting(f"{on}1\n".replace("39", to)))
                for to, cpus in (("43", "42-43"), ("39,400", "400"))
            ),
            # A VM owns one of them.
            (FAIL, "host", "CPUs 7 do", resting(f"{on}1\n", "0-6,8-19,40-41")),
        )
        nova = view(hosts.snapshot(hosts.server(1)))
        told = (SKIP, "host", "cpu_power_management", resting(None))
        self.assert_cases("cpu_sets", told, nova=nova)
        self.assert_cases("node_shape", (SKIP, "host", shape, resting(f"{on}1\n")))
        slow = {
            f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": "powersave\n"
            for cpu in range(20, 40)
        }
        for conf, status in ((governors, PASS), (f"{on}true\n", WARN)):
            host = having(one, slow | {CONF: conf})
            self.assert_cases("governor", (status, "host", "", host))

    def test_connections_of_live_migrations(self):
        told = "[compute]\ncpu_dedicated_set = 0-39\n[libvirt]\n"
        told += "live_migration_parallel_connections = "
        takes = "connections = 3: each may take a CPU, and 2 are the host's own"
        self.assert_cases(
            "cpu_sets",
            *((PASS, "host", "", {CONF: f"{told}{many}\n"}) for many in (1, 2, "x")),
            (WARN, "host", takes, {CONF: f"{told}3\n"}),
        )

    def test_hosts_without_pinned_vms(self):
        host = having(hosts.roomy(vms=0), {CONF: "[compute]\ncpu_shared_set = 0-41\n"})
        for code in ("ksm", "numa_balancing", "irq_affinity", "isolation", "cpu_sets"):
            self.assert_cases(code, (SKIP, "*", "", host))

    def test_isolation(self):
        for arguments, status, word in (
            ("nohz_full=0-39", PASS, "nohz_full=0-39"),
            ("nohz_full=0-38", WARN, "leaves out 39"),
            ("nohz_full=0-41", WARN, "has 40-41, too"),
            ("", WARN, "nohz_full is not given"),
            ("nohz_full=x", SKIP, "x"),
            ("nohz_full=0-39 isolcpus=0-39", WARN, "QEMU's threads stay on one"),
            ("nohz_full=0-39 isolcpus=managed_irq,domain,0-39", WARN, "stay on one"),
            ("nohz_full=0-39 isolcpus=managed_irq,0-38", WARN, "leaves out 39"),
        ):
            files = {"/proc/cmdline": f"quiet {arguments}\n"}
            self.assert_cases("isolation", (status, "*", word, files))

    def test_cpus_of_pmd_threads_stay_isolated(self):
        """OVS-DPDK's threads poll on 40 and 41; the VM's NIC is its socket."""
        files = {"/proc/cmdline": "nohz_full=0-41 isolcpus=managed_irq,0-41\n"}
        bridge = ("<interface type='bridge'>", "<interface type='vhostuser'>")
        for host, status in (
            (hosts.roomy(), WARN),
            (hosts.edited(hosts.roomy(), 1, bridge), NOTE),
        ):
            (found,) = [
                one
                for one in findings("hypervisor.isolation", having(host, files))
                if "has 40-41, too" in one.observed
            ]
            self.assertEqual(status, found.level)
            self.assertEqual(2, found.observed.count("PMD threads stay isolated"))
            if status is WARN:
                self.assertIn("OVS-DPDK's PMD threads added", found.remedy)

    def test_floating_vms_on_isolated_cpus(self):
        host = hosts.with_domains(hosts.roomy(), vm2=hosts.general_xml(2, "20-39"))
        files = {"/proc/cmdline": "isolcpus=domain,20-39\n"}
        words = "instance-00000002 may use CPUs 20-39 of isolcpus=domain,20-39"
        case = (FAIL, "host", words, having(host, files))
        self.assert_cases("isolation", case)

    def test_isolation_by_what_nova_is_told(self):
        shared = "cpu_dedicated_set = 0-19\ncpu_shared_set = 20-39"
        for arguments, sets, status, word in (
            ("nohz_full=0-39", shared, FAIL, "20-39, which VMs share"),
            # VMs own every CPU.
            ("", "cpu_dedicated_set = 0-41", SKIP, ""),
            # The sets are not known.
            ("", None, SKIP, ""),
            ("nohz_full=0-41", None, PASS, ""),
            ("nohz_full=0-19", None, WARN, "leaves out 20-39"),
        ):
            conf = None if sets is None else f"[compute]\n{sets}\n"
            files = {"/proc/cmdline": f"quiet {arguments}\n", CONF: conf}
            self.assert_cases("isolation", (status, "host", word, files))

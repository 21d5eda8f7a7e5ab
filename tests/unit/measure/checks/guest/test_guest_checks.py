# SPDX-License-Identifier: Apache-2.0
"""Each check of a guest: where it passes, fails, and cannot tell."""

import dataclasses

import testtools

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks import guest as package
from nova_perfvm.measure.checks import spread
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.checks.guest.nic_vectors import MULTIQUEUE
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.collect.collected import CommandOutput
from nova_perfvm.policy import loader
from tests.unit.measure import guests

POLICY = loader.load()
HIGH, GENERAL = (POLICY.get_class(name) for name in ("high-performance", "general"))
CHECKS = {check.code: check for check in checks_of(package)}
PASS, SKIP, WARN, FAIL = Level.OK, Level.UNKNOWN, Level.WARNING, Level.FAILURE

NET, BLOCK = "/sys/class/net", "/sys/block"
CPU, NODE = "/sys/devices/system/cpu", "/sys/devices/system/node"
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


class GuestCase(testtools.TestCase):
    def findings(self, code, collected, vm_class=HIGH):
        return CHECKS[f"guest.{code}"].findings(GuestSubject(collected, vm_class))

    def assert_cases(self, code, *cases, vm_class=HIGH):
        """Look at cases of a check.

        A case is the worst status, of whom it is told ("*": nothing else is told of
        anybody), words in what was observed or in the remedy, and a guest, or the
        files that differ in it.
        """
        for status, subject, words, change in cases:
            guest = change
            if isinstance(change, dict):
                guest = guests.having(guests.guest(), files=change)
            found = self.findings(code, guest, vm_class)
            told = [one for one in found if subject in {"*", one.subject}]
            self.assertEqual(status, max(one.level for one in told), found)
            if subject == "*":
                self.assertEqual({status}, {one.level for one in told}, found)
            texts = [f"{one.observed} {one.remedy}" for one in told]
            self.assertIn(words, " ".join(texts))


class AllTest(testtools.TestCase):
    def statuses(self, collected, vm_class=HIGH):
        subject = GuestSubject(collected, vm_class)
        return {
            (code, one.level)
            for code, check in CHECKS.items()
            for one in check.findings(subject)
        }

    def test_a_guest_without_a_fault_passes_all(self):
        self.assertEqual(
            {(code, PASS) for code in CHECKS}, self.statuses(guests.guest())
        )

    def test_of_nothing_nothing_is_told(self):
        empty = guests.only(guests.guest())
        for vm_class in (None, HIGH, GENERAL):
            self.assertEqual(
                {(code, SKIP) for code in CHECKS}, self.statuses(empty, vm_class)
            )

    def test_garbage_is_no_evidence(self):
        guest = guests.guest()
        for text in ("", "garbage", "-1", "9" * 30, "\0", "cpu0 1 2\nCPU0 :"):
            broken = dataclasses.replace(
                guest,
                files=dict.fromkeys(guest.files, f"{text}\n"),
                later=dict.fromkeys(guest.later, f"{text}\n"),
                commands={"ethtool -l eth0": CommandOutput(0, text)},
            )
            found = self.statuses(broken)
            self.assertNotIn(PASS, {status for _, status in found}, (text, found))

    def test_each_file_broken_alone(self):
        guest = guests.guest()
        for path in guest.files:
            for text in ("", "garbage\n", "9" * 30, "CPU0 CPU1\n 1: 2 3\n"):
                broken = guests.having(guest, files={path: text}, later={path: text})
                self.assertEqual(set(CHECKS), {c for c, _ in self.statuses(broken)})


class LYTest(testtools.TestCase):
    """The table of LY's article: one look at one queue."""

    def test_verdict_and_remedy(self):
        subject = GuestSubject(guests.ly())
        (queues,) = CHECKS["guest.nic_queues"].findings(subject)
        self.assertEqual((FAIL, "1 present"), (queues.level, queues.observed))
        received, _ = CHECKS["guest.nic_spread"].findings(subject)
        self.assertEqual(
            (
                "virtio0 input",
                FAIL,
                "1.22 effective CPUs, 4087519262 interrupts of 1 queue",
                "/proc/interrupts, counted since boot",
            ),
            (received.subject, received.level, received.observed, received.source),
        )
        for found in (queues, received):
            self.assertEqual(MULTIQUEUE, found.remedy)
            self.assertIn("hw:vif_multiqueue_enabled=true", found.remedy)
            self.assertNotRegex(found.remedy, "affinity|irqbalance|ethtool|script")
        (vectors,) = CHECKS["guest.nic_vectors"].findings(subject)
        self.assertEqual(SKIP, vectors.level)


def passed_through(driver="mlx5_core", maximum=8, current=8, place=None, form=None):
    """Return a guest whose only NIC is a virtual function."""
    guest = guests.guest(fired=[10] * 20)
    place = place or (lambda queue: queue)
    form = form or "mlx5_comp{}@pci:0000:00:05.0"
    rows = [("mlx5_async@pci:0000:00:05.0", {0: 9})]
    looks = [
        guests.interrupts(
            rows + [(form.format(n), {place(n): 10 + look}) for n in range(maximum)]
        )
        for look in (0, 50_000)
    ]
    text = guests.CHANNELS.format(nic="eth0", maximum=maximum, current=current)
    base = f"{NET}/eth0"
    affinity = {
        f"/proc/irq/{25 + queue}/effective_affinity_list": f"{place(queue)}\n"
        for queue in range(maximum)
    }
    return guests.having(
        guest,
        files={
            "/proc/interrupts": looks[0],
            f"{base}/device/msi_irqs": "".join(f"{n}\n" for n in range(24, 45)),
            **affinity,
        },
        later={"/proc/interrupts": looks[1]},
        links={
            base: "../../devices/pci0000:00/0000:00:05.0/net/eth0",
            f"{base}/device": "../../../0000:00:05.0",
            f"{base}/device/driver": f"../../../bus/pci/drivers/{driver}",
        },
        commands={"ethtool -l eth0": CommandOutput(0, text)},
    )


class ShapeTest(GuestCase):
    def test_shape(self):
        nodes = {f"{NODE}/online": "0-1\n", f"{NODE}/has_memory": "0-1\n"}
        bare = nodes | {f"{NODE}/has_memory": "0\n"}
        threads = {f"{CPU}/cpu3/topology/thread_siblings_list": "2-3\n"}
        small = guests.guest(vcpus=16)
        self.assert_cases(
            "shape",
            (FAIL, "*", "16 of 20 vCPUs", small),
            (FAIL, "*", "28 of 20 vCPUs", guests.guest(vcpus=28)),
            (FAIL, "*", "2 of 1 nodes", nodes),
            (FAIL, "*", "NUMA nodes 1 have no memory", bare),
            # Threads are no cores.
            (WARN, "*", "2 threads of a core", threads),
        )
        for changes, case in (
            ({"former_vcpus": (16,)}, (PASS, "*", "", small)),
            ({"smt": "threads"}, (SKIP, "guest", "no whole cores", threads)),
        ):
            vm_class = dataclasses.replace(HIGH, **changes)
            self.assert_cases("shape", case, vm_class=vm_class)
        for vm_class, number in ((None, 1), (GENERAL, 3)):
            found = self.findings("shape", guests.guest(), vm_class)
            self.assertEqual([SKIP] * number, [one.level for one in found])
        without = (FAIL, "guest", "NUMA nodes 1 have no memory", bare)
        self.assert_cases("shape", without, vm_class=None)


class QueuesTest(GuestCase):
    def test_nic_queues(self):
        guest = guests.guest()
        queues = [path for path in guest.files if "/queues/" in path]
        asked = {"ethtool -l eth0": None}
        blind = guests.having(guest, files=dict.fromkeys(queues), commands=asked)
        blinder = guests.having(blind, files={"/proc/interrupts": None})
        unread = "20 present; the number enabled was not read"
        self.assert_cases(
            "nic_queues",
            *((FAIL, "*", MULTIQUEUE, guests.guest(present=n)) for n in (1, 8, 19)),
            (FAIL, "*", "20 present, 19 enabled", guests.guest(enabled=19)),
            (FAIL, "*", "ethtool -L eth0 combined 20", guests.guest(enabled=1)),
            (SKIP, "*", unread, blind),
            (SKIP, "*", "", blinder),
            # A virtual function has the limit of its hardware.
            (PASS, "*", "8 present, the limit of the device", passed_through()),
            (FAIL, "*", "ethtool -L eth0 combined 8", passed_through(current=4)),
        )
        # More than CPUs are not asked for.
        enough = (PASS, "*", "", guests.guest(4, 20))
        self.assert_cases("nic_queues", enough, vm_class=None)
        unpromised = (SKIP, "*", "promises no multiqueue", guests.guest(present=1))
        self.assert_cases("nic_queues", unpromised, vm_class=GENERAL)

    def test_other_drivers_are_not_judged(self):
        link = "../../devices/vdpa0/virtio0/net/eth0"
        vdpa = guests.having(guests.guest(), links={f"{NET}/eth0": link})
        for code in ("nic_queues", "nic_vectors", "nic_spread"):
            for driver in ("e1000", "vmxnet3"):
                case = (SKIP, "eth0", driver, passed_through(driver=driver))
                self.assert_cases(code, case)
        # It shows queues only.
        self.assert_cases("nic_queues", (PASS, "*", "", vdpa))
        self.assert_cases("nic_vectors", (SKIP, "*", "", vdpa))


class VectorsTest(GuestCase):
    def affinities(self, value, name="effective"):
        return {f"/proc/irq/{irq}/{name}_affinity_list": value for irq in range(25, 65)}

    def test_nic_vectors(self):
        half = {"/proc/irq/25/effective_affinity_list": "1\n"}
        self.assert_cases(
            "nic_vectors",
            (FAIL, "*", "", guests.guest(place=lambda _queue: 0)),
            (FAIL, "*", "", guests.guest(place=lambda queue: queue // 2)),
            # Only enabled queues count.
            (PASS, "*", "", guests.guest(enabled=10, place=lambda q: min(q, 9))),
            (SKIP, "*", "", guests.guest(present=1)),
            (FAIL, "eth0 input", "20 vectors on 19 CPUs, 2 on the busiest", half),
        )

    def test_old_kernels_tell_by_counters(self):
        old = self.affinities(None) | self.affinities("0-19\n", "smp")
        fired = [5000] * 20
        for guest, status in (
            (guests.guest(fired=fired), PASS),
            (guests.guest(fired=fired, place=lambda queue: queue % 10), FAIL),
            # What did not fire tells nothing.
            (guests.guest(fired=[5000] * 10 + [0] * 10), SKIP),
        ):
            case = (status, "*", "", guests.having(guest, files=old))
            self.assert_cases("nic_vectors", case)

    def test_one_vector_for_all_queues(self):
        for name in ("virtio0-virtqueues", "virtio0"):
            rows = [("virtio0-config", {}), (name, {0: 10})]
            case = {"/proc/interrupts": guests.interrupts(rows)}
            case = (FAIL, "*", "one vector for all queues", case)
            self.assert_cases("nic_vectors", case)

    def test_virtual_functions(self):
        forms = ("mlx5_comp{}@pci:0000:00:05.0", "iavf-eth0-TxRx-{}", "eth0-Tx-Rx-{}")
        name = "eth0 input+output"
        unread = {f"{NET}/eth0/device/msi_irqs": None}
        self.assert_cases(
            "nic_vectors",
            *((PASS, name, "", passed_through(form=form)) for form in forms),
            (FAIL, name, "", passed_through(place=lambda queue: queue // 2)),
            (SKIP, "eth0", "", passed_through(form="something{}")),
            (SKIP, "eth0", "", guests.having(passed_through(), files=unread)),
        )


class SpreadTest(GuestCase):
    # Over which a guest without a fault spread 16 connections: 6.62 effective CPUs.
    MEASURED = (2340, 2100, 1800, 1500, 1200, 900, 600, 250, 150, 60, 40)

    def test_what_is_expected(self):
        self.assertEqual(0.0, spread.least_effective(0, 20))
        limits = [spread.least_effective(flows, 20) for flows in (2, 16, 64, 256)]
        self.assertEqual(sorted(limits), limits)
        self.assertGreater(6.62, limits[1])
        self.assertGreater(limits[1], 2)
        self.assertGreater(limits[3], 10)
        # More than are simulated are not expected to be spread further.
        self.assertEqual(limits[3], spread.least_effective(10_000, 20))

    def test_healthy_guests_pass(self):
        for seed in range(100):
            guest = guests.guest(flows=16, fired=guests.spread(16, 20, seed))
            self.assert_cases("nic_spread", (PASS, "eth0 input", "", guest))

    def test_nic_spread(self):
        few = guests.guest(flows=16, fired=[*self.MEASURED, *[0] * 9])
        one, name = guests.guest(place=lambda _queue: 0), "eth0 input"
        # One connection is busy.
        busy = guests.guest(flows=64, fired=[50_000] + [3] * 19)
        unread = {"/proc/net/tcp": None}
        steady = [5000] * 20
        self.assert_cases(
            "nic_spread",
            (PASS, name, "6.62 effective CPUs", few),
            (FAIL, name, "1.00 effective CPUs", one),
            (FAIL, name, "--fix-script", one),
            (WARN, name, "queues and vectors are as they should be", busy),
            (SKIP, name, "800 interrupts", guests.guest(fired=[40] * 20)),
            (
                SKIP,
                name,
                "2 connections cannot tell",
                guests.guest(flows=2, fired=steady),
            ),
            (
                SKIP,
                name,
                "0 connections cannot tell",
                guests.guest(flows=0, fired=steady),
            ),
            (SKIP, name, "it was not collected", unread),
            # One queue, whatever the connections.
            (FAIL, "*", "", guests.guest(present=1, flows=1)),
            (FAIL, name, "ethtool -L eth0 combined 20", guests.guest(enabled=1)),
        )
        unpromised = (SKIP, "*", "", guests.guest(present=1))
        self.assert_cases("nic_spread", unpromised, vm_class=GENERAL)


class SteeringTest(GuestCase):
    def masks(self, name, cpus):
        direction = "tx" if name == "xps" else "rx"
        return {
            f"{NET}/eth0/queues/{direction}-{queue}/{name}_cpus": guests.mask(cpus)
            for queue in range(20)
        }

    def test_xps_and_rps(self):
        self.assert_cases(
            "xps",
            (PASS, "*", "", guests.guest(enabled=4)),
            *((WARN, "*", "", self.masks("xps", c)) for c in ([], [0], range(20))),
            (SKIP, "*", "", guests.guest(present=1)),
        )
        self.assert_cases(
            "rps",
            (PASS, "*", "", {}),
            (WARN, "*", "", self.masks("rps", range(20))),
            (SKIP, "*", "", guests.guest(enabled=4)),
            (SKIP, "*", "", dict.fromkeys(self.masks("rps", []))),
        )


class DisksTest(GuestCase):
    def test_disks(self):
        lists = {f"{BLOCK}/vda/mq/{n}/cpu_list": None for n in range(20)}
        one = lists | {f"{BLOCK}/vda/mq/0/cpu_list": "0\n"}
        driver = {f"{BLOCK}/vda/device/driver": "../bus/drivers/other"}
        self.assert_cases(
            "disk_queues",
            (WARN, "*", "1 of virtio_blk", one),
            (SKIP, "*", "", lists),
            (SKIP, "*", "", guests.having(guests.guest(), links=driver)),
        )
        path = f"{BLOCK}/vda/queue/scheduler"
        self.assert_cases(
            "disk_scheduler",
            (PASS, "*", "", {path: "none [mq-deadline] bfq\n"}),
            (WARN, "*", "", {path: "none mq-deadline [bfq]\n"}),
            (SKIP, "*", "", {path: None}),
        )


class TimeTest(GuestCase):
    def stolen(self, mean, more=0, idle=2000):
        later = guests.stat(20, 1 + mean, more, idle)
        return guests.having(guests.guest(), later={"/proc/stat": later})

    def idle(self):
        later = guests.stat(20, 1, idle=2000, busy=0.01)
        return guests.having(guests.guest(), later={"/proc/stat": later})

    def test_what_the_kernel_was_told(self):
        self.assert_cases(
            "kernel_line",
            (PASS, "*", "", {}),
            (SKIP, "*", "nosmt", {"/proc/cmdline": "root=x nosmt=force"}),
            (PASS, "*", "2 arguments", {"/proc/cmdline": "ro quiet\n"}),
            (SKIP, "*", "no kernel argument", {"/proc/cmdline": "\n"}),
        )

    def test_clocksource(self):
        self.assert_cases(
            "clocksource",
            (PASS, "*", "", {CLOCK: "tsc\n"}),
            (PASS, "*", "", {CLOCK: "arch_sys_counter\n"}),
            (WARN, "*", "", {CLOCK: "acpi_pm\n"}),
            (WARN, "*", "echo kvm-clock >", {CLOCK: "hpet\n"}),
            (SKIP, "*", "", {CLOCK: None}),
        )

    def test_steal(self):
        most = "6.7% of CPU 3, 0.3% of all"
        once = guests.having(guests.guest(), later={"/proc/stat": None})
        self.assert_cases(
            "steal",
            (PASS, "*", "", self.stolen(0)),
            (PASS, "*", "", self.stolen(10)),
            (WARN, "*", "", self.stolen(0, 30)),
            (FAIL, "*", most, self.stolen(0, 100)),
            (SKIP, "*", "0 since boot", {"/proc/stat": guests.stat(20, 0)}),
            # No counter is none that stands at 0.
            (SKIP, "*", "it names no CPU", {"/proc/stat": "garbage\n"}),
            (SKIP, "*", "too near", self.stolen(0, idle=600)),
            (SKIP, "*", "20 of 20 vCPUs asked for less", self.idle()),
            (SKIP, "*", "", once),
        )
        # A class that shares CPUs.
        case = (WARN, "*", "", self.stolen(0, 100))
        self.assert_cases("steal", case, vm_class=GENERAL)


class SoftnetTest(GuestCase):
    def rows(self, *numbers):
        rest = "0 " * 9
        later = "".join(
            f"{n:08x} {d:08x} {s:08x} {rest}{cpu:08x}\n"
            for cpu, (n, d, s) in enumerate(numbers)
        )
        path = "/proc/net/softnet_stat"
        first = "".join(f"0 0 0 {rest}{cpu:08x}\n" for cpu in range(len(numbers)))
        return guests.having(guests.guest(), {path: first}, {path: later})

    def test_packets(self):
        for row, statuses in (
            ((100_000, 0, 0), [PASS]),
            ((100_000, 1, 3), [WARN]),
            ((100_000, 100, 60), [FAIL, WARN]),
        ):
            guest = self.rows((100_000, 0, 0), row)
            found = self.findings("softnet_drops", guest)
            self.assertEqual(statuses, [one.level for one in found])
        self.assertIn("most on CPU 1", found[0].observed)
        self.assertIn("rounds that were cut off", found[1].observed)
        once = guests.having(guests.guest(), later={"/proc/net/softnet_stat": None})
        self.assert_cases(
            "softnet_drops",
            (SKIP, "*", "", self.rows((0, 0, 0))),
            (SKIP, "*", "", once),
        )

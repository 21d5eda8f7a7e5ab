# SPDX-License-Identifier: Apache-2.0
"""Each check of a guest: where it passes, fails, and cannot tell."""

import dataclasses

import testtools

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks import guest as package
from nova_perfvm.measure.checks import spread
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.vectors import MULTIQUEUE
from nova_perfvm.measure.collected import CommandOutput
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
    code = ""

    def findings(self, collected, vm_class=HIGH):
        return CHECKS[self.code].findings(GuestSubject(collected, vm_class))

    def statuses(self, collected, vm_class=HIGH):
        """Return {subject: status}."""
        return {one.subject: one.level for one in self.findings(collected, vm_class)}

    def only_finding(self, collected, vm_class=HIGH):
        (found,) = self.findings(collected, vm_class)
        return found

    def assert_all(self, status, collected, vm_class=HIGH):
        self.assertEqual({status}, set(self.statuses(collected, vm_class).values()))


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


class ShapeTest(GuestCase):
    code = "guest.shape"

    def test_sizes(self):
        guest = guests.guest(vcpus=16)
        found = self.statuses(guest)
        self.assertEqual((FAIL, PASS), (found["vCPUs"], found["NUMA nodes"]))
        self.assert_all(PASS, guest, dataclasses.replace(HIGH, former_vcpus=(16,)))

    def test_nodes(self):
        two = {f"{NODE}/online": "0-1\n", f"{NODE}/has_memory": "0-1\n"}
        found = self.statuses(guests.having(guests.guest(), files=two))
        self.assertEqual(FAIL, found["NUMA nodes"])
        two[f"{NODE}/has_memory"] = "0\n"
        for vm_class in (None, HIGH):
            found = self.statuses(guests.having(guests.guest(), files=two), vm_class)
            self.assertEqual(FAIL, found["memory of NUMA nodes"])

    def test_threads_are_no_cores(self):
        path = f"{CPU}/cpu3/topology/thread_siblings_list"
        guest = guests.having(guests.guest(), files={path: "2-3\n"})
        self.assertEqual(WARN, self.statuses(guest)["threads of a core"])
        threads = dataclasses.replace(HIGH, smt="threads")
        self.assertEqual(SKIP, self.statuses(guest, threads)["threads of a core"])

    def test_without_a_class_or_a_size(self):
        for vm_class in (None, GENERAL):
            self.assertEqual(
                [SKIP, SKIP, SKIP, PASS],
                list(self.statuses(guests.guest(), vm_class).values()),
            )


class QueuesTest(GuestCase):
    code = "guest.nic_queues"

    def test_too_few(self):
        for present in (1, 8, 19):
            found = self.only_finding(guests.guest(present=present))
            self.assertEqual((FAIL, MULTIQUEUE), (found.level, found.remedy))
        for enabled in (1, 19):
            found = self.only_finding(guests.guest(enabled=enabled))
            self.assertEqual(FAIL, found.level)
            self.assertEqual(f"20 present, {enabled} enabled", found.observed)
            self.assertIn("ethtool -L eth0 combined 20", found.remedy)
            self.assertNotIn("FLAVOR", found.remedy)
        # More than CPUs are not asked for.
        self.assertEqual(PASS, self.only_finding(guests.guest(4, 20), None).level)

    def test_what_was_not_read(self):
        guest = guests.guest()
        queues = [path for path in guest.files if "/queues/" in path]
        blind = guests.having(
            guest,
            files=dict.fromkeys(queues),
            commands={"ethtool -l eth0": None},
        )
        found = self.only_finding(blind)
        self.assertEqual(
            (SKIP, "20 present; how many are enabled was not read"),
            (found.level, found.observed),
        )
        blind = guests.having(blind, files={"/proc/interrupts": None})
        self.assertEqual(SKIP, self.only_finding(blind).level)

    def test_a_class_that_does_not_promise_it(self):
        found = self.only_finding(guests.guest(present=1), GENERAL)
        self.assertEqual(SKIP, found.level)
        self.assertIn("general promises no multiqueue", found.observed)


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


class OtherDriversTest(GuestCase):
    def test_a_virtual_function_has_the_limit_of_its_hardware(self):
        self.code = "guest.nic_queues"
        found = self.only_finding(passed_through())
        self.assertEqual(
            (PASS, "8 present, the limit of the device, 8 enabled"),
            (found.level, found.observed),
        )
        found = self.only_finding(passed_through(current=4))
        self.assertEqual(FAIL, found.level)
        self.assertIn("ethtool -L eth0 combined 8", found.remedy)

    def test_vectors_of_a_virtual_function(self):
        self.code = "guest.nic_vectors"
        for form in ("mlx5_comp{}@pci:0000:00:05.0", "iavf-eth0-TxRx-{}",
                     "eth0-Tx-Rx-{}"):  # fmt: skip
            self.assertEqual(
                {"eth0 input+output": PASS}, self.statuses(passed_through(form=form))
            )
        together = passed_through(place=lambda queue: queue // 2)
        self.assertEqual({"eth0 input+output": FAIL}, self.statuses(together))
        unknown = passed_through(form="something{}")
        self.assertEqual({"eth0": SKIP}, self.statuses(unknown))
        path = f"{NET}/eth0/device/msi_irqs"
        unread = guests.having(passed_through(), files={path: None})
        self.assertEqual({"eth0": SKIP}, self.statuses(unread))

    def test_others_are_not_judged(self):
        link = "../../devices/vdpa0/virtio0/net/eth0"
        vdpa = guests.having(guests.guest(), links={f"{NET}/eth0": link})
        for self.code in ("guest.nic_queues", "guest.nic_vectors", "guest.nic_spread"):
            for driver in ("e1000", "vmxnet3"):
                found = self.only_finding(passed_through(driver=driver))
                self.assertEqual((SKIP, "eth0"), (found.level, found.subject))
                self.assertIn(driver, found.observed)
            if self.code != "guest.nic_spread":
                # It shows queues only.
                expected = PASS if self.code == "guest.nic_queues" else SKIP
                self.assertEqual(expected, self.only_finding(vdpa).level)


class VectorsTest(GuestCase):
    code = "guest.nic_vectors"

    def affinities(self, value, name="effective"):
        return {f"/proc/irq/{irq}/{name}_affinity_list": value for irq in range(25, 65)}

    def test_on_one_cpu(self):
        for place in (lambda _queue: 0, lambda queue: queue // 2):
            self.assert_all(FAIL, guests.guest(place=place))
        # Only enabled queues count.
        guest = guests.guest(enabled=10, place=lambda queue: min(queue, 9))
        self.assert_all(PASS, guest)
        self.assert_all(SKIP, guests.guest(present=1))

    def test_only_one_direction(self):
        files = {"/proc/irq/25/effective_affinity_list": "1\n"}
        guest = guests.having(guests.guest(), files=files)
        self.assertEqual(
            {"eth0 input": FAIL, "eth0 output": PASS}, self.statuses(guest)
        )

    def test_old_kernels_tell_by_counters(self):
        old = self.affinities(None) | self.affinities("0-19\n", "smp")
        fired = [5000] * 20
        self.assert_all(
            PASS, guests.having(guests.guest(fired=fired), files=old)
        )  # fmt: skip
        crowded = guests.guest(fired=fired, place=lambda queue: queue % 10)
        self.assert_all(FAIL, guests.having(crowded, files=old))
        # What did not fire tells nothing.
        idle = guests.guest(fired=[5000] * 10 + [0] * 10)
        self.assert_all(SKIP, guests.having(idle, files=old))

    def test_one_vector_for_all_queues(self):
        for name in ("virtio0-virtqueues", "virtio0"):
            rows = [("virtio0-config", {}), (name, {0: 10})]
            texts = {"/proc/interrupts": guests.interrupts(rows)}
            guest = guests.having(guests.guest(), files=texts, later=texts)
            found = self.only_finding(guest)
            self.assertEqual(
                (FAIL, "one vector for all queues"), (found.level, found.observed)
            )


class SpreadTest(GuestCase):
    code = "guest.nic_spread"
    # Over which a guest without a fault spread 16 connections: 6.62 effective CPUs.
    MEASURED = (2340, 2100, 1800, 1500, 1200, 900, 600, 250, 150, 60, 40)

    def measured(self):
        shares = [*self.MEASURED, *[0] * 9]
        return guests.guest(flows=16, fired=shares)

    def test_few_connections_cannot_use_all_queues(self):
        found, _ = self.findings(self.measured())
        self.assertIn("6.62 effective CPUs", found.observed)
        self.assertIn("16 connections (11.2 busy queues on average)", found.expected)
        self.assertEqual(PASS, found.level)

    def test_what_is_expected(self):
        self.assertEqual(11.2, round(spread.busy_queues(16, 20), 1))
        self.assertEqual(1.0, round(spread.busy_queues(1, 20), 9))
        self.assertEqual(0.0, spread.least_effective(0, 20))
        limits = [spread.least_effective(flows, 20) for flows in (2, 16, 64, 256)]
        self.assertEqual(sorted(limits), limits)
        self.assertGreater(6.62, limits[1])
        self.assertGreater(limits[1], 2)
        self.assertGreater(limits[3], 10)
        # More than are simulated are not expected to be spread further.
        self.assertEqual(limits[3], spread.least_effective(10_000, 20))

    def test_healthy_guests_pass(self):
        failed = 0
        for seed in range(100):
            guest = guests.guest(flows=16, fired=guests.spread(16, 20, seed))
            failed += self.statuses(guest)["eth0 input"] is not PASS
        self.assertEqual(0, failed)

    def test_vectors_on_one_cpu(self):
        guest = guests.guest(place=lambda _queue: 0)
        found, _ = self.findings(guest)
        self.assertEqual(FAIL, found.level)
        self.assertIn("1.00 effective CPUs", found.observed)
        self.assertIn("--fix-script", found.remedy)

    def test_traffic_of_one_busy_connection(self):
        guest = guests.guest(flows=64, fired=[50_000] + [3] * 19)
        found, _ = self.findings(guest)
        self.assertEqual(WARN, found.level)
        self.assertIn("queues and vectors are as they should be", found.remedy)

    def test_what_tells_nothing(self):
        for guest, words in (
            (guests.guest(fired=[40] * 20), "800 interrupts"),
            (guests.guest(flows=2, fired=[5000] * 20), "2 connections cannot tell"),
            (guests.guest(flows=0, fired=[5000] * 20), "0 connections cannot tell"),
            (
                guests.having(guests.guest(), files={"/proc/net/tcp": None},
                              later={"/proc/net/tcp": None}),
                "connections: it was not collected",
            ),
        ):  # fmt: skip
            found, _ = self.findings(guest)
            self.assertEqual(SKIP, found.level)
            self.assertIn(words, found.observed)

    def test_one_queue_whatever_the_connections(self):
        self.assert_all(FAIL, guests.guest(present=1, flows=1))
        self.assert_all(SKIP, guests.guest(present=1), GENERAL)
        found, _ = self.findings(guests.guest(enabled=1))
        self.assertIn("ethtool -L eth0 combined 20", found.remedy)


class SteeringTest(GuestCase):
    def masks(self, name, cpus):
        direction = "tx" if name == "xps" else "rx"
        return {
            f"{NET}/eth0/queues/{direction}-{queue}/{name}_cpus": guests.mask(cpus)
            for queue in range(20)
        }

    def test_xps(self):
        self.code = "guest.xps"
        self.assert_all(PASS, guests.guest(enabled=4))
        for cpus in ([], [0], range(20)):
            guest = guests.having(guests.guest(), files=self.masks("xps", cpus))
            self.assert_all(WARN, guest)
        self.assert_all(SKIP, guests.guest(present=1))

    def test_rps(self):
        self.code = "guest.rps"
        self.assert_all(PASS, guests.guest())
        guest = guests.having(guests.guest(), files=self.masks("rps", range(20)))
        self.assert_all(WARN, guest)
        self.assert_all(SKIP, guests.guest(enabled=4))
        files = dict.fromkeys(self.masks("rps", []))
        self.assert_all(SKIP, guests.having(guests.guest(), files=files))


class DisksTest(GuestCase):
    def test_queues(self):
        self.code = "guest.disk_queues"
        lists = {f"{BLOCK}/vda/mq/{n}/cpu_list": None for n in range(1, 20)}
        found = self.only_finding(guests.having(guests.guest(), files=lists))
        self.assertEqual((WARN, "1 of virtio_blk"), (found.level, found.observed))
        lists[f"{BLOCK}/vda/mq/0/cpu_list"] = None
        self.assert_all(SKIP, guests.having(guests.guest(), files=lists))
        driver = {f"{BLOCK}/vda/device/driver": "../bus/drivers/other"}
        self.assert_all(SKIP, guests.having(guests.guest(), links=driver))

    def test_scheduler(self):
        self.code = "guest.disk_scheduler"
        path = f"{BLOCK}/vda/queue/scheduler"
        for text, status in (
            ("none [mq-deadline] bfq\n", PASS),
            ("none mq-deadline [bfq]\n", WARN),
            (None, SKIP),
        ):
            self.assert_all(status, guests.having(guests.guest(), files={path: text}))


class ClockTest(GuestCase):
    code = "guest.clocksource"

    def test_clock_sources(self):
        for text, status in (
            ("tsc\n", PASS),
            ("arch_sys_counter\n", PASS),
            ("acpi_pm\n", WARN),
            (None, SKIP),
        ):
            guest = guests.having(guests.guest(), files={CLOCK: text})
            self.assert_all(status, guest)
        guest = guests.having(guests.guest(), files={CLOCK: "hpet\n"})
        self.assertIn("echo kvm-clock >", self.only_finding(guest).remedy)


class StealTest(GuestCase):
    code = "guest.steal"

    def stolen(self, mean, more=0, idle=2000):
        later = guests.stat(20, 1 + mean, more, idle)
        return guests.having(guests.guest(), later={"/proc/stat": later})

    def test_the_cpu_that_loses_most(self):
        for guest, status in (
            (self.stolen(0), PASS),
            (self.stolen(10), PASS),
            (self.stolen(0, 30), WARN),
            (self.stolen(0, 100), FAIL),
        ):
            self.assertEqual(status, self.only_finding(guest).level)
        found = self.only_finding(self.stolen(0, 100))
        self.assertEqual("6.7% of CPU 3, 0.3% of all", found.observed)

    def test_a_class_that_shares_cpus(self):
        found = self.only_finding(self.stolen(0, 100), GENERAL)
        self.assertEqual(WARN, found.level)

    def test_what_tells_nothing(self):
        zero = {"/proc/stat": guests.stat(20, 0)}
        guest = guests.having(guests.guest(), files=zero, later=zero)
        self.assertIn("0 since boot", self.only_finding(guest).observed)
        short = self.stolen(0, idle=600)
        self.assertIn("too near", self.only_finding(short).observed)
        once = guests.having(guests.guest(), later={"/proc/stat": None})
        for blind in (guest, short, once):
            self.assert_all(SKIP, blind)


class SoftnetTest(GuestCase):
    code = "guest.softnet_drops"

    def rows(self, *numbers):
        rest = "0 " * 9
        later = "".join(
            f"{n:08x} {d:08x} {s:08x} {rest}{cpu:08x}\n"
            for cpu, (n, d, s) in enumerate(numbers)
        )
        path = "/proc/net/softnet_stat"
        first = "".join(f"0 0 0 {rest}{cpu:08x}\n" for cpu in range(len(numbers)))
        return guests.having(
            guests.guest(), files={path: first}, later={path: later}
        )  # fmt: skip

    def test_packets(self):
        for row, statuses in (
            ((100_000, 0, 0), [PASS, PASS]),
            ((100_000, 1, 3), [WARN, PASS]),
            ((100_000, 100, 60), [FAIL, WARN]),
        ):
            guest = self.rows((100_000, 0, 0), row)
            self.assertEqual(statuses, list(self.statuses(guest).values()))
        self.assertIn("most on CPU 1", self.findings(guest)[0].observed)

    def test_what_tells_nothing(self):
        self.assert_all(SKIP, self.rows((0, 0, 0)))
        once = guests.having(guests.guest(), later={"/proc/net/softnet_stat": None})
        self.assert_all(SKIP, once)

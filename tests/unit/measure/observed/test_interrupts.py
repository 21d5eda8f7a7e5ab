# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import interrupts
from tests.unit.measure import guests

# As a machine of two CPUs has it, cut.
MACHINE = """\
           CPU0       CPU1       
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 28:          0          0 PCI-MSIX-0000:00:01.0   0-edge      virtio0-config
 38:          0      84303 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
 39:      53243          0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0
 40:          3          0 PCI-MSIX-0000:00:04.0   1-edge      virtio3-rx
NMI:          0          0   Non-maskable interrupts
RES:    5881271    5511035   Rescheduling interrupts
ERR:          0
MIS:          0
"""  # noqa: W291
# CPUs 1 and 3 are offline; a line of two handlers; ARM's last line.
ARM = """\
           CPU0       CPU2       CPU4
 11:       4242       4243       4244     GICv3  27 Level     arch_timer
 13:          1          0          0     GICv3  33 Level     uart-pl011, ttyAMA0
 45:          0         17          0   ITS-MSI 16385 Edge      virtio0-input.0
IPI0:         9          8          7       Rescheduling interrupts
Err:          0
"""


def collected(first, later=None):
    files = {"/proc/interrupts": first}
    return Collected(
        kind="guest",
        hostname="vm1",
        taken_at="2026-11-22T10:00:00+00:00",
        files=files,
        later={} if later is None else {"/proc/interrupts": later},
    )


class ParseTest(testtools.TestCase):
    def test_a_machine(self):
        seen = interrupts.parse(MACHINE)
        self.assertEqual((0, 1), seen.cpus)
        self.assertEqual(
            [24, 28, 38, 39, 40], [vector.irq for vector in seen.vectors]
        )  # fmt: skip
        (vector,) = seen.named(r"virtio2-input\.(\d+)").values()
        self.assertEqual(
            interrupts.Vector(38, ("virtio2-input.0",), {0: 0, 1: 84303}), vector
        )
        self.assertEqual(84303, vector.total)

    def test_holes_of_offline_cpus_and_another_architecture(self):
        seen = interrupts.parse(ARM)
        self.assertEqual((0, 2, 4), seen.cpus)
        self.assertEqual({0: 0, 2: 17, 4: 0}, seen.named("virtio0-input.0")[0].counts)
        self.assertEqual([13], [v.irq for v in seen.vectors if "ttyAMA0" in v.names])

    def test_every_form(self):
        for form in guests.FORMS:
            rows = guests.queue_rows(20, lambda _direction, queue: {queue: 5})
            seen = interrupts.parse(guests.interrupts(rows, 20, form))
            for direction in ("input", "output"):
                found = seen.named(rf"virtio0-{direction}\.(\d+)")
                self.assertEqual(list(range(20)), list(found), form)
                self.assertEqual(
                    [5] * 20, [found[n].counts[n] for n in range(20)], form
                )
            self.assertEqual({}, seen.named(r"virtio1-input\.(\d+)"))
            self.assertEqual(
                [24], [v.irq for v in seen.named("virtio0-config").values()]
            )


class DifferenceTest(testtools.TestCase):
    def rows(self, count, name="virtio0-input.0", cpus=2):
        return guests.interrupts([(name, {1: count})], cpus)

    def test_labels_that_are_no_numbers(self):
        """A digit is not always one of a number."""
        self.assertEqual((), interrupts.parse("  CPU0\n ²: 1 x\nLOC: 1 y\n").vectors)

    def test_between_two_looks(self):
        seen = interrupts.read(collected(self.rows(100), self.rows(350)))
        self.assertEqual({0: 0, 1: 250}, seen.named("virtio0-input.0")[0].counts)
        self.assertEqual("/proc/interrupts", seen.source)

    def test_counters_that_begin_anew(self):
        # One of 32 bits wraps.
        seen = interrupts.read(collected(self.rows(2**32 - 10), self.rows(20)))
        self.assertEqual(30, seen.named("virtio0-input.0")[0].total)
        exc = self.assertRaises(
            NotReadError, interrupts.read, collected(self.rows(1000), self.rows(3))
        )
        said = "the counter of virtio0-input.0 began anew between the two looks"
        self.assertEqual(said, exc.reason)

    def test_what_was_there_once_only_does_not_count(self):
        other = self.rows(5, "virtio1-input.0")
        self.assertEqual((), interrupts.read(collected(self.rows(1), other)).vectors)
        seen = interrupts.read(collected(self.rows(1, cpus=4), self.rows(9, cpus=2)))
        self.assertEqual({0: 0, 1: 8}, seen.vectors[0].counts)

    def test_one_look_counts_since_boot(self):
        seen = interrupts.read(collected(self.rows(100)))
        self.assertEqual("/proc/interrupts, counted since boot", seen.source)
        self.assertEqual(100, seen.vectors[0].total)


class EffectiveTest(testtools.TestCase):
    def test_the_table_of_the_article(self):
        seen = interrupts.read(guests.ly())
        shares = {}
        for direction in ("input", "output"):
            vectors = seen.named(rf"virtio0-{direction}\.(\d+)").values()
            fired = interrupts.by_cpu(vectors)
            shares[direction] = interrupts.effective(fired.values())
        self.assertEqual(28, len(seen.cpus))
        self.assertEqual(1.22, round(shares["input"], 2))
        self.assertEqual(1.03, round(shares["output"], 2))
        fired = interrupts.by_cpu(seen.named(r"virtio0-input\.(\d+)").values())
        total = sum(fired.values())
        self.assertEqual(
            [0.22, 89.95, 9.82],
            [round(100 * fired[cpu] / total, 2) for cpu in (0, 15, 16)],
        )

    def test_directions_together_hide_the_fault(self):
        # One queue, whose directions are on two CPUs.
        sent, received = {4: 1_500_000}, {3: 1_000_000}
        rows = [("virtio0-input.0", received), ("virtio0-output.0", sent)]
        seen = interrupts.parse(guests.interrupts(rows))
        both = interrupts.by_cpu(seen.vectors).values()
        self.assertEqual(1.92, round(interrupts.effective(both), 2))
        for vector in seen.vectors:
            self.assertEqual(1.0, interrupts.effective(vector.counts.values()))

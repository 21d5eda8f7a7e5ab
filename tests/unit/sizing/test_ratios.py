# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure import samples
from nova_perfvm.measure.samples import Samples
from nova_perfvm.sizing.ratios import DOCUMENTS, VMRatios, joined, of_records
from tests.directory import DirectoryCase
from tests.unit.measure import published
from tests.unit.measure.statistics.test_scaling import divided


class DocumentsTest(testtools.TestCase):
    def test_of_ly_is_the_worst_of_its_two_vms(self):
        cpu, network = (
            published.LY_TWO[f"{name}"]
            for name in ("cpu.events_per_second", "network.gbit_per_second")
        )
        vms = ("vm1", "vm2")
        of_cpu = min(
            vm / host
            for who in vms
            for vm, host in zip(cpu[who], cpu["host"], strict=True)
        )
        of_network = min(
            vm / (host / 2)
            for who in vms
            for vm, host in zip(network[who], network["host"], strict=True)
        )
        self.assertAlmostEqual(of_cpu, DOCUMENTS["ly"].cpu)
        self.assertAlmostEqual(of_network, DOCUMENTS["ly"].network)

    def test_the_last_that_has_a_ratio(self):
        found = joined([DOCUMENTS[name] for name in ("ly", "vmware", "etri", "rps")])
        self.assertEqual("LY, VMWARE, ETRI, RPS", found.source)
        self.assertEqual((1.08 / 1.17, 39), (found.cpu, found.most_vcpus))
        self.assertEqual(DOCUMENTS["ly"].network, found.network)
        self.assertFalse(found.measured)
        # The others compared no wake-ups.
        self.assertEqual(DOCUMENTS["ly"].late, found.late)

    def test_never_silently_1(self):
        for name in ("etri", "rps"):
            error = self.assertRaises(PerfVMError, joined, [DOCUMENTS[name]])
            self.assertIn("add --ratios ly or vmware, or name", str(error))

    def test_linearity(self):
        of = DOCUMENTS["rps"]
        for servers, expected in (
            (1, 1),
            (2, 1),
            (6, 0.8085),
            (10, 0.617),
            (40, 0.617),
        ):
            self.assertAlmostEqual(expected, of.linearity(servers), 6)
        self.assertEqual(1, VMRatios("none").linearity(7))


class RecordsTest(DirectoryCase):
    def record(self, *measurements, scale_out=()):
        path = self.directory / "run.json"
        found = Samples(tuple(measurements), tuple(scale_out))
        path.write_text(samples.dumps(found))
        return joined([of_records([str(path)])])

    def test_of_ly(self):
        found = self.record(*published.ly_two())
        self.assertTrue(found.measured)
        self.assertAlmostEqual(DOCUMENTS["ly"].cpu, found.cpu)
        self.assertEqual("the record has no latencies", found.late)

    def test_of_etri(self):
        found = self.record(*divided({1: 100, 2: 90, 4: 60}))
        self.assertAlmostEqual(0.6, found.cpu)

    def test_of_rps(self):
        found = self.record(*published.ly_two(), scale_out=[published.rps()])
        self.assertEqual({2, 10}, found.scale_out.keys())
        self.assertAlmostEqual(1.0, found.linearity(2))
        self.assertAlmostEqual(0.617, found.linearity(10), 3)
        error = self.assertRaises(PerfVMError, self.record, scale_out=[published.rps()])
        self.assertIn("run.json has no ratio of CPUs", str(error))

    def test_latencies(self):
        for latency_ms, words in ((0.7, ""), (13.38, "cpu.latency_max_ms")):
            rows = [
                published.measurement(who, name, 12, value, better, round=number)
                for number in range(1, 6)
                for who in ("host", "vm")
                for name, better, value in (
                    ("cpu.events_per_second", "higher", 100 - number / 9),
                    (
                        "cpu.latency_max_ms",
                        "lower",
                        (latency_ms if who == "vm" else 0.66) * (1 + number / 1000),
                    ),
                )
            ]
            self.assertIn(words, self.record(*rows).late)
            self.assertEqual(bool(words), bool(self.record(*rows).late))

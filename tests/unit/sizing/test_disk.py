# SPDX-License-Identifier: Apache-2.0

import json

import testtools

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.sizing.disk import Figures, Guarantee, plan
from nova_perfvm.sizing.fio_results import FioError, read_fio
from tests.unit.measure.bench.test_tools import output

# KISTI: ioMeter, 8 workers, 70/30 random.
ALONE = {
    "NAS": Figures(100.9, 42.6, 58.03, 50.26),
    "SAS": Figures(211.1, 90.6, 27.85, 23.37),
    "SSD": Figures(2993.9, 1275, 1.89, 1.81),
}
FIVE = {
    "NAS": (
        (72.0, 72.9, 72.4, 73.4, 73.4),
        (31.1, 31.1, 31.3, 31.2, 31.2),
        (80.84, 79.92, 80.45, 79.69, 79.53),
    ),
    "SAS": (
        (69.2, 81.4, 82.5, 81.5, 68.7),
        (29.9, 35.1, 35.7, 35.3, 29.0),
        (85.23, 72.17, 71.22, 72.21, 86.10),
    ),
    "SSD": (
        (1726.8, 1749.8, 1816.9, 1726.5, 1825.6),
        (738.6, 752.7, 781.0, 740.2, 777.2),
        (3.33, 3.28, 3.16, 3.33, 3.16),
    ),
}


def plans(guarantee, contended=True):
    return [
        plan(
            alone,
            guarantee,
            [Figures(*figures) for figures in zip(*FIVE[name], strict=True)]
            if contended
            else (),
        )
        for name, alone in ALONE.items()
    ]


def counts(found, count):
    return [of_disk.vms(count) for of_disk in found]


class KISTITest(testtools.TestCase):
    def test_read_50(self):
        found = plans(Guarantee(read_iops=50))
        self.assertEqual([2, 4, 59], counts(found, "rule"))
        self.assertEqual([5, 5, 5], counts(found, "demonstrated"))
        self.assertEqual([7, 7, 176], counts(found, "extrapolated"))
        demonstrated = [of_disk.counts[1].latency_ms for of_disk in found]
        self.assertEqual([80.84, 86.10, 3.33], demonstrated)

    def test_write_100(self):
        found = plans(Guarantee(write_iops=100))
        self.assertEqual([0, 0, 12], counts(found, "rule"))
        self.assertEqual([0, 0, 5], counts(found, "demonstrated"))
        self.assertEqual([1, 1, 37], counts(found, "extrapolated"))
        self.assertIn("writes 31.1 of 100", found[0].counts[1].limit)

    def test_littles_law(self):
        for alone in ALONE.values():
            self.assertEqual(8.0, round(alone.outstanding, 1))
            self.assertTrue(alone.queue_full)
        for found in plans(Guarantee(50)):
            self.assertIn("8.0 I/Os were outstanding", found.remarks[0])

    def test_without_others_nothing_is_demonstrated(self):
        (nas, *_) = plans(Guarantee(50), contended=False)
        self.assertEqual((2, None), (nas.vms("rule"), nas.vms("demonstrated")))
        self.assertIn("with one VM only", nas.remarks[1])

    def test_latency(self):
        (nas, *_, ssd) = plans(Guarantee(50, latency_ms=80))
        self.assertEqual(0, nas.vms("demonstrated"))
        self.assertIn("latency 80.84 of 80 ms", nas.counts[1].limit)
        # 8 outstanding I/Os of each VM, of 520 a second.
        self.assertEqual(5, nas.vms("extrapolated"))
        self.assertIn("latency of 80 ms", nas.counts[2].limit)
        self.assertAlmostEqual(5 * 7.996 / 519.9 * 1000, nas.counts[2].latency_ms, 0)
        self.assertEqual(5, ssd.vms("demonstrated"))


class LimitTest(testtools.TestCase):
    def test_a_disk_that_is_full(self):
        alone = Figures(500, 500, 8, 8, depth=8)
        found = plan(alone, Guarantee(50), [Figures(250, 250, 16, 16)] * 2)
        self.assertEqual((), found.remarks)

    def test_what_is_not_full_or_not_known(self):
        found = plan(Figures(500, 500, 2, 2, depth=8), Guarantee(50))
        (remark,) = found.remarks
        self.assertIn("with one VM only", remark)
        found = plan(Figures(500, 500), Guarantee(50))
        self.assertIn("not known", found.remarks[0])

    def test_nothing_promised(self):
        self.assertRaises(PerfVMError, plan, Figures(500, 500), Guarantee())


def fio(clones=1, text="", **options):
    own = {"iodepth": "32", "numjobs": "4", "ioengine": "libaio", "direct": "1"}
    times = {"mean": 4_000_000.0}
    job = {
        "jobname": "test",
        "error": 0,
        "job options": own | options,
        "read": {"iops": 24000 / clones, "lat_ns": times},
        "write": {"iops": 8000 / clones, "lat_ns": times},
    }
    return text + json.dumps({"fio version": "fio-3.33", "jobs": [job] * clones})


def measured(reads, writes, read_ms, write_ms):
    """Return fio's JSON of figures that another tool measured with 8 workers."""
    document = json.loads(fio(iodepth="8", numjobs="1"))
    (job,) = document["jobs"]
    job["read"] = {"iops": reads, "lat_ns": {"mean": read_ms * 1e6}}
    job["write"] = {"iops": writes, "lat_ns": {"mean": write_ms * 1e6}}
    return json.dumps(document)


class FioTest(testtools.TestCase):
    def test_grouped_and_not(self):
        for text in (fio(), fio(4), fio(text="fio: an old kernel\n")):
            found = read_fio(text, "fio.json")
            self.assertEqual(Figures(24000, 8000, 4.0, 4.0, 128), found)
            self.assertAlmostEqual(128, found.outstanding)
            self.assertTrue(found.queue_full)

    def test_engines_and_the_page_cache(self):
        self.assertEqual(4, read_fio(fio(ioengine="psync"), "f").depth)
        found = plan(read_fio(fio(direct="0"), "f"), Guarantee(50))
        self.assertIn("page cache", found.remarks[0])

    def test_no_fio(self):
        for text, words in (
            ("", "fio printed no JSON"),
            ("[]", "fio printed no JSON"),
            ("{}", "its JSON has no jobs"),
            (fio() * 2, "several JSON documents"),
            (output("fio_sections.json"), "need not have run at once"),
            ('{"jobs": [1]}', "something else than expected"),
            ('{"jobs": [{"error": 5}]}', "ended with error 5"),
            (
                '{"jobs": [{"read": {"iops": "x"}}]}',
                "could not convert string to float: 'x'",
            ),
            (
                '{"jobs": [{"read": {"iops": 0}, "write": {"iops": 0}}]}',
                "no I/O was done",
            ),
        ):
            error = self.assertRaises(FioError, read_fio, text, "fio.json")
            self.assertIn(words, str(error))

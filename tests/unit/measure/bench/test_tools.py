# SPDX-License-Identifier: Apache-2.0
"""What tools printed, as it was recorded, and what is read in it."""

import json
import os
import pathlib
import shutil
import subprocess

import fixtures
import testtools

from nova_perfvm.measure.bench.tools import cyclictest, fio, iperf3, memory, sysbench
from nova_perfvm.measure.bench.tools.tool import OutputError, Place, meaning

OUTPUTS = pathlib.Path(__file__).parent / "outputs"
PLACE = Place("vm1", 0)


def output(name):
    return (OUTPUTS / name).read_text()


def _memory_gib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30


def values(figures):
    return {metric: (value, *meaning(metric)) for metric, value in figures.items()}


class SysbenchTest(testtools.TestCase):
    def test_cpu(self):
        self.assertEqual(
            {
                "cpu.events_per_second": (1097.6, "1/s", "higher"),
                "cpu.latency_p99_ms": (30.81, "ms", "lower"),
                "cpu.latency_max_ms": (75.46, "ms", "lower"),
            },
            values(sysbench.parse(output("sysbench_cpu.txt"))),
        )

    def test_another_output(self):
        for text in ("", output("memory_stream.txt")):
            error = self.assertRaises(OutputError, sysbench.parse, text)
            self.assertIn("expected what sysbench cpu prints", str(error))

    def test_any_percentile(self):
        text = output("sysbench_default.txt")
        found = sysbench.parse(text)
        self.assertEqual(4.25, found.pop("cpu.latency_p95_ms"))
        rest = {"cpu.events_per_second", "cpu.latency_max_ms"}
        self.assertEqual(rest, set(found))
        # --percentile=0
        none = text.replace(
            "95th percentile:                        4.25",
            "percentile stats:               disabled",
        )
        self.assertEqual(rest, set(sysbench.parse(none)))

    def test_command_line(self):
        (run,) = sysbench.CPU((4,), 7).runs(PLACE)
        self.assertEqual(
            ("sysbench", "cpu", "--threads=4", "--time=7", "--percentile=99", "run"),
            run.command,
        )


class MemoryTest(testtools.TestCase):
    def test_each_mode(self):
        for name, expected in (
            ("stream", {"bandwidth_mib_per_second": (2653.4859, "MiB/s", "higher")}),
            ("chase", {"random_access_ns": (3546.1019, "ns", "lower")}),
        ):
            found = values(memory.parse(output(f"memory_{name}.txt")))
            self.assertEqual({f"memory.{k}": v for k, v in expected.items()}, found)

    def test_another_output(self):
        for text in ("", output("sysbench_cpu.txt"), "{", '{"other": 1}'):
            self.assertRaises(OutputError, memory.parse, text)

    def test_lines_beyond_8_gib(self):
        if shutil.which("sysbench") is None or _memory_gib() < 12:
            self.skipTest("needs sysbench, and 9 GiB that it may ask for")
        script = pathlib.Path(memory.__file__).with_suffix(".lua").read_text()
        # Few lines that are far apart: hardly any of that memory is touched.
        wide = script.replace("local LINE = 16 ", "local LINE = 2 ^ 27 ")
        self.assertNotEqual(script, wide)
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "wide.lua")
        path.write_text(wide)
        command = ["sysbench", path, "--mode=chase", "--mib=9216", "--time=1", "run"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual({"memory.random_access_ns"}, {*memory.parse(done.stdout)})


class IPerf3Test(testtools.TestCase):
    def test_processes_are_summed(self):
        text = output("iperf3.json")
        self.assertEqual(
            {
                "network.bits_per_second": (18489884120.703934, "bit/s", "higher"),
                "network.latency_rtt_mean_ms": (0.369, "ms", "lower"),
                "network.latency_rtt_max_ms": (0.595, "ms", "lower"),
            },
            values(iperf3.parse(text)),
        )
        both = values(iperf3.parse(text + text))
        self.assertEqual(2 * 18489884120.703934, both["network.bits_per_second"][0])
        self.assertEqual(0.595, both["network.latency_rtt_max_ms"][0])

    def test_process_without_figures(self):
        text = output("iperf3.json")
        (run, *_) = iperf3.IPerf3("server", "192.0.2.1", connections=(4,)).runs(PLACE)
        self.assertEqual(iperf3.parse(4 * text), run.parse(4 * text))
        error = self.assertRaises(OutputError, run.parse, 3 * text)
        self.assertIn("only 3 of 4 processes printed their figures", str(error))

    def test_reverse_is_another_metric(self):
        document = json.loads(output("iperf3.json"))
        document["start"]["test_start"]["reverse"] = 1
        # So it is where the kernel here only receives.
        (stream,) = document["end"]["streams"]
        stream["sender"] |= {"max_rtt": 0, "min_rtt": 0, "mean_rtt": 0}
        (metric,) = iperf3.parse(json.dumps(document))
        self.assertEqual("network.received.bits_per_second", metric)

    def test_packets_that_arrive(self):
        text = output("iperf3_udp.json")
        whole = json.loads(text)["end"]["sum"]
        self.assertGreater(whole["lost_packets"], 0)
        rate = (whole["packets"] - whole["lost_packets"]) / whole["seconds"]
        expected = {"network.packets_per_second": (rate, "1/s", "higher")}
        self.assertEqual(expected, values(iperf3.parse(text)))
        (both,) = iperf3.parse(text + text).values()
        self.assertEqual(2 * rate, both)
        (metric,) = iperf3.parse(output("iperf3_udp_reverse.json"))
        self.assertEqual("network.received.packets_per_second", metric)

    def test_both_protocols_and_directions(self):
        runs = list(iperf3.IPerf3("server", "192.0.2.1").runs(PLACE))
        self.assertEqual(2 * 2 * 2, len({(run.name, run.threads) for run in runs}))
        for run in runs:
            words = {"--udp": "udp" in run.name, "--reverse": "receive" in run.name}
            for word, expected in words.items():
                self.assertEqual(expected, word in run.command, run.name)

    def test_the_slowest_seconds(self):
        text = output("iperf3_tail.json")
        document = json.loads(text)
        _dropped, *rates = (
            each["sum"]["bits_per_second"] for each in document["intervals"]
        )
        # It is of the time in which TCP finds its speed.
        self.assertTrue(document["intervals"][0]["sum"]["omitted"])
        self.assertEqual(22, len(rates))
        found = values(iperf3.parse(text))
        second_lowest = sorted(rates)[1]
        self.assertEqual(
            (second_lowest, "bit/s", "higher"), found["network.bits_per_second_p5"]
        )
        both = values(iperf3.parse(text + text))
        self.assertEqual(2 * second_lowest, both["network.bits_per_second_p5"][0])

    def test_of_few_seconds_none_is_the_slowest(self):
        document = json.loads(output("iperf3_tail.json"))
        expected = iperf3.parse(json.dumps(document))
        for seconds, told in ((20, True), (19, False)):
            short = document | {"intervals": document["intervals"][: 1 + seconds]}
            found = values(iperf3.parse(json.dumps(short)))
            self.assertEqual(told, "network.bits_per_second_p5" in found, seconds)
        # The rest of a moment is no interval.
        last = json.loads(json.dumps(document["intervals"][-1]))
        last["sum"] |= {"seconds": 0.0007, "bits_per_second": 0.0}
        document["intervals"] += [last, last]
        self.assertEqual(expected, iperf3.parse(json.dumps(document)))

    def test_a_network_that_stands_still(self):
        document = json.loads(output("iperf3_tail.json"))
        for interval in document["intervals"][5:7]:
            interval["sum"]["bits_per_second"] = 0.0
        error = self.assertRaises(OutputError, iperf3.parse, json.dumps(document))
        self.assertIn("stood still in 5 % of the time", str(error))

    def test_failures(self):
        text, refused = output("iperf3.json"), output("iperf3_refused.json")
        for printed, words in (
            (text + refused, "unable to connect to server: Connection refused"),
            ("", "printed no JSON"),
            (text[:-20], "printed no JSON"),
            ("{}", "something else than expected: KeyError('start')"),
        ):
            error = self.assertRaises(OutputError, iperf3.parse, printed)
            self.assertIn(words, str(error))

    def test_both_directions_at_once(self):
        text = output("iperf3_bidir.json")
        # Versions 3.7 to 3.10 name both sums alike, of which JSON keeps the last.
        twice = text.replace("_bidir_reverse", "")
        self.assertNotIn("bidir", str(json.loads(twice)["end"]))
        for printed in (text, twice):
            error = self.assertRaises(OutputError, iperf3.parse, printed)
            self.assertIn("both directions at once (--bidir)", str(error))

    def test_conditions(self):
        found = iperf3.conditions(output("iperf3_streams.json"))
        self.assertEqual((3, 131072), (found["threads"], found["blksize"]))
        one = json.loads(output("iperf3.json"))
        later = json.loads(output("iperf3.json"))
        together = iperf3.conditions(json.dumps(one) + json.dumps(later))
        self.assertEqual(2, together["threads"])
        later["start"]["timestamp"]["timesecs"] += 30
        error = self.assertRaises(
            OutputError, iperf3.conditions, json.dumps(one) + json.dumps(later)
        )
        self.assertIn("2 processes that did not start together", str(error))


class FioTest(testtools.TestCase):
    def test_mixed(self):
        found = values(fio.parse("mixed", output("fio.json")))
        self.assertEqual((54994.041708, "1/s", "higher"), found["disk.mixed.read_iops"])
        self.assertEqual(18646.474677, found["disk.mixed.write_iops"][0])
        self.assertEqual(
            (17.170432, "ms", "lower"), found["disk.mixed.read_latency_p99_ms"]
        )
        self.assertEqual(44.302336, found["disk.mixed.write_latency_p99_9_ms"][0])
        self.assertEqual(6, len(found))

    def test_failures(self):
        document = json.loads(output("fio.json"))
        # A warning stands before it.
        fio.parse("a", "note: this is slow\n" + json.dumps(document))
        (job,) = document["jobs"]
        job["error"] = 28
        error = self.assertRaises(OutputError, fio.parse, "a", json.dumps(document))
        self.assertIn("error 28", str(error))
        job["error"] = 0
        for way in ("read", "write"):
            job[way]["total_ios"] = 0
        error = self.assertRaises(OutputError, fio.parse, "a", json.dumps(document))
        self.assertIn("no I/O", str(error))
        for text, words in (
            ("", "printed no JSON: run it with --output-format=json+"),
            ("fio: no space", "printed no JSON"),
            ('{"jobs": []}', "has no jobs: run it without --client"),
            ('{"client_stats": []}', "has no jobs"),
            ('{"jobs": [{}]}', "something else than expected"),
            (output("fio.json") * 2, "several JSON documents"),
            (
                output("fio_clones.json"),
                "expected one job, found a, a: run each section",
            ),
            (output("fio_sections.json"), "run each section by itself"),
        ):
            error = self.assertRaises(OutputError, fio.parse, "a", text)
            self.assertIn(words, str(error))

    def test_without_percentiles(self):
        document = json.loads(output("fio_group.json"))
        del document["jobs"][0]["read"]["clat_ns"]["percentile"]
        (metric,) = fio.parse("a", json.dumps(document))
        self.assertEqual("disk.a.read_iops", metric)

    def test_conditions(self):
        document = json.loads(output("fio_group.json"))
        found = fio.conditions(json.dumps(document))
        self.assertEqual((2, "randread"), (found["threads"], found["rw"]))
        options = document["jobs"][0].pop("job options")
        document["global options"] = options
        self.assertEqual(found, fio.conditions(json.dumps(document)))
        del options["numjobs"]
        self.assertEqual(1, fio.conditions(json.dumps(document))["threads"])
        del document["global options"]
        self.assertIsNone(fio.conditions(json.dumps(document))["threads"])

    def test_command_lines_are_those_of_the_article(self):
        runs = list(fio.Fio("/data").runs(PLACE))
        (own, *_) = fio.Fio("/data").runs(Place("vm1", directory="/disk/"))
        self.assertEqual("/disk/perfvm-vm1", own.command[4])
        common = (
            "fio --name=test --directory=. --size=20g --direct=1 --bs=4k "
            "--ioengine=libaio --iodepth=32 --thread --numjobs=4 --runtime=300 "
            "--rw=randrw --rwmixread={} --group_reporting --time_based=1 "
            "--output-format=json+"
        )
        for run, mix in zip(runs, (75, 100, 0), strict=True):
            directory, *command = run.command[4:]
            self.assertEqual("/data/perfvm-vm1", directory)
            self.assertEqual(common.format(mix), " ".join(command))
            self.assertEqual((4, 300), (run.threads, run.seconds))


class CyclicTestTest(testtools.TestCase):
    def test_threads_are_one_distribution(self):
        text = output("cyclictest.json")
        latencies = []
        for thread in json.loads(text)["thread"].values():
            known = [int(us) for us, n in thread["histogram"].items() for _ in range(n)]
            # What is in no bin is known only to be late.
            latencies += known + [607] * (thread["cycles"] - len(known))
        latencies.sort()
        self.assertEqual(1999, len(latencies))
        self.assertEqual(
            {
                "scheduling.latency_p99_us": (latencies[1980 - 1], "us", "lower"),
                "scheduling.latency_p99_9_us": (latencies[1998 - 1], "us", "lower"),
                "scheduling.latency_max_us": (607, "us", "lower"),
            },
            values(cyclictest.parse("", text)),
        )

    def test_another_output(self):
        for text in ("", "{}", '{"thread": {}}', '{"thread": {"0": {"max": 3}}}'):
            self.assertRaises(OutputError, cyclictest.parse, "", text)

    def test_under_load_is_another_metric(self):
        for loaded, begin in ((True, "scheduling.loaded."), (False, "scheduling.")):
            (run,) = cyclictest.CyclicTest(loaded=loaded).runs(PLACE)
            self.assertEqual(loaded, run.loaded)
            self.assertIn("--affinity", run.command)
            for metric in run.parse(output("cyclictest.json")):
                self.assertTrue(metric.startswith(f"{begin}latency_"))

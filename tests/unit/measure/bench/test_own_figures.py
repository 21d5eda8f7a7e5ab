# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import own_figures
from nova_perfvm.measure.bench.tools.tool import OutputError
from tests.unit.measure.bench.test_tools import output

CPU = output("sysbench_cpu.txt")


def read(*names, threads=None, **texts):
    texts = [*((name, output(name)) for name in names), *texts.items()]
    machine = samples.Machine("guest")
    return own_figures.read(texts, threads, who="vm1", machine=machine, at_once=1)


class OwnFiguresTest(testtools.TestCase):
    def test_each_tool_and_round(self):
        cpu, disk, network = "sysbench_cpu.txt", "fio.json", "iperf3.json"
        found = read(cpu, disk, network, again=CPU.replace("1097.60", "1098.60"))
        self.assertEqual(found, samples.loads(samples.dumps(found)))
        rounds = {}
        for one in found.measurements:
            self.assertEqual(("vm1", 1), (one.who, one.at_once))
            of_run = (one.tool, one.tool_version, one.threads)
            rounds.setdefault(of_run, []).append(one.round)
        self.assertEqual(
            {
                ("sysbench", "1.0.20", 2): [1, 1, 1, 2, 2, 2],
                ("fio", "3.33", 4): [1] * 6,
                ("iperf3", "3.12", 1): [1] * 3,
            },
            rounds,
        )
        (rate,) = (m for m in found.measurements if m.metric == "disk.test.read_iops")
        self.assertEqual(("1/s", "higher"), (rate.unit, rate.better))

    def test_what_is_none_of_theirs(self):
        for name, words in (
            ("cyclictest.json", "expected what sysbench prints"),
            ("memory_stream.txt", "expected what sysbench cpu prints"),
            ("iperf3_refused.json", "unable to connect to server"),
        ):
            error = self.assertRaises(OutputError, read, name)
            self.assertIn(f"{name}: ", str(error))
            self.assertIn(words, str(error))

    def test_threads_are_those_of_the_file(self):
        names = ("sysbench_cpu.txt", "fio.json", "iperf3_streams.json")
        for name, threads in zip(names, (2, 4, 3), strict=True):
            for given in (None, threads):
                found = read(name, threads=given).measurements
                self.assertEqual({threads}, {one.threads for one in found})
            error = self.assertRaises(OutputError, read, name, threads=20)
            words = f"it ran with {threads} threads, not 20: omit --threads"
            self.assertIn(words, str(error))

    def test_output_that_says_no_threads(self):
        text = CPU.replace("Number of threads: 2\n", "")
        (one, *_) = read(threads=20, old=text).measurements
        self.assertEqual(20, one.threads)
        error = self.assertRaises(OutputError, read, old=text)
        self.assertIn("it does not say how many threads: give --threads", str(error))

    def test_other_threads_are_no_round(self):
        more = CPU.replace("threads: 2", "threads: 8")
        found = read("sysbench_cpu.txt", more=more).measurements
        self.assertEqual({(2, 1), (8, 1)}, {(one.threads, one.round) for one in found})

    def test_what_is_no_round(self):
        other = CPU.replace("limit: 10000", "limit: 20000")
        disk = output("fio.json").replace('"4KB"', '"64k"')
        error = self.assertRaises(
            OutputError,
            read,
            *("sysbench_cpu.txt", "fio.json"),
            other=other,
            disk=disk,
            same=CPU,
        )
        first, *rest = str(error).splitlines()
        self.assertIn("other: no round of the same measurement as sysbench_cpu", first)
        self.assertIn("Prime numbers limit 20000, not 10000", first)
        self.assertIn("disk: no round of the same measurement as fio.json: bs", rest[0])
        self.assertIn("same: the same as sysbench_cpu.txt: leave one out", rest[1])

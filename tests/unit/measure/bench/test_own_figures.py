# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import own_figures
from nova_perfvm.measure.bench.tools.tool import OutputError
from tests.unit.measure.bench.test_tools import output


def read(*names):
    texts = [(name, output(name)) for name in names]
    machine = samples.Machine("guest")
    return own_figures.read(texts, who="vm1", machine=machine, threads=20)


class OwnFiguresTest(testtools.TestCase):
    def test_each_tool_and_round(self):
        cpu, disk, network = "sysbench_cpu.txt", "fio.json", "iperf3.json"
        found = read(cpu, disk, cpu, network)
        self.assertEqual(found, samples.loads(samples.dumps(found)))
        rounds = {}
        for one in found.measurements:
            self.assertEqual(("vm1", 20), (one.who, one.threads))
            rounds.setdefault((one.tool, one.tool_version), []).append(one.round)
        self.assertEqual(
            {
                ("sysbench", "1.0.20"): [1, 1, 1, 2, 2, 2],
                ("fio", "3.33"): [1] * 6,
                ("iperf3", "3.12"): [1] * 3,
            },
            rounds,
        )
        (rate,) = (m for m in found.measurements if m.metric == "disk.test.read_iops")
        self.assertEqual(("1/s", "higher"), (rate.unit, rate.better))

    def test_what_is_none_of_theirs(self):
        for name, words in (
            ("cyclictest.json", "expected what sysbench prints"),
            ("memory_stream.txt", "printed something else than expected"),
            ("iperf3_refused.json", "unable to connect to server"),
        ):
            error = self.assertRaises(OutputError, read, name)
            self.assertIn(f"{name}: ", str(error))
            self.assertIn(words, str(error))

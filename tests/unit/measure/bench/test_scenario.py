# SPDX-License-Identifier: Apache-2.0

import itertools
import pathlib
from collections import Counter, defaultdict

import testtools
import yaml

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.measure.bench import scenario
from nova_perfvm.measure.bench.tools import cyclictest, fio, iperf3, memory, sysbench

SAMPLE = pathlib.Path(__file__).parents[4] / "etc" / "nova_perfvm" / "scenario.yaml"
SMALL = """\
schema_version: "1.0"
targets:
  host: {kind: host, node: 0}
  vm1: {kind: guest, ssh: root@192.0.2.1}
  vm2: {kind: guest, ssh: root@192.0.2.2}
  generator: {kind: host}
groups:
  alone: [host]
  vms: [vm1, vm2]
tools:
  sysbench_cpu: {threads: [1, 4]}
  iperf3: {server: generator, address: 192.0.2.3, connections: [2]}
"""
ALL_MISTAKES = """
line 4: targets.vm1.kind: found 'vm', expected one of 'host', 'guest'
line 11: tools.sysbench_cpu.threads.1: found 0, expected a whole number of threads \
from 1 to 1024
line 12: tools.iperf3.address: missing; expected an address of the server
line 12: tools.iperf3.adress: unknown key; did you mean address?
"""


class ScenarioTest(testtools.TestCase):
    def mistakes(self, *changes):
        text = SMALL
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        error = self.assertRaises(DocumentError, scenario.parse, text, "s.yaml")
        return [str(problem) for problem in error.mistakes]

    def test_sample(self):
        found = scenario.load(SAMPLE)
        sizes = {name: len(group) for name, group in found.groups.items()}
        self.assertEqual({"host": 2, "vms": 2}, sizes)
        # What it says of defaults is so.
        tools = found.tools
        self.assertEqual(sysbench.CPU(), tools.sysbench_cpu)
        self.assertEqual(memory.Bandwidth(), tools.memory_bandwidth)
        self.assertEqual(memory.Latency(), tools.memory_latency)
        self.assertEqual(cyclictest.CyclicTest(), tools.cyclictest)
        self.assertEqual(iperf3.IPerf3("generator", "192.0.2.30"), tools.iperf3)
        self.assertEqual(fio.Fio("/var/tmp"), tools.fio)
        short = yaml.safe_load(SAMPLE.read_text())
        for key in ("repeats", "warm_up", "grace_s", "prepare_s"):
            del short[key]
        self.assertEqual(found, scenario.parse(yaml.safe_dump(short, sort_keys=False)))

    def test_each_round_has_everyone(self):
        found = scenario.parse(SMALL)
        text = yaml.safe_dump(found.as_document(), sort_keys=False)
        self.assertEqual(found, scenario.parse(text))
        steps = list(found.steps(1))
        # A warm-up and 5 rounds, 6 runs, 2 groups.
        self.assertEqual(6 * 6 * 2, len(steps))
        self.assertEqual(len(steps), len({step.key for step in steps}))
        self.assertEqual(sorted(s.round for s in steps), [s.round for s in steps])

    def test_the_order_is_drawn_by_the_seed(self):
        found = scenario.parse(SMALL)
        keys = {
            seed: tuple(step.key for step in found.steps(seed)) for seed in range(20)
        }
        # It is the same whenever a run is gone on with, and another for each run.
        self.assertEqual(keys[7], tuple(step.key for step in found.steps(7)))
        self.assertEqual(20, len(set(keys.values())))
        self.assertEqual(1, len({frozenset(each) for each in keys.values()}))

    def test_everyone_is_first_equally_often(self):
        of_three = SMALL.replace("[vm1, vm2]", "[vm1]\n  one: [vm2]")
        for (groups, text), repeats, seed in itertools.product(
            ((2, SMALL), (3, of_three)), (5, 6, 7), range(10)
        ):
            found = scenario.parse(f"{text}repeats: {repeats}\n")
            firsts, before = defaultdict(Counter), defaultdict(Counter)
            for (number, *what), steps in itertools.groupby(
                found.steps(seed), lambda s: (s.round, s.run.name, s.run.threads)
            ):
                if number > 0:
                    names = [step.group for step in steps]
                    self.assertEqual(set(found.groups), set(names))
                    firsts[tuple(what)][names[0]] += 1
                    before[tuple(what)].update(itertools.combinations(names, 2))
            for what, times in firsts.items():
                counts = [times[name] for name in found.groups]
                self.assertLessEqual(max(counts) - min(counts), 1, what)
            if repeats % (2 * groups) == 0:
                for pairs in before.values():
                    self.assertEqual({repeats // 2}, set(pairs.values()))

    def test_the_load_of_what_is_measured(self):
        text = SMALL.replace("tools:", "tools:\n  cyclictest: {}")
        for step in scenario.parse(text).steps(1):
            expected = list(step.runs) if step.run.tool == "cyclictest" else []
            self.assertEqual(expected, step.loaded)

    def test_targets_at_once_have_ports_of_their_own(self):
        (step,) = [
            s
            for s in scenario.parse(SMALL).steps(1)
            if (s.round, s.group, s.run.name) == (1, "vms", "iperf3 tcp send")
        ]
        ports = [run.server.command[-2:] for run in step.runs.values()]
        self.assertEqual([("5201", "2"), ("5203", "2")], ports)

    def test_all_mistakes_at_once(self):
        self.assertEqual(
            sorted(ALL_MISTAKES.strip().splitlines()),
            sorted(
                self.mistakes(
                    ("vm1: {kind: guest", "vm1: {kind: vm"),
                    ("[1, 4]", "[1, 0]"),
                    ("address:", "adress:"),
                )
            ),
        )

    def test_mistakes_of_meaning(self):
        for old, new, place, words in (
            ("[vm1, vm2]", "[vm1, vm3]", "targets.vm2", "in no group"),
            ("[vm1, vm2]", "[vm1, vm3]", "groups.vms.1", "there are: host, vm1"),
            ("server: generator", "server: gen", "tools.iperf3.server", "no target"),
            ("[vm1, vm2]", "[vm1, vm2, generator]", "groups.vms.2", "serves iperf3"),
            (
                "alone: [host]",
                "alone: [host]\n  more: [vm2, host]",
                "groups.vms",
                "vm2 is in more, too",
            ),
            (
                "connections: [2]",
                "port: 65534, connections: [2]",
                "tools.iperf3.port",
                "need ports up to 65537",
            ),
            (
                "iperf3:",
                "fio: {}\n  iperf3:",
                "targets.vm1.fio_directory",
                "tools.fio has no directory",
            ),
            ("root@192.0.2.1", "-oProxyCommand=x", "targets.vm1.ssh", "where ssh goes"),
            ("vm1", '"v m"', "targets.v m", "expected a name"),
            ("schema_version", "version", "schema_version", "missing"),
        ):
            found = [words for words in self.mistakes((old, new)) if place in words]
            self.assertTrue(any(words in one for one in found), (place, found))

    def test_what_is_no_scenario(self):
        text = SMALL[: SMALL.index("tools:")] + "tools: {}\n"
        error = self.assertRaises(DocumentError, scenario.parse, text)
        self.assertIn("no tool: name one of sysbench_cpu", str(error))
        for text in ("[]", "groups: 1\ntools: 2\n"):
            self.assertRaises(DocumentError, scenario.parse, text)
        error = self.assertRaises(DocumentError, scenario.load, "/nonexistent/s.yaml")
        self.assertIn("cannot read", str(error))

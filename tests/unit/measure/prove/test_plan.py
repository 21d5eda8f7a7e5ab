# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import testtools

from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.measure.bench import connection
from nova_perfvm.measure.bench.scenario import Target
from nova_perfvm.measure.prove import plan
from nova_perfvm.measure.prove.plan import Machines
from nova_perfvm.policy import loader

POLICY = loader.load()
FLAVOR = generate_flavors(POLICY)[0]
CLASS = POLICY.get_class(FLAVOR.class_name)
SERVER = Target("generator", "host", "root@192.0.2.30")


def machines(vms=2, generator=SERVER, nodes=(0, 1)):
    return Machines(
        host=Target("host", "host", "root@cmp7", ("-v",)),
        nodes=nodes,
        vms=tuple(Target(f"vm{n + 1}", "guest", f"root@vm{n}") for n in range(vms)),
        generator=generator,
        address="192.0.2.30",
    )


def scenario(*given, vm_class=CLASS, **options):
    return plan.scenario_of(FLAVOR, vm_class, machines(*given), **options)


class ScenarioTest(testtools.TestCase):
    def test_time(self):
        for vms in (1, 2, 4):
            for generator in (SERVER, None):
                for directory in ("/var/tmp", None):
                    given = {"directory": directory}
                    whole = scenario(vms, generator, **given)
                    quick = scenario(vms, generator, quick=True, **given)
                    self.assertEqual([], [*whole.mistakes(), *quick.mistakes()])
                    self.assertLessEqual(plan.minutes(whole), 60)
                    self.assertLessEqual(plan.minutes(quick), 10)
                    self.assertEqual((20, 5), (whole.repeats, quick.repeats))
                    seconds = 6 if directory else 10
                    used = whole.tools.used().values()
                    self.assertEqual({seconds}, {tool.seconds for tool in used})
        self.assertEqual(57, plan.minutes(scenario()))
        self.assertEqual(57, plan.minutes(scenario(directory="/var/tmp")))

    def test_the_host_runs_as_often_at_once_each_time_bound_to_a_node(self):
        found = scenario()
        hosts = [found.target(who) for who in found.groups["hosts"]]
        self.assertEqual([0, 1], [one.node for one in hosts])
        self.assertEqual(
            {("root@cmp7", ("-v",))}, {(h.ssh, h.ssh_options) for h in hosts}
        )
        self.assertEqual({"hosts", "vms"}, set(found.groups))
        self.assertEqual({20}, {step.run.threads for step in found.steps(seed=0)})

    def test_a_class_of_two_nodes_binds_the_host_to_two(self):
        wide = replace(CLASS, numa_nodes=2)
        for nodes, vms, expected in (
            ((0, 1), 1, ["0,1"]),
            ((0, 1, 2, 3), 2, ["0,1", "2,3"]),
            ((0,), 1, [None]),
        ):
            found = scenario(vms, None, nodes, vm_class=wide)
            hosts = [found.target(who) for who in found.groups["hosts"]]
            lines = [connection.line(one, ["true"])[-1] for one in hosts]
            for line, told in zip(lines, expected, strict=True):
                words = f"--cpunodebind={told} --membind={told}"
                self.assertEqual(told is not None, words in line, line)
            self.assertEqual([], [*plan.differences(found, FLAVOR, wide, nodes)])
        one = replace(hosts[0], node=0, more_nodes=())
        fewer = replace(found, targets=(one, *found.targets[1:]))
        self.assertTrue([*plan.differences(fewer, FLAVOR, wide, (0, 1))])

    def test_what_is_left_out(self):
        quick = scenario(quick=True, baseline=False)
        self.assertEqual({"vms"}, set(quick.groups))
        self.assertEqual(["vm1", "vm2", "generator"], [t.name for t in quick.targets])
        self.assertIsNone(scenario(2, None).tools.iperf3)
        self.assertIsNone(scenario().tools.fio)
        unbound = scenario(1, None, ())
        self.assertEqual([None], [t.node for t in unbound.targets if t.kind == "host"])
        self.assertEqual({"hosts", "vms"}, set(unbound.groups))


class DifferencesTest(testtools.TestCase):
    """Only rounds, lengths and names may be another's choice, and only upwards."""

    def differences(self, found, nodes=(0, 1)):
        return list(plan.differences(found, FLAVOR, CLASS, nodes))

    def of_tool(self, found, key, **changes):
        tool = replace(getattr(found.tools, key), **changes)
        return replace(found, tools=replace(found.tools, **{key: tool}))

    def test_built_in_or_more(self):
        whole = scenario(directory="/var/tmp")
        longer = self.of_tool(whole, "sysbench_cpu", seconds=60)
        sudo = [
            replace(t, prefix=("sudo", "-n")) if t.kind == "guest" else t
            for t in whole.targets
        ]
        for found in (
            whole,
            scenario(2, None),
            scenario(1),
            scenario(4),
            replace(whole, repeats=30, warm_up=2),
            longer,
            replace(whole, targets=tuple(sudo)),
        ):
            self.assertEqual([], self.differences(found))

    def test_anything_else(self):
        whole = scenario(directory="/var/tmp")
        one_node = [
            replace(t, node=0) if t.name.startswith("host") else t
            for t in whole.targets
        ]
        niced = [replace(t, prefix=("nice",)) for t in whole.targets]
        small = replace(fio_of(whole), size="1m")
        for _name, found, words in (
            ("quick", scenario(quick=True), "5 rounds after 0 to warm up"),
            ("no host", scenario(baseline=False), "no host"),
            ("9 rounds", replace(whole, repeats=9), "9 rounds"),
            ("cold", replace(whole, warm_up=0), "0 to warm up"),
            (
                "shorter",
                self.of_tool(whole, "memory_latency", seconds=5),
                "memory_latency takes 5 s, not 6",
            ),
            (
                "fewer threads",
                self.of_tool(whole, "sysbench_cpu", threads=(1,)),
                "sysbench_cpu has other options",
            ),
            (
                "one direction",
                self.of_tool(whole, "iperf3", directions=("send",)),
                "iperf3 has other options",
            ),
            (
                "another depth",
                self.of_tool(whole, "fio", iodepth=1),
                "fio has other options",
            ),
            (
                "another file",
                replace(whole, tools=replace(whole.tools, fio=small)),
                "fio has other options",
            ),
            (
                "no cyclictest",
                replace(whole, tools=replace(whole.tools, cyclictest=None)),
                "cyclictest is left out",
            ),
            ("working set", replace(whole, working_set_mb=1), "working_set_mb"),
            (
                "one VM at a time",
                replace(
                    whole,
                    groups={"h": ("host1", "host2"), "a": ("vm1",), "b": ("vm2",)},
                ),
                "groups other than",
            ),
            (
                "host runs one after the other",
                replace(whole, groups={"h": ("host1",), "vms": ("vm1", "vm2")}),
                "host runs on nodes ['0']",
            ),
            (
                "one node",
                replace(whole, targets=tuple(one_node)),
                "on nodes ['0', '0']",
            ),
            ("niced", replace(whole, targets=tuple(niced)), "prefix"),
        ):
            self.assertIn(words, " ".join(self.differences(found)))


def fio_of(found):
    return found.tools.fio

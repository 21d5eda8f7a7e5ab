# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.generate.flavors import generate_flavors
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
                whole = scenario(vms, generator)
                quick = scenario(vms, generator, quick=True)
                self.assertEqual([], [*whole.mistakes(), *quick.mistakes()])
                self.assertLessEqual(plan.minutes(whole), 60)
                self.assertLessEqual(plan.minutes(quick), 10)
                self.assertEqual((10, 5), (whole.repeats, quick.repeats))

    def test_the_host_runs_as_often_at_once_each_time_bound_to_a_node(self):
        found = scenario()
        hosts = [found.target(who) for who in found.groups["hosts"]]
        self.assertEqual([0, 1], [one.node for one in hosts])
        self.assertEqual(
            {("root@cmp7", ("-v",))}, {(h.ssh, h.ssh_options) for h in hosts}
        )
        alone = {name for name in found.groups if name.endswith("-alone")}
        self.assertEqual({"host1-alone", "vm1-alone", "vm2-alone"}, alone)
        self.assertEqual({20}, {step.run.threads for step in found.steps(seed=0)})

    def test_what_is_left_out(self):
        quick = scenario(quick=True, baseline=False)
        self.assertEqual({"vms"}, set(quick.groups))
        self.assertEqual(["vm1", "vm2", "generator"], [t.name for t in quick.targets])
        self.assertIsNone(scenario(2, None).tools.iperf3)
        self.assertIsNone(scenario().tools.fio)
        unbound = scenario(1, None, ())
        self.assertEqual([None], [t.node for t in unbound.targets if t.kind == "host"])
        self.assertEqual({"hosts", "vms"}, set(unbound.groups))

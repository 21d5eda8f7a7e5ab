# SPDX-License-Identifier: Apache-2.0

import logging
import pathlib
import random

import fixtures
import testtools
from nova import conf as nova_conf
from nova import objects
from nova.scheduler import filters as nova_filters
from nova.scheduler.filters import numa_topology_filter
from oslo_config import fixture as config_fixture

from nova_perfvm import conf
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import HostShape
from nova_perfvm.scheduler import filters, numa_filter
from tests.unit.generate import filter_lists
from tests.unit.scheduler import states

CONF = nova_conf.CONF


class FilterCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(CONF))
        conf.register_opts(CONF)
        self.config.config(
            group="filter_scheduler",
            enabled_filters=["PerfVMFilter", "NUMATopologyFilter"],
        )
        # Other tests run in this process.
        self.config.config(group="perfvm", freeze_objects=False)
        self.log = self.useFixture(fixtures.FakeLogger(level=20))

    def policy_file(self, text):
        """Name a policy file with this text in nova.conf."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "perfvm.yaml"
        path.write_text(text, encoding="utf-8")
        self.config.config(group="perfvm", policy_file=str(path))
        return str(path)


class FreezeTest(FilterCase):
    def test_with_the_first_request_and_unless_told_otherwise(self):
        calls = []
        self.patch(filters.garbage, "freeze", lambda: calls.append(1))
        for frozen in (True, False):
            self.config.config(group="perfvm", freeze_objects=frozen)
            judge = filters.PerfVMFilter()
            self.assertEqual([], calls)
            judge.filter_all([states.host_state()], states.request_spec())
            self.assertEqual([1] * frozen, calls)
            calls.clear()


class StartTest(FilterCase):
    def test_what_is_said_of_the_list_of_filters(self):
        for text, expected, words in filter_lists.LISTS:
            said = self.warned(text.split(","), logging.INFO)
            self.assertIn(words, said)
            self.assertEqual(len(expected), said.count("options."))
        # What costs less is a hint.
        self.assertEqual("", self.warned(["PerfVMFilter", "NUMATopologyFilter"]))

    def warned(self, enabled, level=30):
        self.config.config(group="filter_scheduler", enabled_filters=enabled)
        with fixtures.FakeLogger(level=level) as log:
            filters.PerfVMFilter()
            return log.output

    def test_nova_loads_it_as_the_documentation_says(self):
        handler = nova_filters.HostFilterHandler()
        classes = handler.get_matching_classes(
            [
                "nova.scheduler.filters.all_filters",
                "nova_perfvm.scheduler.filters.all_filters",
            ]
        )
        self.assertIn(filters.PerfVMFilter, classes)
        self.assertIn(numa_filter.PerfVMNUMATopologyFilter, classes)
        self.assertIn(numa_topology_filter.NUMATopologyFilter, classes)


class VerdictTest(FilterCase):
    def setUp(self):
        super().setUp()
        self.filter = filters.PerfVMFilter()

    def full_host(self, name):
        topology = states.numa_topology()
        for cell in topology.cells:
            cell.pin_cpus(set(cell.pcpuset))
        return states.host_state(name, topology, num_instances=2, vcpus_used=40)

    def test_hosts_and_one_line_about_the_refused(self):
        hosts = [
            states.host_state("hp1"),
            self.full_host("hp2"),
            self.full_host("hp3"),
            states.host_state("small", states.numa_topology("4x10")),
        ]
        spec = states.request_spec()
        self.assertEqual([hosts[0]], self.filter.filter_all(iter(hosts), spec))
        self.assertIn(
            f"PerfVMFilter rejected 3 of 4 hosts for {spec.instance_uuid} (class "
            "high-performance, flavor hp.20c.64g): 2 host.no_free_slot, "
            "1 host.numa_cell_too_small\n",
            self.log.output,
        )
        self.assertEqual(1, self.log.output.count("rejected"))

    def test_nothing_is_said_when_all_pass(self):
        self.filter.filter_all([states.host_state()], states.request_spec())
        self.assertNotIn("rejected", self.log.output)

    def test_a_request_that_is_not_of_its_class_is_refused_once(self):
        hosts = [states.host_state(f"hp{n}") for n in range(3)]
        spec = states.request_spec(vcpus=16, is_bfv=False)
        self.assertEqual([], self.filter.filter_all(hosts, spec))
        self.assertEqual(1, self.log.output.count("flavor.vcpus"))
        self.assertIn("has 16 vCPUs, its class exactly 20", self.log.output)
        self.assertIn("request.not_volume_backed", self.log.output)

    def test_arithmetic_per_cell_at_debug(self):
        log = self.useFixture(fixtures.FakeLogger(level=10))
        self.filter.filter_all([self.full_host("hp2")], states.request_spec())
        self.assertIn("(hp2, hp2) refused: host.no_free_slot", log.output)
        self.assertIn("(hp2, hp2) NUMA node 1: 0 of 20 pCPUs free, need 20", log.output)

    def test_one_host(self):
        spec = states.request_spec()
        self.assertTrue(self.filter.host_passes(states.host_state(), spec))
        self.assertFalse(self.filter.host_passes(self.full_host("hp2"), spec))

    def test_explain_gives_the_reasons(self):
        decision = self.filter.explain(self.full_host("hp2"), states.request_spec())
        self.assertFalse(decision.allowed)
        self.assertEqual(["host.no_free_slot"], [r.code for r in decision.reasons])


class ObserveTest(FilterCase):
    """All that the filter gives Nova is what Nova gave the filter."""

    def setUp(self):
        super().setUp()
        self.policy_file('schema_version: "1.0"\nplacement: units\n')
        self.filter = filters.PerfVMFilter()
        self.config.config(group="perfvm", mode="observe")
        self.hosts = [states.host_state(f"hp{n}") for n in range(3)]
        for cell in self.hosts[1].numa_topology.cells:
            cell.pin_cpus(set(cell.pcpuset))

    def observed(self, spec):
        """Return the log; the hosts have to be what they were."""
        before = [(host, list(host.allocation_candidates)) for host in self.hosts]
        with fixtures.FakeLogger(level=20) as log:
            passed = self.filter.filter_all(iter(self.hosts), spec)
        self.assertEqual(
            before, [(host, host.allocation_candidates) for host in passed]
        )
        return log.output

    def test_hosts_that_it_would_refuse(self):
        flavors = {f.name: f for f in generate_flavors(self.filter.policy)}
        specs = dict(flavors["hp.20c.64g"].extra_specs)
        spec = states.request_spec(extra_specs=specs)
        self.assertIn(
            f"PerfVMFilter would reject 1 of 3 hosts for {spec.instance_uuid} (class "
            "high-performance, flavor hp.20c.64g): 1 host.no_free_slot\n",
            self.observed(spec),
        )

    def test_a_request_that_it_would_refuse(self):
        spec = states.request_spec(vcpus=16)
        self.assertIn(
            f"would reject {spec.instance_uuid} on every host", self.observed(spec)
        )

    def test_its_own_failure(self):
        """Whoever turns it off may do so because of one."""
        spec = states.request_spec()
        self.patch(filters.rules, "check_request", lambda *_: 1 / 0)
        log = self.observed(spec)
        self.assertIn(f"cannot judge the request of {spec.instance_uuid}", log)
        self.assertIn("ZeroDivisionError", log)

    def test_from_one_request_to_the_next(self):
        spec = states.request_spec(vcpus=16)
        self.observed(spec)
        self.config.config(group="perfvm", mode="enforce")
        self.assertEqual([], self.filter.filter_all(self.hosts, spec))
        self.assertIn("PerfVMFilter rejected", self.log.output)


class RebuildTest(FilterCase):
    """What says that it is a rebuild, and what the server's record says to that."""

    HINTS = {"_nova_check_type": ["rebuild"]}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.filter = filters.PerfVMFilter()

    def passing(self, spec, *, task_state="rebuilding", home="hp1"):
        """Return which hosts pass, as far as the filter is asked."""
        instance = home and objects.Instance(
            host=home, node=home, task_state=task_state
        )
        asked = []

        def find(instance_uuid):
            asked.append(instance_uuid)
            return instance

        hosts = [states.host_state(name) for name in ("hp1", "hp2")]
        for cell in hosts[0].numa_topology.cells:
            cell.pin_cpus(set(cell.pcpuset))
        with fixtures.MonkeyPatch("nova_perfvm.scheduler.instances.find", find):
            passed = self.filter.filter_all(hosts, spec)
        self.assertEqual([spec.instance_uuid] * bool(spec.scheduler_hints), asked)
        return [host.host for host in passed]

    def test_a_rebuild_stays_and_is_not_refused_for_its_own_pins(self):
        self.assertEqual(["hp1"], self.passing(states.request_spec(hints=self.HINTS)))

    def test_an_image_that_takes_multiqueue_away(self):
        specs = {k: v for k, v in states.HP_SPECS.items() if "multiqueue" not in k}
        spec = states.request_spec(extra_specs=specs, hints=self.HINTS)
        self.assertEqual([], self.passing(spec))
        self.assertIn("request.no_multiqueue", self.log.output)

    def test_a_server_that_is_being_created(self):
        spec = states.request_spec(hints=self.HINTS)
        self.assertEqual([], self.passing(spec, home=None))
        self.assertIn("2 request.not_a_rebuild", self.log.output)

    def test_a_server_of_no_class_that_is_being_created(self):
        spec = states.request_spec(vcpus=2, extra_specs={}, hints=self.HINTS)
        self.assertEqual([], self.passing(spec, home=None))
        self.assertIn("2 request.not_a_rebuild", self.log.output)

    def test_a_server_that_is_being_moved(self):
        """The hint of its creation is in the request of every move."""
        for task_state in ("resize_prep", "migrating", "unshelving", None):
            spec = states.request_spec(hints=self.HINTS)
            self.assertEqual([], self.passing(spec, task_state=task_state))

    def test_an_evacuation_finds_no_other_host(self):
        spec = states.request_spec(hints=self.HINTS)
        self.assertEqual([], self.passing(spec, home="gone"))

    def test_hosts_that_are_not_the_policys(self):
        self.policy_file('schema_version: "1.0"\nmanaged_hosts: labelled\n')
        self.filter = filters.PerfVMFilter()
        spec = states.request_spec(vcpus=2, extra_specs={}, hints=self.HINTS)
        self.assertEqual(["hp1", "hp2"], self.passing(spec, home=None))

    def test_nobody_looks_for_the_server_otherwise(self):
        spec = states.request_spec(vcpus=2, extra_specs={})
        self.assertEqual([], self.passing(spec))


class NUMATopologyFilterAgreesTest(FilterCase):
    """Whatever passes for a slot, Nova can place."""

    STATES = 300

    def random_state(self, rng):
        shape = HostShape(
            rng.choice([1, 2, 4]),
            rng.choice([6, 10, 20, 22, 40]),
            rng.choice([1, 1, 2]),
        )
        every = set(range(shape.cpus))
        kind = rng.choice(["dedicated", "open", "one per core", "some"])
        dedicated, shared = every, ()
        if kind == "open":
            shared = every
        elif kind == "one per core":
            dedicated = set(range(0, shape.cpus, shape.threads))
        elif kind == "some":
            dedicated = set(rng.sample(sorted(every), rng.randint(1, shape.cpus)))
            shared = every - dedicated
        memory_mb = shape.cells * rng.choice([32, 100, 256]) * 1024
        pools = rng.choice(
            [
                [],
                [(4, memory_mb // shape.cells * 256, 0, 0)],
                [(4, 8 * 1024 * 256, 0, 0), (1048576, rng.choice([20, 90]), 0, 2)],
            ]
        )
        topology = states.numa_topology(
            shape,
            dedicated=dedicated,
            shared=shared,
            memory_mb=memory_mb,
            mempages=pools,
        )
        vms = 0
        for cell in topology.cells:
            size = rng.choice([0, 0, 0, 4, 20, 20, 40])
            free = sorted(cell.pcpuset)
            if size and size <= len(free):
                pick = free[:size] if rng.random() < 0.5 else rng.sample(free, size)
                cell.pin_cpus(set(pick))
                cell.memory_usage = rng.choice([0, 1024, cell.memory // 2])
                vms += 1
        return states.host_state(
            "host",
            topology,
            num_instances=vms,
            vcpus_used=sum(len(cell.pinned_cpus) for cell in topology.cells),
        )

    def test_a_vcpu_owns_a_core(self):
        self.check_random_hosts("cores")

    def test_a_vcpu_owns_a_thread(self):
        self.check_random_hosts("threads")

    def check_random_hosts(self, smt):
        self.policy_file(
            'schema_version: "1.0"\nhost_shape: [2x20, 2x20x2]\nclasses:\n'
            "  general: {default: true}\n"
            "  high-performance: {vcpus: 20, cpu_policy: dedicated, numa_nodes: 1,"
            f" exclusive: none, smt: {smt}}}\n"
        )
        ours = filters.PerfVMFilter()
        theirs = numa_topology_filter.NUMATopologyFilter()
        rng = random.Random(20)
        passed = refused = 0
        for number in range(self.STATES):
            state = self.random_state(rng)
            extra = rng.choice(
                [{}, {"hw:mem_page_size": "1GB"}, {"hw:mem_page_size": "small"}]
            )
            spec = states.request_spec(
                memory_mb=rng.choice([8, 64, 128]) * 1024,
                extra_specs=states.HP_SPECS | extra,
            )
            if ours.host_passes(state, spec):
                passed += 1
                self.assertTrue(
                    theirs.host_passes(state, spec),
                    f"state {number}: {state.numa_topology}",
                )
            else:
                refused += 1
        # Otherwise the states would prove nothing.
        self.assertGreater(passed, self.STATES // 10)
        self.assertGreater(refused, self.STATES // 10)

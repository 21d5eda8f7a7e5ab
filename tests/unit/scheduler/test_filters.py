# SPDX-License-Identifier: Apache-2.0

import collections
import logging
import random

import fixtures
from nova import objects
from nova.scheduler import filters as nova_filters
from nova.scheduler.filters import numa_topology_filter

from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.scheduler import filters, numa_filter
from tests.unit.rules import filter_lists
from tests.unit.scheduler import random_hosts, states
from tests.unit.scheduler.case import ConfigCase

PACKAGES = ("nova", "nova_perfvm")


class FilterCase(ConfigCase):
    def setUp(self):
        super().setUp()
        self.config.config(
            group="filter_scheduler",
            enabled_filters=["PerfVMFilter", "NUMATopologyFilter"],
        )


class StartTest(FilterCase):
    def test_garbage_is_frozen_with_the_first_request_unless_told_otherwise(self):
        calls = []
        self.patch(filters.garbage, "freeze", lambda: calls.append(1))
        for frozen in (True, False):
            self.config.config(group="perfvm", freeze_objects=frozen)
            judge = filters.PerfVMFilter()
            self.assertEqual([], calls)
            judge.filter_all([states.host_state()], states.request_spec())
            self.assertEqual([1] * frozen, calls)
            calls.clear()

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
        names = [f"{package}.scheduler.filters.all_filters" for package in PACKAGES]
        classes = handler.get_matching_classes(names)
        for expected in (
            filters.PerfVMFilter,
            numa_filter.PerfVMNUMATopologyFilter,
            numa_topology_filter.NUMATopologyFilter,
        ):
            self.assertIn(expected, classes)


def full_host(name):
    """Return a host with two high-performance VMs."""
    topology = states.numa_topology()
    for cell in topology.cells:
        cell.pin_cpus(set(cell.pcpuset))
    return states.host_state(name, topology, num_instances=2, vcpus_used=40)


class VerdictTest(FilterCase):
    def setUp(self):
        super().setUp()
        self.filter = filters.PerfVMFilter()

    def test_hosts_and_one_line_about_the_refused(self):
        hosts = [
            states.host_state("hp1"),
            full_host("hp2"),
            full_host("hp3"),
            states.host_state("small", states.numa_topology("4x10")),
        ]
        spec = states.request_spec()
        self.assertEqual([hosts[0]], self.filter.filter_all(iter(hosts), spec))
        about = rf"hosts for {spec.instance_uuid} \(class high-performance, flavor hp"
        self.assertRegex(
            self.log.output,
            rf"PerfVMFilter rejected 3 of 4 {about}.20c.64g\) in \d+\.\d ms: "
            r"2 host.no_free_slot, 1 host.numa_cell_too_small\n",
        )
        self.assertTrue(self.filter.host_passes(hosts[0], spec))
        self.assertRegex(
            self.log.output,
            rf"PerfVMFilter passed 1 of 1 {about}.20c.64g\) in \d+\.\d ms\n",
        )
        self.assertEqual(1, self.log.output.count("rejected"))

    def test_a_request_that_is_not_of_its_class_is_refused_once(self):
        hosts = [states.host_state(f"hp{n}") for n in range(3)]
        spec = states.request_spec(vcpus=16, is_bfv=False)
        self.assertEqual([], self.filter.filter_all(hosts, spec))
        self.assertEqual(1, self.log.output.count("flavor.vcpus"))
        self.assertIn("has 16 vCPUs, its class exactly 20", self.log.output)
        self.assertIn("request.not_volume_backed", self.log.output)

    def test_each_host_at_debug(self):
        log = self.useFixture(fixtures.FakeLogger(level=10))
        hosts = [full_host("hp2"), states.host_state("hp1")]
        self.filter.filter_all(hosts, states.request_spec())
        self.assertIn("(hp2, hp2) refused: host.no_free_slot: free pCPUs", log.output)
        self.assertIn("(hp1, hp1) passes", log.output)


class ObserveTest(FilterCase):
    """All that the filter gives Nova is what Nova gave the filter."""

    def setUp(self):
        super().setUp()
        self.policy_file('schema_version: "1.0"\nplacement: units\n')
        self.filter = filters.PerfVMFilter()
        self.config.config(group="perfvm", mode="observe")
        self.hosts = [states.host_state("hp1"), full_host("hp2")]

    def observed(self, spec, *expected):
        """Check what is logged; the hosts have to be what they were."""
        before = [(host, list(host.allocation_candidates)) for host in self.hosts]
        with fixtures.FakeLogger(level=20) as log:
            passed = self.filter.filter_all(iter(self.hosts), spec)
        self.assertEqual(
            before, [(host, host.allocation_candidates) for host in passed]
        )
        for words in expected:
            self.assertIn(words, log.output)

    def test_hosts_that_it_would_refuse(self):
        flavors = {f.name: f for f in generate_flavors(self.filter.policy)}
        specs = dict(flavors["hp.20c.64g"].extra_specs)
        spec = states.request_spec(extra_specs=specs)
        self.observed(spec, f"would reject 1 of 2 hosts for {spec.instance_uuid} (cla")

    def test_its_own_failure(self):
        """Whoever turns it off may do so because of one."""
        spec = states.request_spec()
        self.patch(filters.rules, "check_request", lambda *_: 1 / 0)
        says = f"cannot judge the request of {spec.instance_uuid}"
        self.observed(spec, says, "ZeroDivisionError")

    def test_from_one_request_to_the_next(self):
        spec = states.request_spec(vcpus=16)
        self.observed(spec, f"would reject {spec.instance_uuid} on every host")
        self.config.config(group="perfvm", mode="enforce")
        self.assertEqual([], self.filter.filter_all(self.hosts, spec))
        self.assertIn("PerfVMFilter rejected", self.log.output)


class BareMetalTest(FilterCase):
    def test_nodes_of_ironic_are_not_judged(self):
        """Their flavors carry nothing of the policy, such as units."""
        self.policy_file('schema_version: "1.0"\nplacement: units\n')
        judge = filters.PerfVMFilter()
        nodes = [states.host_state(f"node{n}") for n in range(2)]
        spec = states.request_spec(vcpus=40, extra_specs={"resources:VCPU": "0"})
        self.assertEqual([], judge.filter_all(nodes, spec))
        for node in nodes:
            node.numa_topology = None
            node.hypervisor_type = "ironic"
        self.assertEqual(nodes, judge.filter_all(nodes, spec))


class RebuildTest(FilterCase):
    """What says that it is a rebuild, and what the server's record says to that."""

    HINTS = {"_nova_check_type": ["rebuild"]}  # noqa: RUF012

    def passing(self, task_state="rebuilding", home="hp1", hints=HINTS, **request):
        """Return which hosts pass, as far as the filter is asked."""
        spec = states.request_spec(hints=hints, **request)
        instance = home and objects.Instance(
            host=home, node=home, task_state=task_state
        )
        asked = []

        def find(instance_uuid):
            asked.append(instance_uuid)
            return instance

        hosts = [full_host("hp1"), states.host_state("hp2")]
        with fixtures.MonkeyPatch("nova_perfvm.scheduler.instances.find", find):
            passed = filters.PerfVMFilter().filter_all(hosts, spec)
        self.assertEqual([spec.instance_uuid] * bool(hints), asked)
        return [host.host for host in passed]

    def test_what_passes(self):
        slow = {k: v for k, v in states.HP_SPECS.items() if "multiqueue" not in k}
        general = {"vcpus": 2, "extra_specs": {}}
        created = "2 request.not_a_rebuild"
        for what, options, expected, says in (
            ("a rebuild stays, whatever its own pins", {}, ["hp1"], ""),
            (
                "an image that takes multiqueue away",
                {"extra_specs": slow},
                [],
                "request.no_multiqueue",
            ),
            ("a create", {"home": None}, [], created),
            ("a create of no class", {"home": None, **general}, [], created),
            # The hint of its creation is in the request of every move.
            *(
                (f"a move: {state}", {"task_state": state}, [], created)
                for state in ("resize_prep", "migrating", "unshelving", None)
            ),
            ("an evacuation", {"home": "gone"}, [], created),
            ("no hint: nobody looks", {"hints": {}}, ["hp2"], ""),
        ):
            with fixtures.FakeLogger(level=20) as log:
                self.assertEqual(expected, self.passing(**options), what)
            self.assertIn(says, log.output, what)
        self.policy_file('schema_version: "1.0"\nmanaged_hosts: labelled\n')
        self.assertEqual(["hp1", "hp2"], self.passing(home=None, **general))


class NUMATopologyFilterAgreesTest(FilterCase):
    """Whatever passes for a slot, Nova can place."""

    STATES = 300

    def test_random_hosts(self):
        for smt in ("cores", "threads"):
            self.check(smt)

    def check(self, smt):
        self.policy_file(
            'schema_version: "1.0"\nhost_shape: 2x20\nclasses:\n'
            "  general: {default: true}\n"
            "  high-performance: {vcpus: 4, cpu_policy: dedicated, numa_nodes: 1,"
            f" exclusive: none, smt: {smt}}}\n"
        )
        ours = filters.PerfVMFilter()
        theirs = numa_topology_filter.NUMATopologyFilter()
        rng = random.Random(20)
        verdicts = collections.Counter()
        for number in range(self.STATES):
            make = rng.choice((random_hosts.topology, random_hosts.paged_topology))
            state = states.host_state("host", make(rng))
            pages = rng.choice(
                [{}, *({"hw:mem_page_size": s} for s in ("1GB", "small"))]
            )
            spec = states.request_spec(
                vcpus=4,
                memory_mb=rng.choice([1, 8, 64]) * 1024,
                extra_specs=states.HP_SPECS | pages,
            )
            passes = ours.host_passes(state, spec)
            verdicts[passes] += 1
            if passes:
                where = f"state {number}: {state.numa_topology}"
                self.assertTrue(theirs.host_passes(state, spec), where)
        # Otherwise the states would prove nothing.
        self.assertGreater(min(verdicts[True], verdicts[False]), self.STATES // 10)

# SPDX-License-Identifier: Apache-2.0
import collections
import copy
import os
import random
from unittest import mock

import fixtures
import testtools
from nova import conf as nova_conf
from nova import objects
from nova.pci import stats
from nova.scheduler.filters import numa_topology_filter
from nova.virt import hardware
from oslo_config import fixture as config_fixture

from nova_perfvm.scheduler import numa_filter
from tests.unit.scheduler import random_hosts, states

REQUESTS = int(os.environ.get("PERFVM_NUMA_REQUESTS", "100"))


def asked():
    """Count how often Nova is asked whether a topology fits."""
    fit = hardware.numa_fit_instance_to_host
    return mock.patch.object(hardware, "numa_fit_instance_to_host", side_effect=fit)


def primitive(value):
    """Return all that an object of Nova's holds; the order of sets is chance."""
    if hasattr(value, "obj_to_primitive"):
        value = value.obj_to_primitive()
    if isinstance(value, dict):
        return {key: primitive(each) for key, each in value.items()}
    several = isinstance(value, list | tuple | set)
    return sorted(map(primitive, value), key=repr) if several else value


class NUMAFilterCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.filter = numa_filter.PerfVMNUMATopologyFilter()

    def passing(self, hosts, spec):
        return [host.host for host in self.filter.filter_all(hosts, spec)]


def kinds(spec, host):
    """Return which of what makes the arithmetic hard a request and a host have."""
    specs = spec.flavor.extra_specs
    return {
        kind
        for kind, has in {
            "any": True,
            "threads": bool(host.numa_topology and host.numa_topology.has_threads),
            "page size": "hw:mem_page_size" in specs,
            "pages on one node": "hw:mem_page_size" in specs
            and bool(spec.numa_topology and len(spec.numa_topology) == 1)
            and not spec.pci_requests.requests,
            "several nodes": bool(spec.numa_topology and len(spec.numa_topology) > 1),
            "masks of nodes": "hw:numa_cpus.0" in specs,
            "mixed": specs.get("hw:cpu_policy") == "mixed",
            "emulator": specs.get("hw:emulator_threads_policy") == "isolate",
            "devices": bool(spec.pci_requests.requests),
            "networks": "network_metadata" in spec,
            "several candidates": len(host.allocation_candidates) > 1,
            "rebuild": bool(spec.scheduler_hints),
        }.items()
        if has
    }


class DifferentialTest(NUMAFilterCase):
    """Nova's filter and ours, on the same hosts and requests."""

    def left(self, host):
        """Return what a filter leaves behind on a host."""
        limits = host.limits.get("numa_topology")
        return (
            limits and primitive(limits),
            host.allocation_candidates,
            host.numa_topology and primitive(host.numa_topology),
            host.pci_stats.pools,
        )

    def setUp(self):
        super().setUp()
        # Of impossible wishes Nova warns.
        self.useFixture(fixtures.FakeLogger())
        self.config = self.useFixture(config_fixture.Config(nova_conf.CONF))

    def test_verdicts_and_what_is_left_behind_are_novas(self):
        seed = int(os.environ.get("PERFVM_RANDOM_SEED", "34"))
        rng = random.Random(seed)
        nova = numa_topology_filter.NUMATopologyFilter()
        verdicts = collections.Counter()
        for number in range(REQUESTS):
            self.config.config(
                packing_host_numa_cells_allocation_strategy=random_hosts.maybe(rng),
                group="compute",
            )
            wishes, topology = rng.choices(random_hosts.SCENES, (2, 1))[0]
            spec = random_hosts.request(rng, wishes)
            before = primitive(spec)
            hosts = random_hosts.hosts(rng, topology)
            found = [kinds(spec, host) for host in hosts]
            theirs = copy.deepcopy(hosts)
            expected = [host.host for host in nova.filter_all(theirs, spec)]
            where = f"request {number} of seed {seed}: {spec.flavor.extra_specs}"
            self.assertEqual(expected, self.passing(hosts, spec), where)
            for ours, other in zip(hosts, theirs, strict=True):
                self.assertEqual(self.left(other), self.left(ours), where)
            self.assertEqual(before, primitive(spec), where)
            for host, of in zip(hosts, found, strict=True):
                verdicts.update((kind, host.host in expected) for kind in of)
        # Each came up with either outcome, or the comparison says little.
        for kind in {kind for kind, _ in verdicts} - {"rebuild"}:
            for verdict in (True, False):
                self.assertGreater(verdicts[kind, verdict], REQUESTS // 100, kind)
        # Of a rebuild Nova asks nothing.
        self.assertGreater(verdicts["rebuild", True], REQUESTS // 100)
        self.assertEqual(0, verdicts["rebuild", False])


class AlikeTest(NUMAFilterCase):
    def setUp(self):
        super().setUp()
        self.spec = states.request_spec()
        self.hosts = [states.host_state(f"hp{number}") for number in range(5)]

    def judged(self, expected, spec=None, passing=5):
        """Check how often Nova is asked, and how many hosts pass."""
        with asked() as fit:
            found = self.passing(self.hosts, spec or self.spec)
        self.assertEqual((expected, passing), (fit.call_count, len(found)))

    def test_hosts_that_are_alike_are_judged_once(self):
        self.judged(1)
        # The next request is judged anew.
        for host in self.hosts:
            for cell in host.numa_topology.cells:
                cell.pin_cpus({min(cell.pcpuset)})
        self.judged(1, passing=0)
        self.assertEqual([[]] * 5, [host.allocation_candidates for host in self.hosts])

    def test_what_differs_is_judged_anew(self):
        first, second, third, *_ = self.hosts
        first.numa_topology.cells[1].pin_cpus({20})
        second.numa_topology.cells[0].memory_usage = 1
        third.ram_allocation_ratio = 1.5
        self.judged(4)
        # What else a cell holds is part of its state.
        for number, host in enumerate(self.hosts):
            host.numa_topology.cells[0].of_a_release_to_come = number
        self.judged(5)

    def test_who_asks_nothing(self):
        self.judged(0, states.request_spec(vcpus=2, extra_specs={}))
        for host in self.hosts:
            for cell in host.numa_topology.cells:
                cell.pin_cpus(set(cell.pcpuset))
        rebuild = {"_nova_check_type": ["rebuild"]}
        self.judged(0, states.request_spec(hints=rebuild))

    def test_devices_that_tell_no_node(self):
        # On hosts of several nodes Nova itself wants to know it.
        host = states.host_state("one", states.numa_topology("1x20"))
        host.pci_stats = stats.PciDeviceStats(host.numa_topology)
        host.pci_stats.pools.append({"count": 1, "tags": {}})
        for judge in (numa_topology_filter.NUMATopologyFilter(), self.filter):
            self.assertEqual([host], list(judge.filter_all([host], self.spec)))

    def test_a_state_that_cannot_be_compared_is_judged_by_novas_own_code(self):
        class Unhashable:
            __hash__ = None

        for host in self.hosts[:2]:
            host.numa_topology.cells[0].of_a_release_to_come = Unhashable()
        self.judged(3)

    def test_hosts_share_no_network_metadata(self):
        self.spec.network_metadata = objects.NetworkMetadata(
            physnets=set(), tunneled=False
        )
        first, second, *_ = self.hosts
        self.assertEqual(["hp0", "hp1"], self.passing([first, second], self.spec))
        first.limits["numa_topology"].network_metadata.physnets.add("left")
        limits = second.limits["numa_topology"]
        self.assertEqual(set(), limits.network_metadata.physnets)
        self.assertEqual(set(), self.spec.network_metadata.physnets)


class ReplacedTest(NUMAFilterCase):
    """Where Nova's method is not the known one, it is called for each host."""

    def test_another_method_is_called(self):
        class Changed(numa_filter.PerfVMNUMATopologyFilter):
            def host_passes(self, host_state, _spec_obj):
                return host_state.host == "hp1"

        log = self.useFixture(fixtures.FakeLogger())
        hosts = [states.host_state(f"hp{number}") for number in range(3)]
        found = Changed().filter_all(hosts, states.request_spec())
        self.assertEqual(["hp1"], [host.host for host in found])
        self.assertIn("judges each host", log.output)

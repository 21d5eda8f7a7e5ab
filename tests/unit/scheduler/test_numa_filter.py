# SPDX-License-Identifier: Apache-2.0
import collections
import copy
import os
import random
from unittest import mock

import fixtures
import testtools
from nova.scheduler.filters import numa_topology_filter
from nova.virt import hardware

from nova_perfvm.scheduler import numa_filter
from tests.unit.scheduler import random_hosts, states

REQUESTS = int(os.environ.get("PERFVM_NUMA_REQUESTS", "300"))
PINNED_ON_2X20 = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}


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
    if isinstance(value, list | tuple | set):
        return sorted(map(primitive, value), key=repr)
    return value


class NUMAFilterCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.filter = numa_filter.PerfVMNUMATopologyFilter()

    def passing(self, hosts, spec):
        return [host.host for host in self.filter.filter_all(hosts, spec)]


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

    def test_verdicts_and_what_is_left_behind_are_novas(self):
        seed = int(os.environ.get("PERFVM_RANDOM_SEED", "34"))
        rng = random.Random(seed)
        nova = numa_topology_filter.NUMATopologyFilter()
        verdicts = collections.Counter()
        for number in range(REQUESTS):
            spec = random_hosts.request(rng)
            before = primitive(spec)
            hosts = random_hosts.hosts(rng)
            theirs = copy.deepcopy(hosts)
            expected = [host.host for host in nova.filter_all(theirs, spec)]
            where = f"request {number} of seed {seed}: {spec.flavor.extra_specs}"
            self.assertEqual(expected, self.passing(hosts, spec), where)
            for ours, other in zip(hosts, theirs, strict=True):
                self.assertEqual(self.left(other), self.left(ours), where)
            self.assertEqual(before, primitive(spec), where)
            kind = "pci" if spec.pci_requests.requests else "plain"
            for host in hosts:
                verdicts[kind, host.host in expected] += 1
        # Each outcome came up, or the comparison says little.
        for kind in ("plain", "pci"):
            for verdict in (True, False):
                self.assertGreater(verdicts[kind, verdict], REQUESTS // 20, verdicts)


class AlikeTest(NUMAFilterCase):
    def setUp(self):
        super().setUp()
        self.spec = states.request_spec()
        self.hosts = [states.host_state(f"hp{number}") for number in range(5)]

    def test_hosts_that_are_alike_are_judged_once(self):
        with asked() as fit:
            self.assertEqual(5, len(self.passing(self.hosts, self.spec)))
        self.assertEqual(1, fit.call_count)

    def test_what_differs_is_judged_anew(self):
        def pin(host):
            host.numa_topology.cells[1].pin_cpus({20})

        def fill(host):
            host.numa_topology.cells[0].memory_usage = 1

        def overcommit(host):
            host.ram_allocation_ratio = 1.5

        for host, change in zip(self.hosts, (pin, fill, overcommit), strict=False):
            change(host)
        with asked() as fit:
            self.assertEqual(5, len(self.passing(self.hosts, self.spec)))
        self.assertEqual(4, fit.call_count)

    def test_the_next_request_is_judged_anew(self):
        self.passing(self.hosts, self.spec)
        for host in self.hosts:
            for cell in host.numa_topology.cells:
                cell.pin_cpus({min(cell.pcpuset)})
        self.assertEqual([], self.passing(self.hosts, self.spec))
        self.assertEqual([[]] * 5, [host.allocation_candidates for host in self.hosts])

    def test_general_vms_ask_nothing(self):
        general = states.request_spec(vcpus=2, extra_specs={})
        with asked() as fit:
            self.assertEqual(5, len(self.passing(self.hosts, general)))
        self.assertEqual(0, fit.call_count)

    def test_one_host_is_judged_by_novas_own_code(self):
        self.assertTrue(self.filter.host_passes(self.hosts[0], self.spec))

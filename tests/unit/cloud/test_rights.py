# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.cloud import rights
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.facts.snapshot import ASSUMED, Server, ServerCell
from tests.unit.cloud.fake_api import DEDICATED, FakeAPI


class GuardedAPI(FakeAPI):
    """Refuses what is in ``forbidden``: paths, or keys of lists."""

    def __init__(self, *forbidden, status=403):
        super().__init__(hosts=2)
        self.forbidden = forbidden
        self.status = status
        self.add_server("a", "h0", DEDICATED)

    def _guard(self, what):
        if any(part in what for part in self.forbidden):
            message = f"{what}: {self.status}: this needs the rights"
            raise CloudError(message, self.status)

    def nova_list(self, path, key):
        self._guard(path)
        return super().nova_list(path, key)

    def nova(self, method, path, body=None, key=""):
        self._guard(path)
        return super().nova(method, path, body, key)

    def placement(self, method, path, body=None, key=""):
        self._guard(path)
        return super().placement(method, path, body, key)


class PartialTest(testtools.TestCase):
    def take(self, *forbidden):
        return read_snapshot(GuardedAPI(*forbidden), partial=True)

    def test_each_list_that_is_refused_is_a_gap(self):
        for what, path in (
            ("providers", "/resource_providers"),
            ("names", "/traits?"),
            ("services", "/os-services"),
            ("hypervisors", "/os-hypervisors"),
            ("aggregates", "/os-aggregates"),
            ("flavors", "/flavors"),
            ("servers", "/servers/detail"),
            ("migrations", "/os-migrations"),
        ):
            with self.subTest(what):
                (gap,) = self.take(path).gaps
                self.assertTrue(gap.startswith(f"{what}: "), gap)
                self.assertIn("this needs the rights", gap)
                for rule in rights.RULES[what]:
                    self.assertIn(rule, gap)
        self.assertEqual((), self.take().gaps)

    def test_what_takes_requests_of_its_own(self):
        api = GuardedAPI("/allocations/", "/topology")
        api.allocations["h0"]["unknown"] = {"resources": {"VCPU": 1}}
        providers, topologies = read_snapshot(api, partial=True).gaps
        self.assertIn("placement:allocations:list", providers)
        self.assertIn("the CPUs and NUMA nodes of 1 pinned server", topologies)

    def test_all_of_them(self):
        found = self.take("/")
        self.assertEqual(((), (), ()), (found.hosts, found.servers, found.providers))
        self.assertEqual(set(rights.RULES), {g.split(":")[0] for g in found.gaps})

    def test_without_being_asked_for_it_is_an_error(self):
        self.assertRaises(CloudError, read_snapshot, GuardedAPI("/os-aggregates"))

    def test_no_other_failure_is_a_gap(self):
        api = GuardedAPI("/os-aggregates", status=500)
        self.assertRaises(CloudError, read_snapshot, api, partial=True)

    def test_hosts_that_only_placement_has(self):
        found = self.take("/os-hypervisors")
        self.assertEqual(["h0", "h1"], [host.host for host in found.hosts])
        self.assertEqual("s-h0", found.hosts[0].service)
        self.assertEqual((), found.hosts[0].cells)
        found = self.take("/os-hypervisors", "/os-services")
        self.assertEqual(["h0", "h1"], [host.host for host in found.hosts])

    def test_hosts_that_only_nova_has_are_taken_to_have_no_cpu_sets(self):
        host, _ = self.take("/resource_providers").hosts
        self.assertEqual(ASSUMED, host.cells_source)
        self.assertEqual(host.cells[0].pcpuset, host.cells[0].cpuset)
        self.assertEqual(40, sum(len(cell.cpuset) for cell in host.cells))


class HiddenTest(testtools.TestCase):
    def test_what_servers_do_not_show(self):
        cell = ServerCell(None, frozenset({0}), 1024)
        plain = Server("a", "a", "h1", "ACTIVE", 1, {})
        asks = Server("b", "b", None, "ACTIVE", 1, DEDICATED)
        self.assertEqual([], list(rights.hidden([plain])))
        homeless, untold = rights.hidden([plain, asks])
        self.assertIn("hosts of 1 of 2", homeless)
        self.assertIn(rights.RULES["servers"][1], homeless)
        self.assertIn("NUMA nodes of 1 pinned", untold)
        half = Server("c", "c", "h1", "ACTIVE", 1, {}, cells=(cell,))
        self.assertFalse(rights.has_host_nodes(half))
        self.assertTrue(rights.has_host_nodes(plain))

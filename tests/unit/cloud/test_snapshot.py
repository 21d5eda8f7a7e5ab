# SPDX-License-Identifier: Apache-2.0

import ast
import collections
import dataclasses
import inspect
import urllib.parse

import testtools
from nova.compute import api as compute_api
from nova.compute import manager, resource_tracker
from nova.conductor import manager as conductor
from nova.conductor.tasks import cross_cell_migrate, live_migrate, migrate
from nova.db.main import api as db
from nova.virt.libvirt import migration as libvirt_migration

from nova_perfvm import constants as const
from nova_perfvm.cloud import snapshot as taking
from nova_perfvm.cloud.errors import CloudError, NotThereError

CPU_INFO = {"topology": {"cells": 2, "sockets": 1, "cores": 20, "threads": 1}}
DEDICATED = {const.CPU_POLICY: "dedicated"}


class FakeAPI:
    """Answers as Nova, Placement and Glance do, and counts.

    Real ones answer in the functional tests; here are clouds that those cannot
    be: large ones, and such that are half gone.
    """

    def __init__(self, hosts=1):
        self.asked = collections.Counter()
        self.hosts = [f"h{number}" for number in range(hosts)]
        self.servers = []
        self.allocations = collections.defaultdict(dict)
        self.later = {}
        self.glance = [
            {"id": "image", "name": "i", "hw_x": "1"}
            | {"owner": "me", "visibility": "private"}
        ]
        self.resource_classes = ("PCPU",)
        # Hosts of cells that are down, and which is the first in the order in which
        # Nova lists hypervisors.
        self.lost = []
        self.first_down = None
        self.no_hypervisors = None
        self.provider_names = {}

    def add_server(self, name, host, specs=(), node=None, **members):
        self.servers.append(
            {
                "id": name,
                "name": name,
                "status": "ACTIVE",
                "image": {"id": "image"},
                "OS-EXT-SRV-ATTR:host": host,
                "OS-EXT-SRV-ATTR:hypervisor_hostname": node or host,
                "flavor": {
                    "original_name": "f",
                    "vcpus": 2,
                    "ram": 1024,
                    "disk": 1,
                    "extra_specs": dict(specs),
                },
                **members,
            }
        )
        self.allocations[host][name] = {"resources": {"MEMORY_MB": 1024}}

    def project(self):
        return "mine"

    def images(self):
        if isinstance(self.glance, Exception):
            raise self.glance
        return iter(self.glance)

    def nova_list(self, path, key, marker_key="id"):
        self.asked[path.split("?")[0]] += 1
        if key == "hypervisors":
            return iter(self._hypervisors("1000"))
        servers = [server for server in self.servers if "name" in server]
        return iter({"servers": servers}.get(key, []))

    def _hypervisors(self, limit, marker=None):
        if self.no_hypervisors:
            raise self.no_hypervisors
        first = self.hosts.index(marker) + 1 if marker else 0
        last = min(first + int(limit), len(self.hosts))
        if self.first_down is not None and last > self.first_down:
            raise CloudError("Nova: GET /os-hypervisors/detail: 500: x", 500)
        return [self._hypervisor(host) for host in self.hosts[first:last]]

    def nova(self, method, path, body=None, key=""):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))
        path = urllib.parse.urlsplit(path).path
        if path.endswith("/topology"):
            self.asked["topology"] += 1
            cell = {
                "host_node": 1,
                "vcpu_set": [0, 1],
                "memory_mb": 1024,
                "cpu_pinning": {"0": 20, "1": 21},
                "siblings": [],
            }
            return {"nodes": [cell], "pagesize_kb": None}
        self.asked[path] += 1
        if key == "hypervisors":
            return self._hypervisors(**query)
        if path == "/servers":
            return self.servers
        if path.startswith("/servers/"):
            if path.rsplit("/", 1)[1] not in self.later:
                raise NotThereError("404", 404)
            return self.later[path.rsplit("/", 1)[1]]
        service = {"binary": "nova-compute", "state": "up", "status": "enabled"}
        return {
            "/os-services": [
                {"id": f"s-{host}", "host": host, **service}
                for host in self.hosts
                if host not in self.lost
            ]
            + [
                {"binary": "nova-compute", "host": host, "status": "UNKNOWN"}
                for host in self.lost
            ],
            "/os-aggregates": [],
        }[path]

    def placement(self, method, path, body=None, key=""):
        path = urllib.parse.urlsplit(path).path
        if path == "/resource_providers":
            return [
                {
                    "uuid": host,
                    "name": self.provider_names.get(host, host),
                    "root_provider_uuid": host,
                    "parent_provider_uuid": None,
                }
                for host in self.hosts
            ]
        if path in {"/traits", "/resource_classes"}:
            return []
        _, kind, name, *_ = path.split("/")
        if kind == "allocations":
            return {} if name.startswith("gone") else {"h0": {}}
        self.asked["provider"] += 1
        inventory = {
            "total": 40,
            "max_unit": 40,
            "min_unit": 1,
            "step_size": 1,
            "reserved": 0,
            "allocation_ratio": 1.0,
        }
        return {
            "resource_provider_generation": 1,
            "inventories": dict.fromkeys(self.resource_classes, inventory),
            "traits": [],
            "aggregates": [],
            "allocations": self.allocations[name],
        }

    def _hypervisor(self, host):
        return {
            "id": host,
            "hypervisor_hostname": host,
            "service": {"host": host},
            "state": "up",
            "status": "enabled",
            "cpu_info": CPU_INFO,
        }


class TakeTest(testtools.TestCase):
    def test_a_large_cloud_takes_few_requests(self):
        api = FakeAPI(hosts=100)
        for number in range(1000):
            specs = DEDICATED if number < 200 else {}
            api.add_server(f"s{number}", f"h{number % 100}", specs)
        told = []

        found = taking.take(api, progress=lambda *line: told.append(line))

        self.assertEqual((100, 1000), (len(found.hosts), len(found.servers)))
        self.assertEqual(400, api.asked["provider"])
        self.assertEqual(200, api.asked["topology"])
        self.assertLess(sum(api.asked.values()), 625)
        self.assertIn(("resource providers", 100, 100), told)
        self.assertIn(("topologies", 200, 200), told)
        self.assertIn(("servers", 1000, 1000), told)

    def test_who_is_asked_for_a_topology(self):
        volume = {"image": ""}
        for classes, specs, members, expected in (
            (["PCPU"], {}, {}, 0),
            (["PCPU"], {}, volume, 0),
            (["PCPU"], {"hw:numa_nodes": "1"}, {}, 1),
            (["PCPU"], {const.MEM_PAGE_SIZE: "large"}, {}, 1),
            (["PCPU"], {"hw:vif_multiqueue_enabled": "true"}, {}, 0),
            # A volume's image could pin it, and VCPU does not tell.
            (["VCPU"], {}, volume, 1),
            (["VCPU"], {}, {}, 0),
            # As general flavors say it; Nova refuses images that pin then.
            (["VCPU"], {const.CPU_POLICY: "shared"}, {}, 0),
            (["VCPU"], {const.CPU_POLICY: "shared"}, volume, 0),
        ):
            with self.subTest(classes=classes, specs=specs, members=members):
                api = FakeAPI()
                api.resource_classes = classes
                api.add_server("s", "h0", specs, **members)
                taking.take(api)
                self.assertEqual(expected, api.asked["topology"])

    def test_an_image_can_pin(self):
        api = FakeAPI()
        api.glance[0]["hw_cpu_policy"] = "dedicated"
        api.add_server("s", "h0")
        (server,) = taking.take(api).servers
        self.assertEqual({20, 21}, server.pinned_cpus)
        self.assertTrue(server.pinned)

    def test_only_properties_are_kept_of_images(self):
        (image,) = taking.take(FakeAPI()).images
        self.assertEqual({"hw_x": "1"}, image.properties)

    def test_whose_images_they_are(self):
        found = taking.take(FakeAPI())
        (image,) = found.images
        self.assertEqual("mine", found.project)
        self.assertEqual(("me", "private"), (image.owner, image.visibility))
        for project, visibility, expected in (
            ("mine", "private", True),
            ("mine", "community", True),
            ("mine", "public", False),
            ("me", "shared", False),
            ("", "shared", True),
        ):
            with self.subTest(project=project, visibility=visibility):
                seen = dataclasses.replace(image, visibility=visibility)
                self.assertEqual(expected, seen.belongs_to_tenant(project))

    def test_without_glance(self):
        api = FakeAPI()
        api.glance = CloudError("Glance does not answer")
        found = taking.take(api)
        self.assertIsNone(found.images)
        self.assertEqual(("images: Glance does not answer",), found.gaps)

    def test_faults_that_are_in_no_list(self):
        """As up to 2025.2 those of servers in another cell than nova-api's own."""
        api = FakeAPI()
        for name, status in (("a", "ACTIVE"), ("b", "ERROR"), ("c", "ERROR")):
            api.add_server(name, "h0", status=status)
        # A third was deleted meanwhile.
        api.later["b"] = api.servers[1] | {"fault": {"message": "No valid host"}}
        found = taking.take(api)
        self.assertEqual(
            {"a": "", "b": "No valid host", "c": ""},
            {server.id: server.fault for server in found.servers},
        )
        self.assertEqual(0, api.asked["/servers/a"])

    def test_a_cell_that_was_down_for_a_moment(self):
        """Its hosts count as not seen, as lists from before lack what they have."""
        api = FakeAPI(2)
        api.lost = ["h0"]
        api.allocations["h0"]["lost"] = {"resources": {"PCPU": 2}}
        found = taking.take(api)
        (gap,) = found.gaps
        self.assertIn("cells: Nova cannot reach the cell of host(s) h0:", gap)
        self.assertEqual(("h0",), found.unseen_hosts)
        self.assertEqual(["h1"], [host.host for host in found.hosts])
        self.assertEqual(
            [False, True], [found.is_seen(provider) for provider in found.providers]
        )
        # Nova, which would wait for the cell, is not asked for its servers.
        self.assertNotIn("/servers/lost", api.asked)

    def test_a_cell_that_is_down(self):
        """Hypervisors are listed up to it, whatever the size of the page."""
        for live in (0, 1, 63, 64, 65, 130):
            api = FakeAPI(live + 4)
            api.lost = [f"h{live + n}" for n in range(4)]
            api.first_down = live
            found = taking.take(api)
            self.assertEqual(set(api.hosts[:live]), {host.host for host in found.hosts})
            self.assertLess(api.asked["/os-hypervisors/detail"], 16)
            (gap,) = found.gaps
            self.assertIn(f"{', '.join(api.lost[:3])} and 1 more", gap)

    def test_cells_behind_one_that_is_down(self):
        """Services and servers tell which hosts there are, and what their nodes are."""
        api = FakeAPI(6)
        api.first_down = 1
        api.lost = ["h1"]
        api.provider_names = {"h2": "h2.example", "h3": "n3", "h5": "n5"}
        api.add_server("s", "h3", node="n3")
        stub = {"id": "lost", "status": "UNKNOWN", "links": []}
        api.servers.append(stub)
        api.allocations["h1"]["lost"] = {"resources": {"PCPU": 2}}
        found = taking.take(api)
        self.assertEqual(
            [
                ("h0", "h0", "2x20"),
                ("h2", "h2.example", "None"),
                ("h3", "n3", "None"),
                ("h4", "h4", "None"),
            ],
            [(host.host, host.node, str(host.shape)) for host in found.hosts],
        )
        self.assertEqual(["h0", "h2", "h3", "h4"], [h.provider for h in found.hosts])
        self.assertEqual(
            ["cells: ", "hypervisors: ", "hypervisors: "],
            [gap.partition(": ")[0] + ": " for gap in found.gaps],
        )
        self.assertIn("host(s) h2, h3, h4 are not known", found.gaps[1])
        self.assertIn("called like host(s) h5", found.gaps[2])
        self.assertFalse(found.server_by_id["lost"].known)

    def test_hypervisors_without_a_cell_that_is_down(self):
        api = FakeAPI(2)
        api.first_down = 1
        exc = self.assertRaises(CloudError, taking.take, api)
        self.assertEqual(500, exc.status)
        api.lost = ["h1"]
        api.no_hypervisors = CloudError("rights of an administrator", 403)
        exc = self.assertRaises(CloudError, taking.take, api)
        self.assertEqual("rights of an administrator", str(exc))

    def test_what_changes_meanwhile(self):
        """Deleted since, soft deleted, and what nobody knows."""
        api = FakeAPI()
        for consumer in ("gone", "soft", "leak"):
            api.allocations["h0"][consumer] = {"resources": {"PCPU": 2}}
        lists = FakeAPI()
        lists.add_server("soft", "h0", status="SOFT_DELETED")
        api.later = {"soft": lists.servers[0]}

        found = taking.take(api)

        self.assertEqual({"soft", "leak"}, set(found.providers[0].allocations))
        self.assertEqual(["soft"], [server.id for server in found.servers])

    def test_half_an_answer(self):
        api = FakeAPI()
        api.add_server("s", "h0")
        del api.servers[0]["flavor"]["vcpus"]
        exc = self.assertRaises(CloudError, taking.take, api)
        self.assertIn("not complete (KeyError('vcpus'))", str(exc))
        self.assertNotIn("\n", str(exc))

    def test_a_provider_that_goes_while_it_is_read(self):
        api = FakeAPI(2)
        original = api.placement

        def placement(method, path, body=None, key=""):
            if path.startswith("/resource_providers/h1/"):
                raise NotThereError("404", 404)
            return original(method, path, body, key)

        api.placement = placement
        found = taking.take(api)
        self.assertEqual(["h0"], [provider.name for provider in found.providers])
        # Its hypervisor is listed still; of its cells nothing is known.
        self.assertEqual([2, 0], [len(host.cells) for host in found.hosts])

    def test_an_error_ends_it(self):
        api = FakeAPI(50)

        def placement(method, path, body=None, key=""):
            raise CloudError("Placement does not answer")

        api.placement = placement
        exc = self.assertRaises(CloudError, taking.take, api)
        self.assertEqual("Placement does not answer", str(exc))


class MigrationStatusTest(testtools.TestCase):
    def test_every_status_that_is_not_over_is_asked_for(self):
        modules = (
            compute_api,
            conductor,
            cross_cell_migrate,
            libvirt_migration,
            live_migrate,
            manager,
            migrate,
            resource_tracker,
        )
        given = {status for module in modules for status in _statuses(module)}
        # Nova has no name for these but in this query.
        query = inspect.getsource(
            inspect.unwrap(db.migration_get_in_progress_by_host_and_node)
        )
        over = {text for text in _texts(ast.parse(query)) if text in given}
        self.assertIn("completed", over)
        self.assertEqual(given - over, set(taking.NOT_OVER))


def _statuses(module):
    """Return the statuses that the code of a module gives to migrations."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Assign):
            targets = map(ast.unparse, node.targets)
            if any(target.endswith("migration.status") for target in targets):
                yield from _texts(node.value)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.endswith("_set_migration_status"):
                yield from _texts(node.args[-1])
            for keyword in node.keywords:
                if keyword.arg == "status" and called.endswith(".Migration"):
                    yield from _texts(keyword.value)


def _texts(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value

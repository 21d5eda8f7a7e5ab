# SPDX-License-Identifier: Apache-2.0

import dataclasses
import inspect
import re

import testtools
from nova.compute import api as compute_api
from nova.compute import manager, resource_tracker
from nova.conductor import manager as conductor
from nova.conductor.tasks import cross_cell_migrate, live_migrate, migrate
from nova.db.main import api as db
from nova.virt.libvirt import migration as libvirt_migration

from nova_perfvm import constants as const
from nova_perfvm.cloud.errors import CloudError, NotThereError
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.facts import snapshot
from nova_perfvm.facts.migration_states import UNFINISHED
from tests.unit.cloud.fake_api import DEDICATED, FakeAPI

QUOTED = r"['\"]([^'\"]+)['\"]"
# How Nova's code gives a migration its status.
GIVEN = (
    rf"migration\.status = {QUOTED}",
    rf"_set_migration_status\([^)]*?{QUOTED}\)",
    rf"\.Migration\([^)]*?status={QUOTED}",
)


class TakeTest(testtools.TestCase):
    def test_a_large_cloud_takes_few_requests(self):
        api = FakeAPI(hosts=100)
        for number in range(1000):
            specs = DEDICATED if number < 200 else {}
            api.add_server(f"s{number}", f"h{number % 100}", specs)
        told = []

        found = read_snapshot(api, progress=lambda *line: told.append(line))

        self.assertEqual((100, 1000), (len(found.hosts), len(found.servers)))
        self.assertEqual(400, api.asked["provider"])
        self.assertEqual(200, api.asked["topology"])
        self.assertLess(sum(api.asked.values()), 625)
        self.assertIn(("resource providers", 100, 100), told)
        self.assertIn(("topologies", 200, 200), told)
        self.assertIn(("servers", 1000, 1000), told)

    def test_detached_children_of_nodes_without_dedicated_cpus_between(self):
        """NUMA nodes without dedicated CPUs have no child under cells."""
        for shape, hosts, nodes, requests in (
            # For each host one for the tree, one for letters, one for each node, and
            # one more.
            ({"cells": 4}, 1, (1,), 7),
            ({"cells": 4}, 1, (0, 2), 7),
            ({"cells": 4}, 1, (1, 3), 7),
            # One for each tree, and one for all providers.
            ({"cells": None}, 1, (1, 3), 2),
            ({"cells": None}, 3, (1, 12), 4),
        ):
            api = FakeAPI(hosts=hosts)
            api.shape.update(shape)
            api.strangers = [f"h0_perfvm_cell_{node}" for node in nodes]
            found = read_snapshot(api, hosts=[*map(api._hypervisor, api.hosts)])
            names = {p.name for p in found.providers if p.name not in api.hosts}
            self.assertEqual({*api.strangers}, names)
            self.assertEqual(requests, api.asked["provider list"])

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
            api = FakeAPI()
            api.resource_classes = classes
            api.add_server("s", "h0", specs, **members)
            read_snapshot(api)
            case = (classes, specs, members)
            self.assertEqual(expected, api.asked["topology"], case)

    def test_an_image_can_pin(self):
        api = FakeAPI()
        api.glance[0]["hw_cpu_policy"] = "dedicated"
        api.add_server("s", "h0")
        (server,) = read_snapshot(api).servers
        self.assertEqual({20, 21}, server.pinned_cpus)
        self.assertTrue(server.pinned)

    def test_whose_images_they_are(self):
        found = read_snapshot(FakeAPI())
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
            seen = dataclasses.replace(image, visibility=visibility)
            self.assertEqual(expected, seen.belongs_to_tenant(project), project)
        api = FakeAPI()
        api.glance = CloudError("Glance does not answer")
        found = read_snapshot(api)
        self.assertIsNone(found.images)
        self.assertEqual(("images: Glance does not answer",), found.gaps)

    def test_volumes(self):
        def volume(name, volume_type, *attached):
            attachments = [{"server_id": s, "device": d} for s, d in attached]
            return {"id": name, "volume_type": volume_type, "attachments": attachments}

        api = FakeAPI()
        self.assertIsNone(read_snapshot(api).volume_types)
        for name in ("a", "b", "c"):
            disk = {"OS-EXT-SRV-ATTR:root_device_name": "/dev/vda"}
            api.add_server(name, "h0", **disk if name != "c" else {})
        api.cinder = {
            "/types": [{"name": "nvme-tcp"}, {"name": "fast"}],
            "/volumes/detail": [
                volume("data", "fast", ("a", "/dev/vdb")),
                volume("root", "nvme-tcp", ("a", "/dev/vda")),
                volume("other", None, ("b", "/dev/vda")),
                volume("new", "fast", ("c", None)),
            ],
        }
        found = read_snapshot(api)
        self.assertEqual(("fast", "nvme-tcp"), found.volume_types)
        self.assertEqual(
            {"a": ("root", "nvme-tcp"), "b": ("other", "")},
            {
                server: (volume.id, volume.volume_type)
                for server, volume in found.root_volume_by_server.items()
            },
        )
        api.cinder["/types"] = CloudError("Cinder does not answer")
        found = read_snapshot(api)
        self.assertIsNone(found.volume_types)
        self.assertEqual(("volumes: Cinder does not answer",), found.gaps)

    def test_server_groups(self):
        api = FakeAPI()
        rules = {"max_server_per_host": "2"}
        api.groups = [
            {"id": f"g{n}", "name": "n", "policy": "anti-affinity", "rules": rules}
            | {"members": ["a"]}
            for n in range(3)
        ]
        found = read_snapshot(api)
        self.assertEqual(["g0", "g1", "g2"], [g.id for g in found.server_groups])
        self.assertEqual(2, found.server_groups[0].max_server_per_host)
        self.assertEqual(found, snapshot.loads(snapshot.dumps(found)))
        # A cloud without any, and who may not see those of all projects.
        api.groups = []
        self.assertEqual((), read_snapshot(api).server_groups)
        api.groups = CloudError("Nova: this needs the rights of an administrator", 403)
        found = read_snapshot(api)
        self.assertIsNone(found.server_groups)
        self.assertIn("server groups: Nova: this needs the rights", found.gaps[0])
        self.assertIsNone(snapshot.loads(snapshot.dumps(found)).server_groups)

    def test_faults_that_are_in_no_list(self):
        """As up to 2025.2 those of servers in another cell than nova-api's own."""
        api = FakeAPI()
        for name, status in (("a", "ACTIVE"), ("b", "ERROR"), ("c", "ERROR")):
            api.add_server(name, "h0", status=status)
        # A third was deleted meanwhile.
        api.later["b"] = api.servers[1] | {"fault": {"message": "No valid host"}}
        found = read_snapshot(api)
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
        found = read_snapshot(api)
        (gap,) = found.gaps
        self.assertIn("cells: Nova cannot reach the cell of host h0, or", gap)
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
            api.first_down, api.lost = live, [f"h{live}"]
            api.add_server("behind", f"h{live + 1}")
            api.servers.append({"id": "lost", "status": "UNKNOWN", "links": []})
            found = read_snapshot(api)
            self.assertEqual(set(api.hosts[:live]), {host.host for host in found.hosts})
            self.assertLess(api.asked["/os-hypervisors/detail"], 16)
            self.assertEqual(set(api.hosts[live:]), set(found.unseen_hosts))
            (gap,) = found.gaps
            self.assertIn(f"h{live + 2} and 1 more", gap)
            known = {server.id: server.known for server in found.servers}
            self.assertEqual({"lost": False, "behind": False}, known)

    def test_hypervisors_without_a_cell_that_is_down(self):
        api = FakeAPI(2)
        api.first_down = 1
        exc = self.assertRaises(CloudError, read_snapshot, api)
        self.assertEqual(500, exc.status)
        api.lost = ["h1"]
        api.no_hypervisors = CloudError("rights of an administrator", 403)
        exc = self.assertRaises(CloudError, read_snapshot, api)
        self.assertEqual("rights of an administrator", str(exc))

    def test_what_changes_meanwhile(self):
        """Deleted since, soft deleted, and what nobody knows."""
        api = FakeAPI()
        for consumer in ("gone", "soft", "leak"):
            api.allocations["h0"][consumer] = {"resources": {"PCPU": 2}}
        lists = FakeAPI()
        lists.add_server("soft", "h0", status="SOFT_DELETED")
        api.later = {"soft": lists.servers[0]}

        found = read_snapshot(api)

        self.assertEqual({"soft", "leak"}, set(found.providers[0].allocations))
        self.assertEqual(["soft"], [server.id for server in found.servers])

    def test_a_provider_that_goes_while_it_is_read(self):
        api = FakeAPI(2)
        original = api.placement

        def placement(method, path, body=None, key=""):
            if path.startswith("/resource_providers/h1/"):
                raise NotThereError("404", 404)
            return original(method, path, body, key)

        api.placement = placement
        found = read_snapshot(api)
        self.assertEqual(["h0"], [provider.name for provider in found.providers])
        # Its hypervisor is listed still; of its cells nothing is known.
        self.assertEqual([2, 0], [len(host.cells) for host in found.hosts])


class MigrationTest(testtools.TestCase):
    def test_who_is_on_the_way_between_hosts(self):
        """A revert's record ends before its server is back on the source."""
        for status, task, host, last, expected in (
            ("VERIFY_RESIZE", None, "h1", "finished", ["h0"]),
            ("REVERT_RESIZE", "resize_reverting", "h1", "reverting", ["h0"]),
            ("REVERT_RESIZE", "resize_reverting", "h1", "reverted", ["h0"]),
            # Nova has changed the server's host, and counts it on the other no more.
            ("REVERT_RESIZE", "resize_reverting", "h0", "reverted", []),
            # The revert began after the servers were listed.
            ("VERIFY_RESIZE", None, "h1", "reverted", ["h0"]),
            ("VERIFY_RESIZE", None, "h1", "confirmed", []),
            ("ACTIVE", None, "h1", "reverted", []),
        ):
            api = FakeAPI(hosts=3)
            state = {"status": status, "OS-EXT-STS:task_state": task}
            api.add_server("s", host, **state)
            for number, (source, destination, ended) in enumerate(
                (("h0", "h1", last), ("h2", "h1", "reverted"), ("h2", "h0", "error"))
            ):
                api.migrations.append(
                    {
                        "uuid": f"m{number}",
                        "instance_uuid": "s",
                        "migration_type": "resize",
                        "status": ended,
                        "source_compute": source,
                        "dest_compute": destination,
                    }
                )
            found = read_snapshot(api)
            self.assertEqual(expected, sorted(found.moving_by_host))


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
        source = "\n".join(map(inspect.getsource, modules))
        given = {text for pattern in GIVEN for text in re.findall(pattern, source)}
        # Nova has no name for these but in this query.
        query = inspect.unwrap(db.migration_get_in_progress_by_host_and_node)
        *_, code = inspect.getsource(query).partition(".status.in_(")
        over = given & set(re.findall(QUOTED, code))
        self.assertIn("completed", over)
        self.assertEqual(given - over, set(UNFINISHED))

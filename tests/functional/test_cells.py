# SPDX-License-Identifier: Apache-2.0
"""``placement: cells``: nova-compute takes the NUMA node that Placement claims.

Nova spreads VMs over the nodes of a host and the filter packs them, so where one node
has a VM already, Nova by itself would choose the other.
"""

from nova_perfvm import constants as const
from nova_perfvm.facts.children import child_name, child_uuid
from nova_perfvm.rules.enabled_filters import NOVA_FILTERS, NUMA_FILTER
from nova_perfvm.scheduler import nova_fixes
from tests.functional import base, elastic

MEMORY_MB = 8192


class TestCells(base.FunctionalTest):
    CLOUD = {"enabled_filters": (*NOVA_FILTERS, NUMA_FILTER)}  # noqa: RUF012
    FLAVORS = ()

    def setUp(self):
        super().setUp()
        self.placement = self.cloud._services.placement
        for name in (const.RC_CELL_CPU, const.RC_CELL_MEMORY):
            self.put(f"/resource_classes/{name}")
        self.put(f"/traits/{const.TRAIT_CELLS}")
        for vcpus in (4, 8, 12, 20):
            self.create_flavor(f"c{vcpus}", vcpus)
        self.create_flavor("two", 8, nodes=2)

    def put(self, path, body=None):
        answer = self.placement.put(path, body, version="1.36")
        self.assertIn(answer.status, (200, 201, 204), answer.body)

    def create_flavor(self, name, vcpus, nodes=1):
        specs = {
            "hw:cpu_policy": "dedicated",
            "hw:numa_nodes": str(nodes),
            "group_policy": "isolate",
        }
        for node in range(nodes):
            group = f"_perfvm_cell_{node}"
            specs |= {
                f"resources{group}:{const.RC_CELL_CPU}": str(vcpus // nodes),
                f"resources{group}:{const.RC_CELL_MEMORY}": str(MEMORY_MB // nodes),
                f"trait{group}:{const.TRAIT_CELLS}": "required",
            }
        self.cloud.create_flavor(name, vcpus, MEMORY_MB, extra_specs=specs)

    def start(self, host, *, cells=2, named=True):
        """Start a host whose NUMA nodes Placement knows."""
        shape, dedicated = f"{cells}x20", f"0-{cells * 20 - 1}"
        self.cloud.start_host(host, shape, dedicated=dedicated, named=named)
        root = self.cloud._services.compute_rp_uuids[host]
        for cell in range(cells):
            child = self.child(host, cell)
            body = {
                "uuid": child,
                "name": child_name(host, f"cell_{cell}"),
                "parent_provider_uuid": root,
            }
            self.placement.post("/resource_providers", body, version="1.36")
            amounts = {const.RC_CELL_CPU: 20, const.RC_CELL_MEMORY: 200 * 1024}
            inventories = {name: {"total": total} for name, total in amounts.items()}
            self.change(child, "inventories", inventories=inventories)
            self.change(child, "traits", traits=[const.TRAIT_CELLS])
        traits = [*self.cloud.traits(host), const.TRAIT_CELLS]
        self.change(root, "traits", traits=traits)
        return host

    def change(self, provider, what, **body):
        path = f"/resource_providers/{provider}"
        found = self.placement.get(path, version="1.36").body
        body["resource_provider_generation"] = found["generation"]
        self.put(f"{path}/{what}", body)

    def child(self, host, cell):
        root = self.cloud._services.compute_rp_uuids[host]
        return child_uuid(root, child_name(host, f"cell_{cell}"))

    def assert_on(self, server, host, *cells):
        """Look that Nova, Placement and libvirt have a server on the same nodes."""
        server = self.servers.show(server)
        self.assertEqual((host, ""), (server.host, server.fault))
        taken = self.cloud._allocations(server.id)
        self.assertEqual(
            cells, tuple(n for n in range(8) if self.child(host, n) in taken)
        )
        topology = self.cloud.api.api_get(f"/servers/{server.id}/topology").body
        self.assertEqual(set(cells), {node["host_node"] for node in topology["nodes"]})
        guest = self.cloud.guest(server)
        self.assertEqual(set(cells), guest.host_nodes)
        self.assertEqual(set(cells), guest.numatune_nodes)

    def cells_of(self, servers):
        """Return the nodes of servers of one node, having looked who has them."""
        found = []
        for server in servers:
            self.assertEqual("ACTIVE", server.status, server.fault)
            taken = self.cloud._allocations(server.id)
            on = [n for n in range(8) if self.child(server.host, n) in taken]
            self.assert_on(server, server.host, *on)
            found.append((server.host, *on))
        return sorted(found)

    def delete(self, servers):
        for server in servers:
            self.servers.delete(server)

    def test_every_move(self):
        """VMs come to node 0 of h1 and to node 1 of h2; Nova likes the others more."""
        self.start("h1")
        self.start("h2")
        self.assert_on(self.boot("c4", host="h1"), "h1", 0)
        first, second = self.boot("c12", host="h2"), self.boot("c12", host="h2")
        self.servers.delete(first)
        self.assert_on(second, "h2", 1)

        server = self.boot("c4", host="h1")
        self.assert_on(server, "h1", 0)
        moved = self.servers.cold_migrate(server)
        self.assert_on(moved, "h2", 1)
        self.servers.confirm(moved)
        self.assert_on(server, "h2", 1)

        moved = self.servers.cold_migrate(server)
        self.assert_on(moved, "h1", 0)
        self.servers.revert(moved)
        self.assert_on(server, "h2", 1)

        self.cloud.run_periodics()
        resized = self.servers.resize(server, "c8")
        self.assert_on(resized, "h1", 0)
        self.servers.confirm(resized)
        self.assert_on(server, "h1", 0)

        resized = self.servers.resize(server, "c4")
        self.assert_on(resized, "h2", 1)
        self.servers.revert(resized)
        self.assert_on(server, "h1", 0)

        self.cloud.run_periodics()
        self.servers.live_migrate(server)
        # Where Nova loses the limits of the claim, it goes where Nova likes it.
        obeys = nova_fixes.has_fix(const.LP_LOST_LIMITS)
        self.assert_on(server, "h2", 1 if obeys else 0)

        shelved = self.servers.shelve(server)
        self.servers.unshelve(shelved, "h1")
        self.assert_on(server, "h1", 0)
        self.servers.rebuild(server, self.cloud.create_image())
        self.assert_on(server, "h1", 0)

        self.cloud.run_periodics()
        self.cloud.fail_host("h1")
        self.servers.evacuate(server)
        self.assert_on(server, "h2", 1)

    def test_several_servers_of_one_request(self):
        self.start("h1")
        servers = self.cloud.boot("c20", count=2)
        self.assertEqual([("h1", 0), ("h1", 1)], self.cells_of(servers))
        self.delete(servers)
        servers = self.cloud.boot("c4", count=6)
        self.assertEqual([("h1", 0)] * 5 + [("h1", 1)], self.cells_of(servers))
        self.delete(servers)

        self.start("h2")
        self.start("h3", cells=4)
        for flavor, count in (("c20", 8), ("c12", 8)):
            servers = self.cloud.boot(flavor, count=count)
            every = [("h1", 0), ("h1", 1), ("h2", 0), ("h2", 1)]
            every += [("h3", cell) for cell in range(4)]
            self.assertEqual(every, self.cells_of(servers))
            self.delete(servers)

    def test_requests_at_the_same_time(self):
        """All know the same candidates, and begin with the same node."""
        self.start("h1")
        self.start("h2")
        for flavors in (["c20"] * 4, ["c8"] * 8):
            with elastic.SameMoment(len(flavors)):
                servers = self.cloud.boot_at_once(flavors)
            each = len(flavors) // 4
            every = [(host, cell) for host in ("h1", "h2") for cell in (0, 1)]
            self.assertEqual(sorted(every * each), self.cells_of(servers))
            self.delete(servers)

    def test_vms_of_two_nodes(self):
        self.start("h1", cells=4)
        on_0, on_1, on_2 = [self.boot("c12") for _ in range(3)]
        self.servers.delete(on_1)
        self.assert_on(self.boot("two"), "h1", 0, 2)
        self.delete([on_0, on_2])
        self.assert_on(self.boot("two"), "h1", 0, 2)

    def test_a_host_that_was_not_configured(self):
        self.start("h1", named=False)
        self.boot_refused("c4")
        said = "PerfVMNUMATopologyFilter cannot steer VMs on host h1 (h1)"
        self.assertIn(said, self.cloud.nova_log())
        self.cloud.restart_host("h1", named=True)
        self.assert_on(self.boot("c4"), "h1", 0)

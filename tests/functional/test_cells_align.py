# SPDX-License-Identifier: Apache-2.0
"""VMs that Nova and Placement have on different NUMA nodes: found, and aligned."""

import contextlib
import io
import shlex

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.cloud import answers
from tests import documented
from tests.embedded import ActionFailedError
from tests.functional import cells, client
from tests.functional.cells import flavor_of
from tests.functional.test_audit import STRANGER
from tests.functional.test_cells_enroll import Case


class TestAlign(Case):
    HOSTS = ("h1", "h2")

    def align(self, status, words, *options):
        """Run the command, and look what it says and how it ends."""
        self.assert_command(status, words, "align", *self.policy_file(), *options)

    def hold(self, **servers):
        """Let servers, by name of a node, hold that node of their host."""
        body = {}
        for node, server in servers.items():
            host = self.servers.show(server).host
            found = answers.allocation(self.api, server.id)
            allocations = {
                uuid: {"resources": entry["resources"]}
                for uuid, entry in found["allocations"].items()
            }
            (held,) = (
                u for u, e in allocations.items() if const.RC_CELL_CPU in e["resources"]
            )
            uuid = self.provider(f"{host}_perfvm_{node}")
            allocations[uuid] = allocations.pop(held)
            body[server.id] = found | {"allocations": allocations}
        self.api.placement("POST", "/allocations", body)

    def assert_drifted(self, *servers):
        for server in servers:
            self.assertNotEqual(self.claimed(server), self.nodes(server))
        self.assertEqual({codes.CELL_DIFFERS}, self.found())

    def assert_clean(self, *servers):
        self.assert_aligned(*servers)
        self.assertEqual(set(), self.found())

    def test_forced_onto_a_host(self):
        """Nova spreads VMs over nodes, and Placement names the first that has room."""
        servers = [self.boot(flavor_of(4), az="nova:h1") for _ in range(4)]
        drifted = [s for s in servers if self.claimed(s) != self.nodes(s)]
        self.assert_drifted(*drifted)
        before = self.books("h1")

        self.align(0, "h1: would move allocations to", "h1", "--dry-run")
        self.assertEqual(before, self.books("h1"))
        self.align(0, "h1 is aligned: 1 change", "--yes")
        self.assert_clean(*servers)
        self.align(0, "h1: nothing to do", "--yes")

    def test_several_on_a_forced_host(self):
        """Nova asks no filter, and claims the host's first candidate for each."""
        forced = {"az": "nova:h1"}
        for vcpus, count in ((8, 3), (20, 2), (16, 2)):
            servers = self.cloud.boot(flavor_of(vcpus), count=count, **forced)
            self.assertEqual(["ERROR"] * count, [s.status for s in servers])
            self.assertEqual({"0": (0, 0), "1": (0, 0)}, self.books("h1"))
            for server in servers:
                self.servers.delete(server)
        # As many as fit one NUMA node are taken, and so are all of a named host.
        for where, count in ((forced, 2), ({"host": "h1"}, 3)):
            servers = self.cloud.boot(flavor_of(8), count=count, **where)
            self.assertEqual(["ACTIVE"] * count, [s.status for s in servers])
            held = [self.claimed(server) for server in servers]
            nodes = 2 if "host" in where else 1
            self.assertEqual(nodes, len({tuple(each) for each in held}))
            for server in servers:
                self.servers.delete(server)

    def test_memory_that_an_image_divides(self):
        """Nova gives each NUMA node what the image says, Placement a half."""
        cpus = {"hw_numa_cpus.0": "0-7", "hw_numa_cpus.1": "8-15"}
        memory_mb = {"hw_numa_mem.0": 7168, "hw_numa_mem.1": 1024}
        image = self.cloud.create_image(**cpus, **memory_mb)
        refused = self.boot_refused(cells.PAIR, image=image)
        self.assert_reason(refused, "flavor.numa_nodes")

        server = self.boot_anywhere(cells.PAIR, image=image, host="h1")
        self.assertEqual({"0": (8, 4096), "1": (8, 4096)}, self.books("h1"))
        self.assertEqual({codes.CELL_DIFFERS, codes.NOT_OF_CLASS}, self.found())
        self.align(0, "h1 is aligned: 1 change", "h1", "--yes")

        self.assertEqual({"0": (8, 7168), "1": (8, 1024)}, self.books("h1"))
        self.align(0, "h1: nothing to do", "h1", "--yes")
        self.assertEqual({codes.NOT_OF_CLASS}, self.found())
        # Nova lets neither a resize nor a rebuild change it.
        self.cloud.create_flavor("same", 16, 8192, 0, self.specs_of(cells.PAIR))
        error = self.assertRaises(
            ActionFailedError, self.servers.resize, server, "same"
        )
        self.assertIn("No valid host", error.detail)
        _, rows, _ = self.run_json("audit", *self.policy_file(), "--from-nova-db")
        (row,) = (row for row in rows if row["Code"] == codes.NOT_OF_CLASS)
        self.assertIn(f"server create --flavor {cells.PAIR} --image", row["Remedy"])
        self.servers.delete(server)
        self.boot(cells.PAIR)
        self.assertEqual(set(), self.found())

    def specs_of(self, flavor):
        path = f"/flavors/{flavor}/os-extra_specs"
        return self.api.nova("GET", path, key="extra_specs")

    def test_commands_of_the_documentation(self):
        self.cloud.create_flavor("plain", 6, 4096, 0, cells.PLAIN)
        self.start("h3")
        servers = [self.boot_before("plain", host="h3")]
        names = {"HOST...": "h3", "perfvm.yaml": self.path}
        for command in documented.of(self):
            typed = command.text
            for name, value in names.items():
                typed = typed.replace(name, value)
            _, *words = shlex.split(typed)
            status, *said = self.run_client(*words, stdin=client.Operator())
            self.assertEqual(0, status, (typed, said))
            if "enroll" in words:
                # So that there is something to align.
                servers += [self.boot(flavor_of(4), az="nova:h1") for _ in range(2)]
                self.assertIn(codes.CELL_DIFFERS, self.found())
        self.assert_aligned(*servers)

    def test_two_full_nodes_change_places(self):
        servers = [self.boot(flavor_of(20), host="h1") for _ in range(2)]
        first, second = (self.claimed(server)[0] for server in servers)
        owners = [answers.allocation(self.api, s.id)["project_id"] for s in servers]
        self.hold(**{f"cell_{second}": servers[0], f"cell_{first}": servers[1]})
        self.assert_drifted(*servers)

        self.align(0, "h1 is aligned: 1 change", "h1", "--yes")

        self.assert_clean(*servers)
        after = [answers.allocation(self.api, s.id)["project_id"] for s in servers]
        self.assertEqual(owners, after)
        self.boot_refused(flavor_of(4), host="h1")

    def test_what_stops_no_other(self):
        """Two change places, and a third has no room on its node."""
        self.start("h3", "4x20")
        self.enroll("h3")
        servers = [self.boot(flavor_of(20), host="h3") for _ in range(3)]
        first, second, third = (self.claimed(server)[0] for server in servers)
        (empty,) = {*range(4)} - {first, second, third}
        swapped = {f"cell_{second}": servers[0], f"cell_{first}": servers[1]}
        self.hold(**swapped, **{f"cell_{empty}": servers[2]})
        self.assert_drifted(*servers)
        self.take_one("h3", third)

        words = f"({servers[2].id}) is left: h3_perfvm_cell_{third} has 20"
        self.align(1, words, "h3", "--dry-run")
        self.align(1, "h3 is aligned in part: 1 change", "h3", "--yes")
        self.assert_aligned(*servers[:2])
        self.align(1, words, "h3", "--yes")
        self.assertEqual([empty], self.claimed(servers[2]))

        self.api.placement("DELETE", f"/allocations/{STRANGER}")
        self.align(0, "h3 is aligned: 1 change", "h3", "--yes")
        self.assert_clean(*servers)

    def take_one(self, host, node):
        """Let a stranger hold a CPU of a node, which Nova, counting pins, has free."""
        uuid = self.provider(f"{host}_perfvm_cell_{node}")
        stranger = {
            "allocations": {uuid: {"resources": {const.RC_CELL_CPU: 1}}},
            **dict.fromkeys(("project_id", "user_id"), "somebody"),
            "consumer_generation": None,
        }
        self.api.placement("PUT", f"/allocations/{STRANGER}", stranger)

    def test_what_is_in_the_way(self):
        moving = self.boot(flavor_of(20), host="h1")
        moving = self.servers.cold_migrate(moving)
        self.hold(cell_1=moving)
        self.assertEqual({codes.CELL_DIFFERS}, self.found())
        self.align(1, "in Nova's hands (VERIFY_RESIZE)", "h2", "--yes")
        self.servers.confirm(moving)
        self.assert_drifted(moving)

        self.take_one("h2", 0)
        self.align(1, "21 would be held, by this server and consumer", "h2", "--yes")
        self.api.placement("DELETE", f"/allocations/{STRANGER}")
        self.align(0, "h2 is aligned", "h2", "--yes")
        self.assert_clean(moving)

    def test_a_resize_of_one_that_drifted(self):
        """Placement keeps another node for its return than Nova does."""
        servers = [self.boot(flavor_of(4), az="nova:h1") for _ in range(2)]
        (drifted,) = (s for s in servers if self.claimed(s) != self.nodes(s))
        (node,), (held,) = self.nodes(drifted), self.claimed(drifted)
        for server, found in ((drifted, {codes.CELL_DIFFERS}), (servers[0], set())):
            resized = self.servers.resize(server, flavor_of(8))
            self.assertEqual("h2", resized.host)
            self.assert_aligned(resized)

            self.assertEqual(found, self.found())
            words = "the node that it may return to is not known: confirm or revert"
            self.align(1, words, "h1", "--yes")

            back = self.servers.revert(resized)
            if found:
                self.assertEqual(
                    ([node], [held]), (self.nodes(back), [*self.claimed(back)])
                )
                self.align(0, "h1 is aligned: 1 change", "h1", "--yes")
            self.assert_clean(*servers)

    def test_healed_by_nova(self):
        """It takes all that the embedded flavor asks for to be the host's own."""
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova.cmd import manage

        named = cells.PLAIN | {const.CLASS_KEY: "c8"}
        self.cloud.create_flavor("old8", 8, cells.MEMORY_GB * 1024, 0, named)
        self.start("h3")
        old = self.boot_before("old8", host="h3")
        self.enroll("h3", backfill=True)
        lost, new = self.boot(flavor_of(8)), self.boot(cells.PAIR)
        servers = (old, lost, new)
        before = [self.allocations(server) for server in servers]
        self.api.placement("DELETE", f"/allocations/{lost.id}")
        flavors = self.found() - {codes.ALLOCATION_MISSING, codes.UNITS_LACKING}

        with contextlib.redirect_stdout(io.StringIO()):
            for server in servers:
                manage.PlacementCommands().heal_allocations(
                    instance_uuid=server.id, force=server is not lost
                )

        after = [self.allocations(server) for server in servers]
        self.assertEqual([["h3"], [], [*before[2]]], [[*held] for held in after])
        self.assertEqual(
            {codes.ALLOCATION_MISSING, codes.UNITS_LACKING}, self.found() - flavors
        )
        heal = ("audit", "--heal", "--yes", "--from-nova-db", *self.policy_file())
        _, _, said = self.run_json(*heal)
        after = [self.allocations(server) for server in servers]
        self.assertEqual(before, after, said)
        self.assertEqual(flavors, self.found())

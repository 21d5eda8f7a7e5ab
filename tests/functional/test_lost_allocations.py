# SPDX-License-Identifier: Apache-2.0
"""A rebuild that fails takes a server's allocation away; the audit gives it back."""

import datetime as dt
import os
import pathlib
import shlex

import fixtures

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.cloud import allocate as allocating
from nova_perfvm.cloud import answers, live_hosts, policy_record
from nova_perfvm.cloud.api import API
from tests import documented
from tests.cloud.servers import until
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base
from tests.functional.cells import CellsCase, flavor_of
from tests.functional.client import ClientMixin
from tests.functional.elastic import ElasticTest

VIEW = "nova_perfvm.cloud.live_hosts.read_host"
AT_REST = "nova_perfvm.cloud.allocate._at_rest"
REBUILD = "2.93"
MULTIQUEUE = {"hw_vif_multiqueue_enabled": "true"}


class LostMixin(ClientMixin):
    """Loses allocations as a tenant can, and heals them as an operator does."""

    def held(self, server):
        """Return what a server has of each provider."""
        found = answers.allocation(self.api, server.id)["allocations"]
        return {uuid: entry["resources"] for uuid, entry in found.items()}

    def lose(self, server):
        self.api.placement("DELETE", f"/allocations/{server.id}")

    def rebuild_as_member(self, server, image):
        """Rebuild a server as who may do nothing else, up to the end."""
        compute = self.connection("member", "member,reader").compute
        answer = compute.post(
            f"/servers/{server.id}/action",
            json={"rebuild": {"imageRef": image}},
            microversion=REBUILD,
        )
        self.assertEqual(202, answer.status_code)
        until(lambda: self.servers.show(server).status != "REBUILD", "rebuilt")
        return self.servers.show(server).status

    def heal(self, *options):
        """Return the exit status, the codes that are left, and what was said."""
        (path,) = self.files("[placement]\nallocation_conflict_retry_count = 1\n")
        options = ("--policy", self.write_policy(), "--placement-conf", path, *options)
        status, rows, said = self.run_json("audit", "--heal", *options)
        found = [row["Code"] for row in rows]
        return status, [code for code in found if code != codes.NOT_SEEN], said


class SlotsCase(LostMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def setUp(self):
        super().setUp()
        self.api = API(self.connection("admin", "admin"))
        # Two slots, and CPUs for four.
        self.cloud.start_configured("hp1", self.policy, "dedicated", shape="4x20")


class TestSlots(SlotsCase):
    def test_an_image_that_no_host_can_boot(self):
        """A plain member does it; nova-compute refuses the image, not nova-api."""
        server = self.boot()
        before = self.held(server)
        image = self.cloud.create_image(hw_machine_type="no-such", **MULTIQUEUE)
        self.assertEqual("ERROR", self.rebuild_as_member(server, image))
        self.assertEqual({}, self.held(server))
        image = self.cloud.create_image(**MULTIQUEUE)
        self.assertEqual("ACTIVE", self.rebuild_as_member(server, image))
        self.assertEqual({}, self.held(server))
        lost = [codes.NOT_CLAIMED, codes.ALLOCATION_MISSING]

        status, found, said = self.heal("--dry-run")
        self.assertEqual((2, lost), (status, found))
        self.assertIn(
            f"hp1: would allocate 1 CUSTOM_PERFVM_SLOT, 65536 MEMORY_MB, 20 PCPU to "
            f"{server.name} ({server.id})\n",
            said,
        )
        status, found, said = self.heal()
        self.assertEqual((3, []), (status, found))
        self.assertIn("no terminal to ask on: add --yes", said)
        self.assertEqual({}, self.held(server))

        status, found, said = self.heal("--yes")
        self.assertEqual((0, []), (status, found))
        self.assertEqual(before, self.held(server))
        self.assertIn("hp1: allocate 1 CUSTOM_PERFVM_SLOT", said)
        status, found, said = self.heal("--yes")
        self.assertEqual((0, []), (status, found))
        self.assertIn("nothing to do\n", said)

    def test_what_others_do_meanwhile(self):
        server = self.boot()
        before = self.held(server)
        self.lose(server)
        view_host, times = live_hosts.read_host, []

        def meddle(*arguments):
            """Let somebody allocate all but the slot, just after the look."""
            found = view_host(*arguments)
            times.append(found)
            if len(times) == 2:
                ((root, resources),) = before.items()
                kept = {**resources}
                del kept[const.RC_SLOT]
                owner = self.api.nova("GET", f"/servers/{server.id}", key="server")
                body = {
                    "allocations": {root: {"resources": kept}},
                    "project_id": owner["tenant_id"],
                    "user_id": owner["user_id"],
                    "consumer_generation": None,
                }
                self.api.placement("PUT", f"/allocations/{server.id}", body)
            return found

        with fixtures.MonkeyPatch(VIEW, meddle):
            status, found, said = self.heal("--yes")
        self.assertEqual((0, []), (status, found), said)
        self.assertIn(
            f"hp1: allocate 1 CUSTOM_PERFVM_SLOT to {server.name} ({server.id})\n", said
        )
        self.assertEqual(3, len(times))
        self.assertEqual(before, self.held(server))

    def test_a_server_that_leaves_at_the_last_moment(self):
        """After the last look at it, and before it is given its allocation."""
        self.cloud.start_configured("hp2", self.policy, "dedicated")
        look = allocating._at_rest
        for leave in (
            self.servers.delete,
            self.servers.shelve,
            self.servers.cold_migrate,
        ):
            server = self.boot(host="hp1")
            self.lose(server)
            left = []

            def then_leave(*looked_at, server=server, leave=leave, left=left):
                found = look(*looked_at)
                if not left:
                    left.append(leave(server))
                return found

            with fixtures.MonkeyPatch(AT_REST, then_leave):
                status, found, said = self.heal("--yes")
            self.assertEqual((0, []), (status, found), said)
            self.assertEqual(1, len(left))
            self.assertNotIn("hp1: allocate", said)
            held = self.held(server)
            self.assertNotIn(self.provider("hp1"), held)
            self.assertEqual(bool(held), leave == self.servers.cold_migrate)

    def test_a_move_that_nova_has_left(self):
        """An operator sets the state of a server in VERIFY_RESIZE; a rebuild fails."""
        self.cloud.start_configured("hp2", self.policy, "dedicated", shape="4x20")
        server = self.boot(host="hp1")
        self.servers.cold_migrate(server)
        before = self.held(server)
        body = {"os-resetState": {"state": "active"}}
        self.api.nova("POST", f"/servers/{server.id}/action", body)
        self.lose(server)
        self.assertEqual((0, []), self.heal("--yes")[:2])

        (migration,) = answers.migrations(self.api, instance_uuid=server.id)
        self.age(server, migration.id)
        status, found, said = self.heal("--yes")
        self.assertEqual((1, [codes.LEAKED_ALLOCATION]), (status, found), said)
        self.assertEqual(before, self.held(server))
        self.api.placement("DELETE", f"/allocations/{migration.id}")
        self.assertEqual((0, []), self.heal("--yes")[:2])

    def age(self, server, migration):
        """Let a migration's record be an hour old."""
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova import context, objects
        from nova.db.main import api as db

        admin = context.get_admin_context()
        mapping = objects.InstanceMapping.get_by_instance_uuid(admin, server.id)
        with context.target_cell(admin, mapping.cell_mapping) as cell:
            record = objects.Migration.get_by_uuid(cell, migration)
            hour_ago = record.updated_at - dt.timedelta(hours=1)
            db.migration_update(cell, record.id, {"updated_at": hour_ago})

    def test_a_host_that_is_full_by_now(self):
        servers = [self.boot(), self.boot()]
        self.lose(servers[1])
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        self.boot()

        status, found, said = self.heal("--yes")

        self.assertEqual(2, status)
        self.assertIn(codes.TOO_MANY_ON_HOST, found)
        self.assertIn("hp1 has no room for the VM, migrate the VM: Placement", said)
        self.assertEqual({}, self.held(servers[1]))


class TestNone(LostMixin, base.FunctionalTest):
    def test_commands_of_the_documentation(self):
        self.api = API(self.connection("admin", "admin"))
        self.cloud.start_configured("g1", self.policy, "shared")
        server = self.boot(base.GENERAL_2)
        before = self.held(server)
        self.lose(server)
        self.addCleanup(os.chdir, pathlib.Path.cwd())
        os.chdir(pathlib.Path(self.write_policy()).parent)
        found = []
        for command in documented.of(self):
            _, *words = shlex.split(command.text)
            found.append((self.run_client(*words)[0], self.held(server) == before))
        self.assertEqual([(1, False), (0, True)], found)

        policy_record.record(self.api, "0" * 64, "/other.yaml", None)
        status, _, said = self.heal("--yes")
        self.assertEqual(3, status)
        self.assertIn("changed by another policy, /other.yaml", said)
        for options in (("--dry-run",), ("--yes",), ("--heal", "--snapshot", "-")):
            self.assert_command(3, "--heal", "audit", *options)


class TestCells(LostMixin, CellsCase):
    def test_a_resize_that_is_reverted(self):
        """Nova moves nothing back, as there was nothing to move to the migration."""
        for move, to in (("cold_migrate", ()), ("resize", (flavor_of(8),))):
            server = self.boot(flavor_of(4), host="h1")
            before = self.held(server)
            self.lose(server)
            moved = getattr(self.servers, move)(server, *to)
            self.assertEqual("h2", moved.host)
            back = self.servers.revert(moved)
            self.assertEqual(("ACTIVE", "h1"), (back.status, back.host))
            self.assertLessEqual({"h2"}, self.allocations(server).keys())

            status, found, said = self.heal("--dry-run")
            self.assertEqual(2, status)
            lost = {codes.ALLOCATION_MISSING, codes.ALLOCATION_ELSEWHERE}
            self.assertLessEqual(lost, {*found})
            self.assertIn("instead of its allocation on h2\n", said)

            status, found, said = self.heal("--yes")
            self.assertEqual((0, []), (status, found), said)
            self.assertEqual(before, self.held(server))
            self.assertEqual({"0": (0, 0), "1": (0, 0)}, self.books("h2"))
            self.servers.delete(server)


class TestUnits(LostMixin, ElasticTest):
    def test_both_classes(self):
        for host in ("e1", "e2"):
            self.cloud.start_host(host)
            self.enroll(host)
        image = self.cloud.create_image(hw_machine_type="no-such", **MULTIQUEUE)
        high = [self.boot(host="e1"), self.boot(host="e1")]
        general = self.boot(base.GENERAL_2, host="e2")
        before = [self.allocations(server) for server in (*high, general)]
        for server in (high[0], general):
            self.assertEqual("ERROR", self.rebuild_as_member(server, image))
            self.assertEqual({}, self.held(server))

        status, found, said = self.heal("--dry-run")
        self.assertEqual(2, status)
        self.assertLessEqual({codes.UNITS_LACKING, codes.ALLOCATION_MISSING}, {*found})
        self.assertEqual({}, self.held(general))

        status, found, said = self.heal("--yes")
        self.assertEqual((0, []), (status, found), said)
        after = [self.allocations(server) for server in (*high, general)]
        self.assertEqual(before, after)
        # Nova-compute was never taken out of service.
        self.assertEqual(("enabled", None), self.service("e1"))

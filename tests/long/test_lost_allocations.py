# SPDX-License-Identifier: Apache-2.0
"""Lost allocations of servers that move, of odd flavors, and by Nova's own command."""

from nova.cmd import manage

from nova_perfvm import findings as codes
from nova_perfvm.cloud import heal
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import RefusedError
from tests.functional import base
from tests.functional.elastic import PLAIN_GENERAL, ElasticTest
from tests.functional.test_lost_allocations import MULTIQUEUE, LostMixin, SlotsCase


class TestSlots(SlotsCase):
    def test_a_server_that_was_evacuated(self):
        """What it holds of the host that failed is Nova's, and excuses nothing."""
        server = self.boot()
        ((failed, _),) = self.held(server).items()
        self.cloud.start_configured("hp2", self.policy, "dedicated")
        self.cloud.fail_host("hp1", stop=True)
        server = self.servers.evacuate(server)
        before = self.held(server)
        self.assertEqual(2, len(before))
        self.assertEqual((0, []), self.heal("--yes")[:2])
        image = self.cloud.create_image(hw_machine_type="no-such", **MULTIQUEUE)
        self.assertEqual("ERROR", self.rebuild_as_member(server, image))
        self.assertEqual({failed}, self.held(server).keys())

        lost = [codes.NOT_CLAIMED, codes.ALLOCATION_MISSING]
        self.assertEqual((2, lost), self.heal("--dry-run")[:2])
        status, found, said = self.heal("--yes")
        self.assertEqual((0, []), (status, found), said)
        self.assertEqual(before, self.held(server))

        self.cloud.recover_host("hp1")
        del before[failed]
        self.assertEqual(before, self.held(server))
        self.assertEqual((0, []), self.heal("--yes")[:2])

    def test_servers_that_move_are_left(self):
        server = self.boot()
        self.cloud.start_configured("hp2", self.policy, "dedicated")
        self.servers.cold_migrate(server)
        self.lose(server)
        status, found, said = self.heal("--yes")
        self.assertEqual((0, []), (status, found), said)
        exc = self.assertRaises(
            RefusedError, heal.heal, self.api, self.policy, "hp2", server.id
        )
        self.assertIn("look again when Nova is done", str(exc))
        self.assertEqual({}, self.held(server))
        self.servers.confirm(server)


class TestNone(LostMixin, base.FunctionalTest):
    def test_both_classes(self):
        self.api = API(self.connection("admin", "admin"))
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        self.cloud.start_configured("g1", self.policy, "shared")
        disks = {"disk": 10, "OS-FLV-EXT-DATA:ephemeral": 3, "swap": 1500}
        body = {"id": "disks", "name": "disks", "vcpus": 2, "ram": 4096}
        self.cloud.api.post_flavor({"flavor": body | disks})
        servers = [self.boot(), self.boot(base.GENERAL_2), self.boot("disks")]
        before = [self.held(server) for server in servers]
        for server in servers:
            self.lose(server)

        self.assertEqual((0, []), self.heal("--yes")[:2])

        self.assertEqual(before, [self.held(server) for server in servers])


class TestUnits(LostMixin, ElasticTest):
    def test_forced_heal_of_nova(self):
        """By the flavor, which is from before; without force it is left alone."""
        self.cloud.create_flavor(PLAIN_GENERAL, 2, 4096, 40)
        self.cloud.start_host("e1")
        server = self.boot(PLAIN_GENERAL)
        self.enroll("e1", backfill=True)
        before = self.allocations(server)
        for force in (False, True):
            manage.PlacementCommands().heal_allocations(
                instance_uuid=server.id, force=force
            )
            units = {"a": [], "b": []} if force else {"a": [1], "b": [1]}
            self.assertEqual(units, self.units("e1"))

        status, found, said = self.heal("--yes")

        # Its flavor is as it was.
        self.assertEqual((1, [codes.FLAVOR_WITHOUT_UNITS]), (status, found), said)
        self.assertEqual(before, self.allocations(server))

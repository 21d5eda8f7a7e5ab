# SPDX-License-Identifier: Apache-2.0
"""A real Nova of two cells, one of which does not answer."""

import contextlib
import logging
import pathlib
from unittest import mock

import fixtures
from nova import context, objects
from nova.tests import fixtures as nova_fixtures

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.cloud import answers, nova_database
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.cloud.snapshot import read_snapshot
from tests.functional import base
from tests.functional.test_audit import AuditMixin

STRANGERS = {
    "1": "11111111-1111-4111-8111-111111111111",
    "2": "22222222-2222-4222-8222-222222222222",
}
DOWN = (codes.CELL_DOWN, "cells")


class TestDownCell(AuditMixin, base.FunctionalTest):
    CLOUD = {"cells": 2}  # noqa: RUF012
    PLACEMENT = "slots"
    PATIENCE = 2

    def setUp(self):
        super().setUp()
        self.api = API(self.connection("admin", "admin"))
        self.vms = {}
        for cell in ("1", "2"):
            for name, mode, flavor in (
                (f"hp{cell}", "dedicated", base.HP_64),
                (f"g{cell}", "shared", base.GENERAL_2),
            ):
                self.cloud.start_configured(name, self.policy, mode, cell=f"cell{cell}")
                self.vms[name] = self.boot(flavor, host=name)
        found = objects.CellMappingList.get_all(context.get_admin_context())
        self.cells = {cell.name: cell for cell in found}

    @contextlib.contextmanager
    def down(self, cell):
        log = logging.getLogger("nova")
        with (
            nova_fixtures.DownCellFixture([self.cells[f"cell{cell}"]]),
            # What nova-api logs is no word of the client's.
            mock.patch.object(log, "propagate", new=False),
            mock.patch.object(log, "handlers", new=[logging.NullHandler()]),
        ):
            yield

    def plant(self, cell):
        """Let hosts of a cell violate what they can."""
        self.change_traits(f"hp{cell}", less=[const.TRAIT_HIGH_PERFORMANCE])
        self.leak(f"g{cell}", STRANGERS[cell])

    def planted(self, cell):
        return {
            (codes.TRAIT_DIFFERS, f"hp{cell}"),
            (codes.LEAKED_ALLOCATION, STRANGERS[cell]),
            (codes.ORPHANED_CHILD, f"g{cell}_perfvm_a"),
        }

    def test_what_is_known(self):
        self._snapshot()
        self._server_check()
        self._explain_and_capacity()
        self._audit()

    def _audit(self):
        self.assertEqual((0, []), self.audit())
        for down in ("1", "2"):
            with self.down(down):
                self.assertEqual((1, [DOWN]), self.sorted_audit())

        self.plant("1")
        self.plant("2")
        # Nova lists no hypervisors behind the first cell.
        for down, lost, planted in (
            ("2", "g2, hp2", self.planted("1")),
            ("1", "g1, g2, hp1 and 1 more", ()),
        ):
            path = str(pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "file")
            with self.down(down):
                found = self.sorted_audit()
                saved = self.run_command("snapshot", "save", path)
            self.assertEqual((1, sorted([DOWN, *planted])), found)
            # The file tells the same when all is up again.
            self.assertEqual(0, saved[0])
            self.assertIn(f"cell of hosts {lost}, or lists", saved[2])
            self.assertEqual(found, self.sorted_audit("--snapshot", path))

    def sorted_audit(self, *options):
        status, found = self.audit(*options)
        return status, sorted(found)

    def _snapshot(self):
        with self.down("2"):
            found = read_snapshot(self.api)
            paged = list(self.api.nova_list("/servers/detail?all_tenants=1", "servers"))
            exc = self.assertRaises(
                CloudError, self.api.nova, "GET", "/os-hypervisors/detail"
            )
            alone = self.api.nova("GET", f"/servers/{self.vms['hp2'].id}", key="server")
            skipped = []
            nodes = nova_database.compute_nodes(skipped)

        self.assertEqual({"g1", "hp1"}, {node.host for node in nodes})
        (line,) = skipped
        self.assertIn("(cell2)", line)
        complete = nova_database.with_cells(found, nodes)
        self.assertEqual([2, 2], [len(host.cells) for host in complete.hosts])
        self.assertGreaterEqual(exc.status, 500)
        self.assertEqual(("g2", "hp2"), found.unseen_hosts)
        self.assertEqual(["g1", "hp1"], [host.host for host in found.hosts])
        for host in found.hosts:
            self.assertEqual(self.provider(host.host), host.provider)
            self.assertEqual(
                (host.host, True, True), (host.node, host.up, host.enabled)
            )
        seen = {self.vms[name].id for name in ("g1", "hp1")}
        self.assertEqual(seen, {server["id"] for server in paged})
        known = {server.id: server.known for server in found.servers}
        self.assertEqual({vm.id: vm.id in seen for vm in self.vms.values()}, known)
        # Alone a server has a flavor, and nothing that says where it is.
        stub = answers.server(alone)
        self.assertIn("flavor", alone)
        self.assertEqual((None, "UNKNOWN"), (stub.host, stub.status))
        pinned = found.server_by_id[self.vms["hp1"].id]
        self.assertEqual(20, len(pinned.pinned_cpus))

    def _server_check(self):
        """A server of a cell that is down is known by its ID, and no more."""
        check = ("server", "check")
        server = self.vms["hp2"]
        with self.down("2"):
            status, (row,), stderr = self.run_json(*check, server.id)
            self.assertEqual(0, status, stderr)
            self.assertEqual("unknown", row["Level"])
            self.assertIn("cannot reach the server's cell", row["Observed"])
            words = f"Nova shows no server {server.name}"
            self.assert_command(3, words, *check, server.name)
            words = "cannot reach the cell of hp2"
            self.assert_command(3, words, *check, "--host", "hp2")

    def _explain_and_capacity(self):
        policy = ["--policy", self.write_policy()]
        explain = ["explain", "--flavor", base.HP_64, *policy]
        unseen = "cannot reach the cell of hosts g2, hp2"
        with self.down("2"):
            status, rows, stderr = self.run_json(*explain)
            self.assertEqual(0, status, stderr)
            hosts = {name for row in rows for name in row["Hosts"]}
            self.assertEqual({"hp1", "g1"}, hosts)
            self.assertIn(unseen, stderr)
            down = "its cell is down"
            self.assert_command(3, down, *explain, "--host", "hp2")
            self.assert_command(3, down, "explain", "--server", self.vms["g2"].id)
            status, rows, stderr = self.run_json("capacity", "show", *policy)
            self.assertEqual(0, status, stderr)
            counts = {r["Host"]: (r["Total"], r["Used"], r["Free"]) for r in rows}
            self.assertEqual({"hp1": (2, 1, 1), "g1": (0, 0, 0)}, counts)
            self.assertIn(unseen, stderr)
            self.assert_command(0, "g2, hp2", "host", "list", *policy)

# SPDX-License-Identifier: Apache-2.0
"""PCI devices of servers whose cell's database does not tell them are unknown."""

import types
from unittest import mock

import testtools

from nova_perfvm.cloud import host_nodes, nova_database
from nova_perfvm.cloud.snapshot import read_snapshot
from tests.unit.cloud.fake_api import FakeAPI


class UnreadDevicesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        api = FakeAPI(hosts=1)
        for name in ("told", "untold"):
            api.add_server(name, "h0")
        self.taken = read_snapshot(api)

    def test_only_servers_that_are_told_have_none(self):
        node = types.SimpleNamespace(
            id=1, uuid="elsewhere", host="h0", hypervisor_hostname="h0"
        )
        with mock.patch.object(nova_database, "aliases", dict):
            found = nova_database.with_cells(
                self.taken, [node], devices=[("told", (), [])]
            )
        asked = {server.id: server.pci_requests for server in found.servers}
        self.assertEqual({"told": (), "untold": None}, asked)

    def test_a_query_that_fails_alone_is_a_gap(self):
        def fails(why, result):
            def read(skipped):
                skipped += why
                return result

            return read

        down = "cell c1: down"
        for _name, readers, expected in (
            ("all", ([down], [down], [down]), [down]),
            ("devices", ([], [], ["cell c2: lost"]), ["cell c2: lost"]),
            ("versions", ([], ["cell c2: lost"], []), ["cell c2: lost"]),
        ):
            results = ([], {}, [])
            names = ("compute_nodes", "service_versions", "server_devices")
            patched = {
                function: fails(why, result)
                for function, why, result in zip(names, readers, results, strict=True)
            }
            with mock.patch.multiple(
                nova_database, configure=mock.Mock(), aliases=dict, **patched
            ):
                found = host_nodes.from_database("nova.conf")(self.taken)
                gaps = [gap for gap in found.gaps if gap not in self.taken.gaps]
                self.assertEqual([f"NUMA nodes, PCI: {why}" for why in expected], gaps)

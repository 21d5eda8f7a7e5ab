# SPDX-License-Identifier: Apache-2.0
"""A host of which Nova's database holds what no rule can read."""

import json
import os
import pathlib
import shlex
from unittest import mock

import fixtures
from nova import context, objects

from nova_perfvm.cloud import nova_database
from tests import documented
from tests.functional import base, client


class TestOddHost(client.ClientMixin, base.FunctionalTest):
    FLAVORS = (base.HP_64,)

    def setUp(self):
        super().setUp()
        for name in ("odd", "well"):
            self.cloud.start_host(name, dedicated="0-39")

    def change_topology(self, host, change):
        """Change what the compute has reported of the host's NUMA nodes."""
        admin = context.get_admin_context()
        (cell,) = [
            cell
            for cell in objects.CellMappingList.get_all(admin)
            if not cell.is_cell0()
        ]
        with context.target_cell(admin, cell) as targeted:
            node = objects.ComputeNode.get_first_node_by_host_for_old_compat(
                targeted, host
            )
            topology = json.loads(node.numa_topology)
            change(topology["nova_object.data"]["cells"])
            node.numa_topology = json.dumps(topology)
            node.save()

    def test_other_hosts_go_on(self):
        def lose_memory(cells):
            del cells[0]["nova_object.data"]["memory"]

        self.change_topology("odd", lose_memory)

        server = self.boot()
        self.assertEqual("well", server.host)
        self.assert_reason(server, "1 host.unreadable")
        (decision,) = [
            verdict for verdict in self.cloud.verdicts(server) if verdict.host == "odd"
        ]
        self.assertEqual(("host.unreadable",), decision.codes)
        (line,) = self.cloud.log.lines("cannot read host odd")
        self.assertIn("memory", line)

        self.assertIn("'memory'", self.audited(documented.of(self)))

        # What is known of one host keeps no server from moving to another.
        self.cloud.restart_host("odd")
        self.servers.cold_migrate(server)
        self.assertEqual("odd", self.servers.show(server).host)
        self.assertEqual(1, len(self.cloud.log.lines("can read host odd")))

    def audited(self, commands):
        """Return what the audit says of host odd, with the commands of the page."""
        self.addCleanup(os.chdir, pathlib.Path.cwd())
        os.chdir(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY"))
        self.useFixture(fixtures.EnvironmentVariable("COLUMNS", "400"))
        # Nova's database is that of the cloud in this process.
        self.enterContext(mock.patch.object(nova_database, "configure"))
        for command in commands:
            _, printed, _ = self.run_client(*shlex.split(command.text)[1:])
        lines = printed.splitlines()
        begin = lines.index("  audit.host_unreadable") + 1
        # A long sentence goes on in the next line.
        told = " ".join(line.strip() for line in lines[begin : begin + 2])
        self.assertIn("odd: ", told)
        return told

    def test_a_newer_report_stops_nova_itself(self):
        """It makes the scheduler's picture of the host before any filter is asked."""

        def upgrade(cells):
            cells[0]["nova_object.version"] = "9.9"

        self.change_topology("odd", upgrade)
        self.cloud.restart_scheduler(["ComputeFilter"])
        server = self.cloud.boot(base.HP_64)
        self.assertEqual("ERROR", server.status)
        self.assertIn("Version 9.9 of NUMACell is not supported", server.fault)

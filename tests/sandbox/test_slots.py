# SPDX-License-Identifier: Apache-2.0
"""Dedicated and shared hosts, whose slots Placement counts."""

import contextlib
import itertools

from nova_perfvm import constants as const
from tests import documented
from tests.processes.errors import SandboxError
from tests.sandbox import base, looking
from tests.sandbox.base import GENERAL, HP
from tests.sandbox.documented import DocumentedCommands
from tests.sandbox.host_playbook import HostPlaybookMistakes


class SlotsTest(
    DocumentedCommands,
    looking.LookingMixin,
    HostPlaybookMistakes,
    base.SandboxTest,
):
    HOSTS = "1xdedicated:2x20,1xshared:2x20,1xdedicated:2x20x2"

    def test_two_high_performance_vms_a_host(self):
        servers = [self.settled(self.create(HP)) for _ in range(4)]

        taken = []
        for server in servers:
            self.assertEqual("ACTIVE", server["status"], server.get("fault"))
            node, cpus = self.assert_high_performance(server)
            taken.append((base.host_of(server), node))
            if base.host_of(server) == "dedicated2":
                # A core for each vCPU: siblings are neighbours here.
                self.assertEqual(set(), {cpu for cpu in cpus if cpu % 2})
        expected = {(f"dedicated{host}", node) for host in (1, 2) for node in (0, 1)}
        self.assertEqual(expected, set(taken))
        self.boot_refused(HP)

    def test_the_scheduler_run_dry(self):
        """In the process that ``explain`` starts, with nova-scheduler's own file."""
        nova_conf = str(self.sandbox.layout.etc / "nova" / "nova.conf")
        new = ("--flavor", HP, "--image", "guest", "--from-nova-db", nova_conf)
        with self._read_only():
            status, rows, said = self.look("explain", *new, "--long", "--count", "5")
            self.assertEqual(1, status, said)
            self.assertIn("4 of 5 servers would be placed", said)
            reasons = {host: row["Reason"] for row in rows for host in row["Hosts"]}
            self.assertEqual({""}, {reasons["dedicated1"], reasons["dedicated2"]})
            self.assertIn("placement.trait_missing", reasons["shared1"])
            status, order, said = self.look("explain", *new, "--ranking")
            self.assertEqual(0, status, said)

        server = self.boot(HP)
        best = {row["Host"] for row in order if row["Sum"] == order[0]["Sum"]}
        self.assertIn(base.host_of(server), best)
        moved = ("--server", server["id"], "--from-nova-db", nova_conf)
        status, rows, said = self.look("explain", *moved)
        reasons = {host: row["Reason"] for row in rows for host in row["Hosts"]}
        self.assertEqual("nova.same_host", reasons[base.host_of(server)])
        self.assertEqual(0, status, said)

    @contextlib.contextmanager
    def _read_only(self):
        """Let MariaDB refuse each write, of the user that nova.conf names, too."""
        socket = self.sandbox.layout.database_socket
        root = ("mariadb", "--no-defaults", "-uroot", f"--socket={socket}", "-e")
        self.command(*root, "SET GLOBAL read_only = 1")
        try:
            yield
        finally:
            self.command(*root, "SET GLOBAL read_only = 0")

    def test_the_client_and_the_generated_commands(self):
        """As in the documentation, word by word."""
        block = self.command(
            *("nova-perfvm", "flavor", "generate"),
            *("--policy", str(self.sandbox.layout.policy)),
            *("--class", "high-performance", "--memory-gb", "32"),
        ).stdout
        self.command("sh", "-c", block)

        create, *look = documented.of(self)
        self.documented([create], **{"hp.20c.64g": "hp.20c.32g"})
        made = self.compute.find_server("vm1")
        self.servers.append(made.id)
        server = self.settled(made.id)
        self.assertEqual("ACTIVE", server["status"], server.get("fault"))
        names = {
            "dedicated1": base.host_of(server),
            "~/.cache/nova_perfvm/sandbox": str(self.sandbox.layout.directory),
        }
        self.documented(look, **names)
        self.assertEqual(["private"], list(server["addresses"]))
        self.assert_high_performance(server)
        # Multiqueue: a queue for each vCPU.
        driver = self.domain(server).find("devices/interface/driver")
        self.assertEqual("20", driver.get("queues"))

    def test_commands_of_the_documentation(self):
        """On these hosts; test_elastic has the others."""
        server = self.boot(HP)
        group = self.compute.create_server_group(name="docs", policy="anti-affinity")
        self.addCleanup(self.compute.delete_server_group, group)
        names = {
            "GROUP": group.id,
            "HOST": "dedicated1",
            "host1": "dedicated1",
            "hp2": "dedicated2",
            "SERVER": server["id"],
            "IMAGE": "guest",
            "/var/lib/node_exporter/": "",
            "/var/log/nova/nova-scheduler.log": str(
                self.sandbox.layout.logs / "nova-scheduler-1.log"
            ),
        }
        pages = itertools.groupby(documented.of(self), lambda command: command.page)
        for page, commands in pages:
            # Where it names no file it means the built-in policy.
            built_in = page == "doc/source/user/flavors.rst"
            self.SHELL = {"PERFVM_POLICY": ""} if built_in else {}
            self.documented(commands, **names)

    def test_limits_in_keystone(self):
        """As their page says, for the project of the credentials."""
        project = self.sandbox.connect().current_project_id
        self.addCleanup(self.delete_limits)
        commands = documented.of(self)
        self.documented(commands, PROJECT=project)

        at = ("--resource-name", f"class:{const.RC_SLOT}")
        (default,) = self.openstack("registered", "limit", "list", *at)
        self.assertEqual(0, default["Default Limit"])
        (own,) = self.openstack("limit", "list", *at, "--project", project)
        self.assertEqual(2, own["Resource Limit"])
        # Keystone refuses it, and so the command does before.
        sync = ("openstack", "perfvm", "limit", "sync", "--yes")
        result = self.command(*sync, "--default", "high-performance=1", check=False)
        self.assertEqual(1, result.returncode, result.stdout)
        self.assertIn(f"openstack limit delete {own['ID']}", result.stderr)
        self.command(*sync, "--project", project, "high-performance=3")
        (own,) = self.openstack("limit", "list", *at, "--project", project)
        self.assertEqual(3, own["Resource Limit"])

    def delete_limits(self):
        for kind in (["limit"], ["registered", "limit"]):
            name = f"class:{const.RC_SLOT}"
            for limit in self.openstack(*kind, "list", "--resource-name", name):
                self.command("openstack", *kind, "delete", limit["ID"])

    def test_a_running_cloud_is_taken_in(self):
        """As its page says; the policy that is proposed is not put in force."""
        self.boot(HP, host="dedicated2")
        survey, check, *others = documented.of(self)
        # The policy that is made of the cloud is one that it is set up for.
        self.documented([survey, check])
        self.addCleanup(self.remove_aggregate, "perfvm-high-performance", "dedicated1")

        printed = self.documented(others, HOST="dedicated1")

        (shown,) = (text for name, text in printed.items() if "host show" in name)
        self.assertIn("high-performance", shown)

    def remove_aggregate(self, name, host):
        aggregate = self.compute.find_aggregate(name)
        self.compute.remove_host_from_aggregate(aggregate, host)
        self.compute.delete_aggregate(aggregate)

    def test_scheduler_is_killed(self):
        self.sandbox.processes.kill("nova-scheduler-1")

        self.boot(GENERAL)
        self.sandbox.start("nova-scheduler-1")
        self.await_report("nova-scheduler", "nova-scheduler-1")
        self.sandbox.processes.kill("nova-scheduler-2")
        self.boot(GENERAL)
        self.sandbox.start("nova-scheduler-2")

    def test_compute_is_killed(self):
        server = self.boot(HP, host="dedicated1")
        before = self.assert_high_performance(server)
        self.sandbox.processes.kill("nova-compute-dedicated1")
        self.assertIn("dead", self.run_sandbox("status").stdout)

        self.sandbox.start("nova-compute-dedicated1")
        self.await_report("nova-compute", "dedicated1")

        self.assertEqual("ACTIVE", self.show(server["id"])["status"])
        self.assertEqual(before, self.assert_high_performance(server))
        node, _ = self.assert_high_performance(self.boot(HP, host="dedicated1"))
        self.assertNotEqual(before[0], node)
        self.boot_refused(HP, host="dedicated1")

    def test_explain_agrees_with_the_scheduler(self):
        # RulesTest meets the rules as often.
        self.assert_agreement(
            often=[
                const.NOVA_AVAILABILITY_ZONE,
                const.PLACEMENT_GROUPS,
                const.PLACEMENT_NO_INVENTORY,
                const.PLACEMENT_RESOURCE,
                const.PLACEMENT_TRAIT_FORBIDDEN,
                const.PLACEMENT_TRAIT_MISSING,
                const.SERVICE_DISABLED,
                const.SERVICE_DOWN,
            ],
            logged=[
                "flavor.resources",
                "flavor.traits",
                "host.classless_pinned",
                "request.image_trait",
            ],
        )

    def test_up_twice(self):
        said = str(self.assertRaises(SandboxError, self.sandbox.up))
        self.assertIn("is up already", said)
        result = self.run_sandbox("up")
        self.assertEqual(1, result.returncode)
        self.assertIn("is up already", result.stderr)
        self.assertNotIn("Traceback", result.stderr)

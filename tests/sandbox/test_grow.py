# SPDX-License-Identifier: Apache-2.0
"""Hosts that are added to a sandbox that is up."""

import os
import signal
import subprocess

from tests import documented
from tests.processes import computes, waiting
from tests.sandbox import base, tutorial
from tests.sandbox.base import HP

PAGE = "doc/source/user/grow.rst"
ADDED = "1xshared:2x20"


class GrowTest(base.SandboxTest):
    """In the order of the names: the page is of the sandbox as it was made."""

    HOSTS = "1xelastic:2x20"
    # Others do not find it as it was made.
    OPTIONS = {"schedulers": 2}  # noqa: RUF012

    def test_a_pool_grows(self):
        """doc/source/user/grow.rst: each command, and what it prints."""
        tutorial.follow(self, PAGE, documented.of(self))

    def test_it_is_broken_off_and_repeated(self):
        before = self.known()
        for moment in self.moments():
            said = self.broken_off(moment, signal.SIGINT)
            self.assertIn("failed: taking out what was added", said)
            self.assertEqual(before, self.known(), said)
        for moment in self.moments():
            self.broken_off(moment, signal.SIGKILL)
        process = self.start(ADDED)
        said = process.communicate()[0]
        self.assertEqual(0, process.returncode, said)
        self.assertIn("shared1 is up. Then: openstack perfvm host enroll", said)
        self.assertEqual([{*names, "shared1"} for names in before], self.known())

    def moments(self):
        """Return what finds the host's files, process and service."""
        layout, processes = self.sandbox.layout, self.sandbox.processes
        name = f"{computes.PREFIX}shared1"

        def files():
            path = layout.host_etc("shared1")
            return path.exists() and path.stat().st_ctime_ns

        def process():
            record = processes.find(name)
            return record is not None and record.alive and record.pid

        def service():
            found = self.compute.services(binary="nova-compute", host="shared1")
            return next((one.id for one in found), None)

        return files, process, service

    def broken_off(self, moment, number):
        """Send the command a signal when there is something new; return its words."""
        left = moment()
        command = self.start(ADDED)
        waiting.until(lambda: moment() not in {None, False, left}, "it", base.SECONDS)
        os.killpg(command.pid, number)
        said = command.communicate()[0]
        self.assertNotEqual(0, command.returncode, said)
        return said

    def test_mistakes_change_nothing(self):
        before = self.known()
        last = self.sandbox.settings.pretended[-1].name
        self.sandbox.processes.kill(computes.PREFIX + last)
        said = self.refused("1")
        self.sandbox.start(computes.PREFIX + last)
        self.assertIn(f"restart {computes.PREFIX}{last}, and then up", said)
        self.assertIn("--add: 'x': expected", self.refused("x"))
        self.assertIn("leave --hosts", self.refused("1", "--hosts", self.HOSTS))
        self.assertEqual(before, self.known())

    def test_stopped_and_started_all_are_there(self):
        server = self.boot(HP)
        before = self.known()
        self.stop(self.sandbox)
        self.assertIn("is down: start it", self.refused("1"))
        self.sandbox.up()
        self.assertEqual(before, self.known())
        self.assertEqual("ACTIVE", self.show(server["id"])["status"])

    def refused(self, *options):
        process = self.start(*options)
        said = process.communicate()[0]
        self.assertEqual(1, process.returncode, said)
        self.assertNotIn("Traceback", said)
        return said

    def start(self, *options):
        """Start the command, as the leader of a group as in a shell."""
        where = ("--directory", str(self.sandbox.layout.directory))
        where += ("--environment", str(self.sandbox.environment.directory))
        # Where tests run in a shell's background, SIGINT is ignored.
        heeding = ("env", "--default-signal=INT")
        return subprocess.Popen(
            [*heeding, *base.PROGRAM, "up", *where, "--add", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=os.environ,
        )

    def known(self):
        """Return the hosts that run, that Nova has, and that have files."""
        connection = self.sandbox.connect()
        prefix = computes.PREFIX
        layout = self.sandbox.layout
        return [
            {host.name for host in self.sandbox.settings.pretended},
            {
                record.name.removeprefix(prefix)
                for record in self.sandbox.status()
                if record.alive and record.name.startswith(prefix)
            },
            {s.host for s in connection.compute.services(binary="nova-compute")},
            {found.name for found in connection.compute.hypervisors()},
            self.roots(connection),
            {path.name for path in (layout.etc / "hosts").iterdir()},
            {path.name for path in (layout.data / "hosts").iterdir()},
        ]

    def roots(self, connection):
        found = connection.placement.get(
            "/resource_providers", microversion="1.36"
        ).json()["resource_providers"]
        return {one["name"] for one in found if not one["parent_provider_uuid"]}

# SPDX-License-Identifier: Apache-2.0
"""Proofs on a cloud whose guests do not run: what is made is deleted.

Network namespaces stand in for the host and for the guests, so no ratio means
anything.
"""

import functools
import json
import signal
from datetime import datetime

import fixtures

from nova_perfvm.cloud import proof_servers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError
from tests import documented
from tests.guest import image, reached
from tests.guest.machine import GATEWAY
from tests.processes import content
from tests.sandbox import base
from tests.sandbox.base import HP
from tests.sandbox.documented import DocumentedCommands
from tests.sandbox.looking import LookingMixin
from tests.sandbox.proofs import HOST, PROOF, SHARED, ProofCase
from tests.sandbox.volumes import TYPE


class BrokenOff(API):
    """A cloud that is left after so many requests that make something."""

    def __init__(self, connection, left, error):
        super().__init__(connection)
        self.left, self.error = left, error

    def _request(self, service, method, path, *rest):
        answer = super()._request(service, method, path, *rest)
        if method == "POST" and not path.endswith("/action"):
            self.left -= 1
            if not self.left:
                raise self.error
        return answer


class ProveTest(DocumentedCommands, LookingMixin, ProofCase):
    def test_a_server_of_an_image_is_refused(self):
        self.request = functools.partial(base.SandboxTest.request, self)
        self.boot_refused(HP)
        logs = self.sandbox.layout.logs.glob("nova-scheduler-*.log")
        self.assertIn(
            "request.not_volume_backed", "".join(log.read_text() for log in logs)
        )

    def test_wherever_it_is_broken_off_nothing_stays(self):
        """Behind each request: key pair, security group, two rules, two servers.

        Before each server is its volume.
        """
        for number in range(1, 9):
            error = CloudError("no answer") if number % 2 else KeyboardInterrupt()
            api = BrokenOff(self.connection, number, error)
            self.assertRaises(
                type(error),
                lambda api=api: list(
                    proof_servers.create(api, self.wanted(), base.tell)
                ),
            )
            self.assertNotEqual([], proof_servers.left(self.api), number)
            proof_servers.delete(self.api, PROOF, base.tell)
            self.assert_nothing_left()

    def test_signals(self):
        for number, (name, status, sigint) in enumerate(
            (
                (signal.SIGINT, 130, "default_int_handler"),
                (signal.SIGTERM, 143, "SIG_IGN"),
            ),
            1,
        ):
            process = self.start(sigint=sigint)
            self.booted(process, number)
            process.send_signal(name)
            found, _, stderr = self.ended(process)
            self.assertEqual(status, found, stderr)
            self.assertIn("interrupted", stderr)
            self.assert_nothing_left()

    def test_what_a_proof_that_was_killed_has_left(self):
        process = self.start()
        self.booted(process, 1)
        process.kill()
        process.communicate()
        self.assertNotEqual([], proof_servers.left(self.api))
        found, _, stderr = self.ended(self.start("--clean"))
        self.assertEqual(0, found, stderr)
        self.assertIn("deleting server perfvm-proof-", stderr)
        self.assert_nothing_left()

    def test_a_root_volume_of_another_type(self):
        """Nova's scheduler does not see the type: the audit finds it."""
        found = self.audit()[1]
        self.assertEqual([], found)
        self.openstack("volume", "type", "create", "other")
        self.addCleanup(lambda: self.cinder.delete_type(self.cinder.find_type("other")))
        asked = self.request(HP)
        asked["block_device_mapping_v2"][0]["volume_type"] = "other"
        self.request = lambda _flavor: asked
        self.addCleanup(self.delete_all)
        server = self.boot(HP)
        found = self.audit()[1]
        self.assertEqual(["audit.volume_type_differs"], [one["Code"] for one in found])
        self.assertIn(server["id"], found[0]["Subject"])
        (volume,) = self.cinder.volumes()
        self.assertIn(volume.id, found[0]["Remedy"])

    def test_no_such_volume_type(self):
        self.cinder.delete_type(self.cinder.find_type(TYPE))
        found, _, stderr = self.ended(self.start())
        self.assertEqual(3, found, stderr)
        self.assertIn(f"openstack volume type create {TYPE}", stderr)
        self.assert_nothing_left()

    def test_no_room(self):
        self.boot(HP, host=HOST)
        found, stdout, stderr = self.ended(self.start())
        self.assertEqual(
            (1, f"NOT PROVEN {HP} on {HOST}: there is no room\n"),
            (found, stdout),
            stderr,
        )
        self.assertIn(f"openstack perfvm plan drain {HOST}", stderr)

    def test_from_policy_to_proof(self):
        """All steps of doc/source/admin/prove.rst before the proof itself."""
        self.cinder.delete_type(self.cinder.find_type(TYPE))
        offline, looked, *steps = documented.of(self)
        self.documented([offline])
        result = self.shell(looked.text, self._directory())
        self.assertEqual(1, result.returncode, result.stderr)
        self.assertIn("audit.volume_type_missing", result.stdout)
        printed = self.documented(steps, cmp7=HOST, **{"debian-12": content.IMAGE})
        (booted,) = (printed[text] for text in printed if "server create" in text)
        self.assertRegex(booted, r"status +\| ACTIVE")
        (audited,) = (printed[text] for text in printed if "perfvm audit" in text)
        self.assertNotIn("audit.", audited)
        self.assert_nothing_left()

    def test_a_proof(self):
        process = self.start(*self.words(*documented.of(self)))
        self.stand_in_for_vms(process)
        stderr = self.assert_judged(process)
        self.assertRegex(stderr, "about [0-9]+ minutes")
        self.assertIn("collecting under load", stderr)
        self.assertIn("without --generator", stderr)
        self.assert_nothing_left()
        names = {path.name for path in self.directory.iterdir()}
        self.assertEqual({"proof.html", "proof.json", "ssh_config"}, names)

    def test_a_proof_of_a_guest_that_runs(self):
        """The only one of its class on a host, through which ssh reaches it."""
        if why := reached.missing():
            self.skipTest(why)
        directory = self.useFixture(fixtures.TempDir()).path
        image.build(directory, *reached.MORE)
        guest = self.useFixture(reached.Reached(directory, self.host))
        self.stand_in(SHARED, self.host)
        process = self.start(
            *("--policy", str(self.sandbox.layout.policy), "--flavor", base.GENERAL),
            *("--host", SHARED, "--image", content.IMAGE, "--jump", SHARED),
            *("--generator", f"root@{SHARED}", "--output", str(self.output)),
            *("--generator-address", GATEWAY.partition("/")[0]),
        )
        self.booted(process, 1)
        (server,) = self.compute.servers()
        self.stand_in_for_vm(server, guest)
        self.assert_judged(process)
        record = json.loads(self.output.read_text())
        self.assertEqual([], record["measured"]["run"]["failures"])
        self.assertEqual(
            [image.HOSTNAME], [one["hostname"] for one in record["guests"]]
        )
        steps = record["measured"]["run"]["steps"]
        last = max(datetime.fromisoformat(one["started_at"]) for one in steps)
        for one in (record["host"], *record["guests"]):
            self.assertLess(last, datetime.fromisoformat(one["taken_at"]))
        self.assert_nothing_left()

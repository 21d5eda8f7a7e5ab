# SPDX-License-Identifier: Apache-2.0
"""Proofs on a cloud whose guests do not run: what is made is deleted.

Network namespaces stand in for the host and for the guests, so no ratio means
anything.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import fixtures

from nova_perfvm.cloud import proof_servers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.cloud.proof_servers import WantedServers
from nova_perfvm.osc.proof_machines import make_key
from nova_perfvm.sandbox.processes import content, waiting
from tests import documented
from tests.bench import machine
from tests.guest import image, reached
from tests.guest.machine import GATEWAY
from tests.sandbox import base
from tests.sandbox.base import HP
from tests.sandbox.documented import DocumentedCommands
from tests.sandbox.volumes import TYPE, VolumesMixin

HOST, SHARED = "dedicated1", "shared1"
PROOF = "0123abcd"
# The shortest measurements that there are, and little of this machine's memory.
CLIENT = """
import sys
from nova_perfvm.measure.prove import loaded, plan
plan._SECONDS, plan._QUICK_ROUNDS, loaded._HELD = (1,), 1, 0.001
from openstackclient.shell import main
sys.exit(main())
"""


class BrokenOff(API):
    """A cloud that is left after so many requests that make something."""

    def __init__(self, connection, left, error):
        super().__init__(connection)
        self.left, self.error = left, error

    def _request(self, service, method, path, body=None, key=""):
        answer = super()._request(service, method, path, body, key)
        if method == "POST" and not path.endswith("/action"):
            self.left -= 1
            if not self.left:
                raise self.error
        return answer


class ProveTest(VolumesMixin, DocumentedCommands, base.SandboxTest):
    HOSTS = "1xdedicated:2x20,1xshared:2x20"

    def setUp(self):
        super().setUp()
        self.connection = self.sandbox.connect()
        self.api = API(self.connection)
        self.addCleanup(proof_servers.delete, self.api, None, base.tell)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.ssh = self.directory / "ssh_config"
        self.output = self.directory / "proof.json"
        self.host = self.useFixture(machine.Machine(f"{HOST}-x"))
        self.stand_in(HOST, self.host)

    def wanted(self):
        return WantedServers(
            proof=PROOF,
            host=HOST,
            flavor=self.compute.find_flavor(HP).id,
            image=self.connection.image.find_image(content.IMAGE).id,
            count=2,
            network=proof_servers.find_network(self.api, None),
            public_key=make_key(str(self.directory / "proof.key")),
            user_data="#cloud-config\n",
            volume_gb=1,
            volume_type=TYPE,
        )

    def assert_nothing_left(self):
        self.assertEqual([], proof_servers.left(self.api))
        self.assertEqual([], self.names())
        self.assertEqual([], self.types())
        groups = {group.name for group in self.connection.network.security_groups()}
        self.assertEqual({"default"}, groups)
        self.assertEqual([], list(self.compute.keypairs()))

    def names(self):
        return [server.name for server in self.compute.servers()]

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

    # The command

    def stand_in(self, name, host):
        """Let ssh reach a machine by a name."""
        with self.ssh.open("a") as config:
            config.write(machine.client(name, host))

    def start(self, *words):
        """Start a proof on a host that a machine stands in for."""
        words = words or (*self.words_of(), "--host", HOST)
        options = ("--quick", "--ssh-option=-F", f"--ssh-option={self.ssh}")
        process = subprocess.Popen(
            [*(sys.executable, "-c", CLIENT, "perfvm", "prove"), *words, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # ssh is not where OpenStack is.
            env=os.environ | self.sandbox.exports() | {"PATH": os.environ["PATH"]},
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def words_of(self):
        return (
            *("--policy", str(self.sandbox.layout.policy), "--flavor", HP),
            *("--image", content.IMAGE, "--output", str(self.output)),
        )

    def words(self, command):
        """Return the arguments of a documented command, for the sandbox."""
        names = {
            "perfvm.yaml": str(self.sandbox.layout.policy),
            "cmp7": HOST,
            "debian-12": content.IMAGE,
            "proof.json": str(self.output),
        }
        # Namespaces do not reach each other; tests/bench/test_prove.py has a generator.
        text = command.text.replace("--generator root@192.0.2.30 ", "")
        return [names.get(word, word) for word in shlex.split(text)[3:]]

    def ended(self, process):
        stdout, stderr = process.communicate(timeout=900)
        self.assertNotIn("Traceback", stderr)
        return process.returncode, stdout, stderr

    def booted(self, process, number):
        """Wait until so many servers are there."""
        waiting.until(
            lambda: len(self.names()) >= number or process.poll() is not None,
            f"{number} servers",
            base.SECONDS,
        )
        if process.poll() is not None:
            self.fail(process.communicate())

    def test_signals(self):
        for number, (name, status) in enumerate(
            ((signal.SIGINT, 130), (signal.SIGTERM, 143)), 1
        ):
            process = self.start()
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

    def stand_in_for_vms(self, process):
        """Wait until both VMs are there, and let ssh reach machines in their place."""
        self.booted(process, 2)
        self.assertEqual([TYPE] * 2, self.types())
        for server in self.compute.servers():
            guest = self.useFixture(machine.Machine(f"{server.name}-x"))
            self.stand_in_for_vm(server, guest)

    def stand_in_for_vm(self, server, guest):
        addresses = waiting.until(
            lambda server=server: self.compute.get_server(server.id).addresses,
            "an address",
            base.SECONDS,
        )
        self.stand_in(addresses["private"][0]["addr"], guest)

    def assert_judged(self, process):
        found, stdout, stderr = self.ended(process)
        # No VM runs on the machine that stands in for the host.
        self.assertRegex(stdout, rf"^(REFUTED|NOT PROVEN) \S+ on {HOST}-x: ", stderr)
        self.assertIn(found, {1, 2}, stderr)
        self.assertEqual(0o600, self.output.stat().st_mode & 0o777)
        return stderr

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
        self.assertEqual({"proof.json", "ssh_config"}, names)

    def test_a_proof_that_is_gone_on_with(self):
        measured = self.output.with_name("proof.json.run")
        process = self.start(*self.words_of(), "--host", HOST, "--keep")
        self.stand_in_for_vms(process)
        waiting.until(
            lambda: (
                measured.exists() and json.loads(measured.read_text())["run"]["steps"]
            ),
            "a step",
            base.SECONDS,
        )
        process.send_signal(signal.SIGINT)
        found, _, stderr = self.ended(process)
        self.assertEqual(130, found, stderr)
        self.assertIn("kept: server perfvm-proof-", stderr)
        (step, *_) = json.loads(measured.read_text())["run"]["steps"]
        servers = sorted(self.names())

        again = self.start(*self.words_of(), "--resume", "--servers", *servers)
        self.assert_judged(again)
        record = json.loads(self.output.read_text())
        steps = record["measured"]["run"]["steps"]
        self.assertEqual(step, steps[0])
        self.assertEqual(len(steps), len({one["key"] for one in steps}))
        self.assertEqual(servers, sorted(self.names()))

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

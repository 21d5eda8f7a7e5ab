# SPDX-License-Identifier: Apache-2.0
"""Proofs on a cloud whose guests do not run: what is made is deleted.

Network namespaces stand in for the host and for the guests, so no ratio means
anything.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from nova_perfvm.cloud import proof_servers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.proof_servers import WantedServers
from nova_perfvm.measure.prove.session import make_key
from tests.measure import machine
from tests.processes import content, waiting
from tests.sandbox import base
from tests.sandbox.base import HP
from tests.sandbox.volumes import TYPE, VolumesMixin

HOST, SHARED = "dedicated1", "shared1"
PROOF = "0123abcd"
# The shortest measurements that there are, and little of this machine's memory.
CLIENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.{sigint})
from nova_perfvm.measure.prove import loaded, plan
plan._QUICK_RUNS_S, plan._QUICK_ROUNDS, loaded._HELD = (1,), 1, 0.001
from openstackclient.shell import main
sys.exit(main())
"""


class ProofCase(VolumesMixin, base.SandboxTest):
    """Tests of proofs on a host that a network namespace stands in for."""

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

    def stand_in(self, name, host):
        """Let ssh reach a machine by a name."""
        with self.ssh.open("a") as config:
            config.write(machine.client(name, host))

    def start(self, *words, sigint="default_int_handler"):
        """Start a proof on a host that a machine stands in for.

        :param sigint: what it does with SIGINT, which background jobs ignore
        """
        words = words or (*self.words_of(), "--host", HOST)
        options = ("--quick", "--ssh-option=-F", f"--ssh-option={self.ssh}")
        client = CLIENT.format(sigint=sigint)
        process = subprocess.Popen(
            [*(sys.executable, "-c", client, "perfvm", "prove"), *words, *options],
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
        # Namespaces do not reach each other; tests/measure/test_prove has a generator.
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
        # A quick one is no proof.
        self.assertRegex(
            stdout, rf"^measured, not a proof: .* \S+ on {HOST}-x: ", stderr
        )
        self.assertEqual(3, found, stderr)
        self.assertTrue(self.output.with_suffix(".html").exists())
        self.assertEqual(0o600, self.output.stat().st_mode & 0o777)
        return stderr

# SPDX-License-Identifier: Apache-2.0
"""What a proof refuses before it makes anything, and how it reaches machines."""

import argparse
import contextlib
import io
import shutil
import subprocess

import yaml

from nova_perfvm.cloud.proof_servers import ProofServer
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc import output, proof_machines
from tests.directory import DirectoryCase
from tests.unit.osc import invocations

FLAVOR = "hp.20c.64g"
VM1 = ProofServer("vm1", "cmp7", FLAVOR, "192.0.2.21")
VM2 = ProofServer("vm2", "cmp7", FLAVOR, "192.0.2.22")


class ProveTest(DirectoryCase):
    def setUp(self):
        super().setUp()
        self.output = self.directory / "proof.json"

    def refused(self, *arguments):
        """Return what is said of a proof that makes no request to the cloud."""
        given = ("--flavor", FLAVOR, "--output", str(self.output), *arguments)
        status, stdout, stderr = invocations.run(
            "openstack", ["prove", *given], invocations.forbidding()
        )
        self.assertEqual((3, ""), (status, stdout), stderr)
        self.assertNotIn("this needs the rights", stderr)
        return stderr

    def test_files(self):
        self.assertIn("missing: --host, --image", self.refused())
        where = ("--host", "cmp7", "--image", "i")
        self.assertIn("--servers", self.refused(*where, "--resume"))
        measured = self.directory / "proof.json.run"
        measured.touch()
        self.assertIn("--resume", self.refused(*where))
        measured.unlink()
        self.output.touch()
        self.assertIn("name another", self.refused(*where))
        self.output = self.directory / "no" / "proof.json"
        self.assertIn("there is no directory", self.refused(*where))

    def test_the_host_is_that_of_all_servers(self):
        for host, there, words in (
            (None, [], "found none"),
            ("cmp8", [VM1], "found cmp7, cmp8"),
            (None, [VM1, VM2._replace(host="cmp8")], "found cmp7, cmp8"),
            (None, [VM1, VM2._replace(flavor="g.2c.4g")], "vm2 has g.2c.4g"),
        ):
            given = argparse.Namespace(host=host)
            error = self.assertRaises(
                PerfVMError, proof_machines.host_of, given, there, FLAVOR
            )
            self.assertIn(words, str(error))
        given = argparse.Namespace(host=None)
        self.assertEqual("cmp7", proof_machines.host_of(given, [VM1, VM2], FLAVOR))

    def test_how_vms_are_reached(self):
        given = argparse.Namespace(
            output=str(self.output), user="debian", jump="jump", ssh_option=["-v"]
        )
        (target,) = proof_machines.targets(given, [VM2])
        self.assertEqual("debian@192.0.2.22", target.ssh)
        self.assertEqual(("-v", "-J", "jump"), target.ssh_options)
        self.assertEqual(("sudo", "-n"), target.prefix)
        # With the key that was made for it.
        proof_machines.make_key(f"{self.output}.key")
        given.user = "root"
        (target,) = proof_machines.targets(given, [VM2])
        self.assertIn(f"{self.output}.key", target.ssh_options)
        self.assertEqual((), target.prefix)

    def test_user_data_installs_what_is_missing(self):
        self.assertTrue(proof_machines.USER_DATA.startswith("#cloud-config\n"))
        told = yaml.safe_load(proof_machines.USER_DATA)
        self.assertEqual({"disable_root", "runcmd"}, told.keys())
        (command,) = told["runcmd"]
        programs = self.directory / "programs"
        programs.mkdir()
        log = self.directory / "log"

        def installed(*names, status=0):
            """Return what is run where only some programs are there."""
            for name in names:
                stub = programs / name
                stub.write_text(
                    f'#!/bin/sh\necho "{name} $*" >> {log}\nexit {status}\n'
                )
                stub.chmod(0o755)
            log.write_text("")
            subprocess.run(
                (shutil.which(command[0]), *command[1:]),
                check=not status,
                env={"PATH": str(programs)},
                capture_output=True,
            )
            return [line.split()[:2] for line in log.read_text().splitlines()]

        apt = [["apt-get", "update"], ["apt-get", "-y"]]
        self.assertEqual(apt, installed("apt-get"))
        dnf = [["apt-get", "update"], ["dnf", "-y"]]
        self.assertEqual(dnf, installed("apt-get", "dnf", status=1))
        tools = ("sysbench", "iperf3", "fio", "cyclictest", "numactl", "ethtool")
        self.assertEqual(dnf, installed(*tools))
        self.assertEqual([], installed("python3"))

    def test_progress_without_a_terminal_is_a_line_now_and_then(self):
        for quiet_s, lines in (
            (None, ""),
            (60, "a: 1 of 9\n"),
            (0, "a: 1 of 9\nb: 2\n"),
        ):
            with contextlib.redirect_stderr(io.StringIO()) as stderr:
                progress = output.ProgressLine(quiet_s)
                progress("a", 1, 9)
                progress("b", 2, 0)
            self.assertEqual(lines, stderr.getvalue())

# SPDX-License-Identifier: Apache-2.0
"""What a proof refuses before it makes anything, and how it reaches machines."""

import contextlib
import io
import json
import shutil
import subprocess
from dataclasses import replace
from unittest import mock

import yaml

from nova_perfvm.cloud.proof_cloud import ProofCloud
from nova_perfvm.cloud.proof_servers import ProofServer
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure import samples
from nova_perfvm.measure.prove import session
from nova_perfvm.measure.prove.session import ProofOptions
from nova_perfvm.osc import output
from nova_perfvm.policy import loader
from tests.directory import DirectoryCase
from tests.unit.measure.prove import sound
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

    def test_a_class_of_iops_needs_a_directory(self):
        policy = loader.load()
        classes = [
            replace(one, disk=replace(one.disk, read_iops=3000))
            for one in policy.classes
        ]
        path = self.directory / "policy.yaml"
        path.write_text(loader.dump(replace(policy, classes=tuple(classes))))
        where = ("--host", "cmp7", "--image", "i", "--policy", str(path))
        self.assertIn("missing: --directory: class", self.refused(*where))

    def test_volumes_of_the_type_of_the_class(self):
        types = {"a": "nvme-tcp", "b": "hdd"}
        cloud = mock.Mock()
        cloud.cinder.side_effect = lambda _method, path, key: {
            "id": path[-1],
            f"{key}_type": types[path[-1]],
        }
        asking = ProofCloud(cloud, print, mock.Mock(), FLAVOR, "i")
        there = [VM1._replace(volumes=("a", "b")), VM2._replace(volumes=("b",))]
        vm_class = loader.load().classes[0]
        for source, kind, expected in (
            ("volume", "nvme-tcp", {"vm1": ["a"], "vm2": []}),
            ("volume", None, {"vm1": ["a", "b"], "vm2": ["b"]}),
            ("image", None, None),
        ):
            disk = replace(vm_class.disk, source=source, volume_type=kind)
            found = asking.volumes(replace(vm_class, disk=disk), there)
            self.assertEqual(expected, found)

    def test_a_page_is_not_written_over(self):
        where = ("--host", "cmp7", "--image", "i")
        self.output = self.directory / "proof.html"
        self.assertIn("its page would be written over it", self.refused(*where))
        self.output.touch()
        self.output = self.directory / "proof.json"
        self.assertIn("proof.html is there already", self.refused(*where))

    def test_fio_files_are_removed_where_they_are(self):
        said = self.refused("--clean", "--directory", "/var/tmp")
        self.assertIn("missing: --host, or --servers", said)

    def test_what_was_seen_is_judged_and_written(self):
        case = sound.Case()
        for changes, status, words in (
            ({}, 0, f"PROVEN {sound.FLAVOR} on compute1: 2 VMs at once reach "),
            ({"repeats": 5}, 3, "measured, not a proof: not the built-in scenario: "),
        ):
            case.run["scenario"].update(changes)
            measured = self.directory / "proof.json.run"
            document = json.loads(samples.dumps(case.samples())) | {"run": case.run}
            measured.write_text(json.dumps(document))
            line, found = session.judged(
                ProofOptions(output=str(self.output)),
                loader.parse(case.policy),
                case.flavor,
                (case.host, tuple(case.guests)),
            )
            self.assertEqual(status, found)
            self.assertTrue(line.startswith(words), line)
            self.assertNotIn("\n", line)
            found = json.loads(self.output.read_text())
            self.assertEqual(line, found["verdict"]["line"])
            page = self.output.with_suffix(".html")
            self.assertIn(words.partition(" hp.")[0], page.read_text())
            for path in (self.output, page):
                self.assertEqual(0o600, path.stat().st_mode & 0o777)
            self.assertFalse(measured.exists())

    def test_the_host_is_that_of_all_servers(self):
        for host, there, words in (
            (None, [], "found none"),
            ("cmp8", [VM1], "found cmp7, cmp8"),
            (None, [VM1, VM2._replace(host="cmp8")], "found cmp7, cmp8"),
            (None, [VM1, VM2._replace(flavor="g.2c.4g")], "vm2 has g.2c.4g"),
        ):
            host_of = ProofOptions(host=host).host_of
            error = self.assertRaises(PerfVMError, host_of, there, FLAVOR)
            self.assertIn(words, str(error))
        self.assertEqual("cmp7", ProofOptions().host_of([VM1, VM2], FLAVOR))

    def test_how_vms_are_reached(self):
        given = ProofOptions(
            output=str(self.output), user="debian", jump="jump", ssh_option=["-v"]
        )
        (target,) = given.targets([VM2])
        self.assertEqual("debian@192.0.2.22", target.ssh)
        self.assertEqual(("-v", "-J", "jump"), target.ssh_options)
        self.assertEqual(("sudo", "-n"), target.prefix)
        # With the key that was made for it.
        session.make_key(f"{self.output}.key")
        (target,) = replace(given, user="root").targets([VM2])
        self.assertIn(f"{self.output}.key", target.ssh_options)
        self.assertEqual((), target.prefix)

    def test_user_data_installs_what_is_missing(self):
        self.assertTrue(session.USER_DATA.startswith("#cloud-config\n"))
        told = yaml.safe_load(session.USER_DATA)
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

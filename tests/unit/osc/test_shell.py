# SPDX-License-Identifier: Apache-2.0

import importlib.metadata
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import fixtures
import testtools
import yaml

from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.generate.formats import shell as shell_format
from nova_perfvm.generate.formats import tools
from nova_perfvm.osc import shell
from nova_perfvm.policy import loader
from tests import console
from tests.unit.measure import hosts
from tests.unit.measure.prove import sound
from tests.unit.osc.base import CommandCase

POLICY = loader.load()
BAD = "placement: slot\nmanaged_hosts: none\n"


_POLICY = str(Path(__file__).parents[3] / "etc" / "nova_perfvm" / "perfvm.yaml")
DIFF = ["policy", "diff", _POLICY, _POLICY]


class ProcessTest(testtools.TestCase):
    """What only a process of its own shows."""

    def run_process(self, *arguments, stdout=subprocess.PIPE, unbuffered=""):
        code = (
            "import sys; sys.argv[0] = 'nova-perfvm'\n"
            "from nova_perfvm.osc.shell import main\n"
            "status = main()\n"
            "heavy = ('nova', 'eventlet', 'openstack', 'osc_lib', 'oslo_config')\n"
            "print(*[name for name in heavy if name in sys.modules], file=sys.stderr)\n"
            "sys.exit(status)"
        )
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            check=False,
            stdout=stdout,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )

    def test_interrupted_before_a_command_runs(self):
        with mock.patch.object(shell.Shell, "run", side_effect=KeyboardInterrupt):
            self.assertEqual(130, shell.main(["policy", "show"]))

    def test_no_command_loads_a_service_or_a_client(self):
        for arguments in (
            ["policy", "show"],
            ["flavor", "generate"],
            ["image", "generate"],
            ["help", "policy", "show"],
        ):
            result = self.run_process(*arguments)
            said = console.without_policy(result.stderr)
            self.assertEqual((0, "\n"), (result.returncode, said))

    def test_output_that_cannot_be_written(self):
        said = "cannot write the output: No space left on device"
        path = Path(self.useFixture(fixtures.TempDir()).path) / "guest.json"
        path.write_text(hosts.as_json(sound.Case().guests[0]))
        # A table is written by cliff, and help when the process ends; this command has
        # statuses of its own, of which none is one of a lost output.
        judging = ["guest", "check", str(path)]
        for arguments, expected, unbuffered in (
            (["policy", "show"], 1, ""),
            (DIFF, 1, ""),
            (["--help"], 1, ""),
            (["--help"], 1, "1"),
            (judging, 3, ""),
            (judging, 3, "1"),
        ):
            with Path("/dev/full").open("w") as full:
                result = self.run_process(
                    *arguments, stdout=full, unbuffered=unbuffered
                )
            self.assertEqual(expected, result.returncode, arguments)
            lines = [one for one in result.stderr.splitlines() if one]
            self.assertEqual([said], [one for one in lines if "warning" not in one])

    def test_a_reader_that_leaves(self):
        """As in ``nova-perfvm policy show | true``: no complaint."""
        for arguments, unbuffered in itertools.product(
            (["policy", "show"], DIFF), ("", "1")
        ):
            reader, writer = os.pipe()
            os.close(reader)
            with os.fdopen(writer, "w") as pipe:
                result = self.run_process(
                    *arguments, stdout=pipe, unbuffered=unbuffered
                )
            self.assertEqual((141, "\n"), (result.returncode, result.stderr))


class ShellTest(CommandCase):
    def test_help_lists_the_commands(self):
        version = importlib.metadata.version("nova-perfvm")
        for words, *arguments in (
            ("flavor generate", "--help"),
            ("flavor generate", "help"),
            ("flavor generate",),
            ("--memory-gb", "help", "flavor", "generate"),
            ("--memory-gb", "flavor", "generate", "-h"),
            ("cmds_flavor='generate'", "complete"),
            (f" {version}\n", "--version"),
        ):
            self.assertEqual(0, self.run_command(*arguments))
            self.assertIn(words, self.stdout)

    def test_unknown_command(self):
        """Those that are like it are named."""
        for words, nearest in (
            (["flavour", "generate"], "flavor generate"),
            (["adit", "--snapshot", "x"], "audit"),
        ):
            self.assertEqual(2, self.run_command(*words))
            self.assertIn(f"Did you mean one of these?\n  {nearest}\n", self.stdout)


class PolicyTest(CommandCase):
    def test_diff(self):
        self.run_command("policy", "show")
        old = self.file(self.stdout)
        new = self.file(self.stdout.replace("slots: null", "slots: 3"))
        arguments = ("policy", "diff", old, new, "-f", "value")
        self.assertEqual(0, self.run_command(*arguments), self.stderr)
        self.assertIn("policy  elastic.slots null 3\n", self.stdout)
        bad = self.file(BAD)
        self.assert_refused(1, "placement", "policy", "diff", old, bad)
        self.assert_refused(1, "nowhere", *arguments[:4], "--snapshot", "/nowhere")
        self.assert_refused(2, "an empty path", *arguments[:4], "--snapshot", "")

    def test_show(self):
        self.run_command("policy", "show")
        self.assertEqual(POLICY, loader.parse(self.stdout))
        self.assertIn(POLICY.digest, self.stdout)
        self.run_command("policy", "show", "-f", "json")
        found = json.loads(self.stdout)
        self.assertEqual(POLICY.as_document(), found["policy"])
        self.assertEqual(POLICY.digest, found["digest"])

    def test_check_says_how_the_classes_fit_each_shape(self):
        text = 'schema_version: "1.0"\nhost_shape: [2x22, 2x20x2, 4x10]\n'
        one, none = "1 slot of class high-performance", "0 slots of class high-perf"
        for path, expected in (
            (
                "builtin",
                (
                    "built-in policy: valid",
                    f"SHA-256 {POLICY.digest}",
                    "class high-performance: 20 vCPUs, dedicated\n",
                    "class general: any number of vCPUs, shared, the default\n",
                    f"host 2x20: {one} per NUMA node, 2 VMs",
                    "note: policy.no_cpu_for_host: classes.high-performance.vcpus",
                ),
            ),
            (
                self.file(text),
                (f"host 2x22: {one}", f"host 2x20x2: {one}", f"host 4x10: {none}"),
            ),
        ):
            self.assertEqual(0, self.run_command("policy", "check", path))
            for words in expected:
                self.assertIn(words, self.stdout + self.stderr)

    def test_check_lists_every_mistake(self):
        for status, *arguments in (
            (2, "check"),
            (2, "check", "--policy"),
            (1, "show", "--policy"),
        ):
            path = self.file(BAD)
            self.assert_refused(status, path, "policy", *arguments, path)
            for words in ("schema_version", "'slot'", "'none'"):
                self.assertIn(words, self.stderr)

    def test_refused(self):
        path = self.file(BAD)
        for status, words, *arguments in (
            # An empty path would be the current directory.
            (3, "an empty path", "check", ""),
            (1, "an empty path", "show", "--policy", ""),
            (1, "an empty path", "diff", "", ""),
            (3, "once", "check", path, "--policy", path),
        ):
            self.assert_refused(status, words, "policy", *arguments)

    def test_the_built_in_policy_has_a_name(self):
        said = f"policy: built-in (sha256 {POLICY.digest[:8]})\n"
        for named in ((), ("--policy", "builtin")):
            self.assertEqual(0, self.run_command("flavor", "generate", *named))
            self.assertEqual(said, self.stderr)
        path = self.file('schema_version: "1.0"\nmanaged_hosts: labelled\n')
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY", path))
        self.run_command("policy", "check", "builtin")
        self.assertIn("built-in policy: valid", self.stdout)
        self.run_command("policy", "diff", "builtin", path, "-c", "What", "-f", "value")
        self.assertEqual("managed_hosts\n", self.stdout)

    def test_the_environment_names_the_file(self):
        path = self.file('schema_version: "1.0"\nmanaged_hosts: labelled\n')
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY", path))
        self.run_command("policy", "show")
        self.assertIn("labelled", self.stdout)
        self.run_command("policy", "check")
        self.assertIn(f"{path}: valid", self.stdout)
        digest = loader.load(path).digest
        self.run_command("flavor", "generate")
        self.assertEqual(
            f"policy: {path} (sha256 {digest[:8]}, from PERFVM_POLICY)\n", self.stderr
        )
        for command in (("flavor", "generate"), ("policy", "show")):
            with fixtures.EnvironmentVariable("PERFVM_POLICY", "none.yaml"):
                words = "cannot read none.yaml, from PERFVM_POLICY: No such file"
                self.assert_refused(1, words, *command)
                words = "cannot read other.yaml: No such file"
                self.assert_refused(1, words, *command, "--policy", "other.yaml")
        # What stands on the command line comes first.
        other = self.file(BAD)
        for status, *arguments in ((2, "check", other), (1, "show", "--policy", other)):
            self.assert_refused(status, other, "policy", *arguments)


class FlavorTest(CommandCase):
    def test_what_selects_the_flavors(self):
        self.assertEqual(0, self.run_command("flavor", "generate"))
        expected = generate_flavors(POLICY)
        self.assertEqual(shell_format.flavor_block(expected), self.stdout)
        self.run_command(
            *("flavor", "generate", "--class", "high-performance"),
            *("--memory-gb", "96", "128", "--memory-gb", "160"),
            *("--prefix", "dc1-", "--format", "ansible"),
        )
        expected = generate_flavors(POLICY, memory_gb=[96, 128, 160], prefix="dc1-")
        self.assertEqual(tools.ansible(expected), self.stdout)

    def test_other_formats(self):
        for name in ("json", "yaml", "terraform"):
            self.assertEqual(0, self.run_command("flavor", "generate", "-f", name))
            self.assertIn("hw:cpu_thread_policy", self.stdout)
        self.run_command("flavor", "generate", "-f", "json")
        (first, *_), (flavor, *_) = json.loads(self.stdout), generate_flavors(POLICY)
        self.assertEqual(
            {
                "name": "hp.20c.64g",
                "class": "high-performance",
                "vcpus": 20,
                "memory_mb": 65536,
                "root_gb": 0,
                "extra_specs": flavor.extra_specs,
            },
            first,
        )
        self.run_command("flavor", "generate", "-f", "properties")
        high, _, general, properties = self.stdout.splitlines()
        self.assertEqual("# class high-performance", high)
        self.assertEqual("# class general", general)
        self.run_command(
            *("flavor", "generate", "--class", "general", "-f", "properties")
        )
        self.assertEqual(f"{properties}\n", self.stdout)
        self.assertEqual(
            "--property hw:cpu_policy=shared --property perfvm:class=general "
            "--property trait:CUSTOM_PERFVM_HIGH_PERFORMANCE=forbidden",
            properties,
        )

    def test_properties_of_flavors_with_keys_of_their_own(self):
        document = loader.load().as_document()
        flavors = document["classes"]["high-performance"]["flavors"]
        flavors["sizes"][0]["extra_specs"] = {"accounting:rate": "gold"}
        path = self.file(yaml.safe_dump(document))
        command = ("flavor", "generate", "--policy", path, "-f", "properties")
        status = self.run_command(*command, "--class", "high-performance")
        self.assertEqual(0, status, self.stderr)
        own, gold, others, line = self.stdout.splitlines()
        self.assertEqual("# class high-performance: hp.20c.64g", own)
        self.assertIn("accounting:rate=gold", gold)
        self.assertEqual("# class high-performance: hp.20c.128g, hp.20c.200g", others)
        self.assertEqual(line, gold.replace("--property accounting:rate=gold ", ""))

    def test_refused(self):
        for status, words, *arguments in (
            (1, "high-performance, general", "--class", "fast"),
            (1, "-5 GiB", "--memory-gb=-5"),
            (2, "--format", "--format", "toml"),
            (1, "printable", "--prefix", "a\nb"),
        ):
            self.assert_refused(status, words, "flavor", "generate", *arguments)


class ImageTest(CommandCase):
    def test_each_format(self):
        for name in ("shell", "properties", "json", "yaml"):
            self.assertEqual(0, self.run_command("image", "generate", "-f", name))
            self.assertIn("hw_vif_multiqueue_enabled", self.stdout)

    def test_one_class(self):
        arguments = ("image", "generate", "--class")
        self.assertEqual(0, self.run_command(*arguments, "general"))
        self.assertIn("needs no properties", self.stdout)
        self.assert_refused(1, "high-performance, general", *arguments, "fast")

# SPDX-License-Identifier: Apache-2.0

import argparse
import dataclasses
import json
import os
import subprocess
import sys
from unittest import mock

from openstackclient.compute.v2 import flavor as osc_flavor
from openstackclient.image.v2 import image as osc_image
from osc_placement.resources import resource_class as osc_resource_class
from osc_placement.resources import trait as osc_trait

from nova_perfvm.generate.flavors import generate_flavors, generate_image_properties
from nova_perfvm.generate.formats import shell
from nova_perfvm.policy import loader
from tests.directory import DirectoryCase

POLICY = loader.load()
HOSTILE = "a b 'c' \"d\" $HOME `id` $(id) \\ * ; & | < > # ! ~ {{x}} é"

# Stands for the openstack client: writes its arguments down, and fails where
# the test says so.
STUB = """\
#!{python}
import json, os, re, sys
with open(os.environ["RECORD"], "a") as record:
    record.write(json.dumps(sys.argv[1:]) + "\\n")
sys.exit(bool(re.search(os.environ["FAIL"], " ".join(sys.argv[1:]))))
"""

PARSERS = {
    ("flavor", "show"): osc_flavor.ShowFlavor,
    ("flavor", "create"): osc_flavor.CreateFlavor,
    ("flavor", "set"): osc_flavor.SetFlavor,
    ("image", "set"): osc_image.SetImage,
    ("trait", "create"): osc_trait.CreateTrait,
    ("resource", "class"): osc_resource_class.SetResourceClass,
}


NAMES = ["resource class set", "trait create"]


def parse(argv):
    """Let the real client's parser read a command."""
    command = PARSERS[tuple(argv[:2])](mock.Mock(spec=[]), argparse.Namespace())
    words = 3 if argv[0] == "resource" else 2
    return command.get_parser("openstack").parse_args(argv[words:])


class ShellTest(DirectoryCase):
    def setUp(self):
        super().setUp()
        stub = self.directory / "openstack"
        stub.write_text(STUB.format(python=sys.executable), encoding="utf-8")
        stub.chmod(0o755)
        self.record = self.directory / "record"

    def run_shell(self, text, fail="no such words", **environment):
        """Run lines and give the exit status and each command's arguments.

        The microversions ahead of them are kept in ``versions``.
        """
        self.record.write_text("", encoding="utf-8")
        self.result = subprocess.run(
            ["/bin/sh"],
            input=text,
            check=False,
            capture_output=True,
            cwd=self.directory,
            env={
                "PATH": f"{self.directory}:{os.environ['PATH']}",
                "RECORD": str(self.record),
                "FAIL": fail,
                **environment,
            },
            text=True,
        )
        recorded = self.record.read_text(encoding="utf-8").splitlines()
        self.versions, commands = [], []
        for line in recorded:
            argv = json.loads(line)
            words = 2 if argv[0].startswith("--os-") else 0
            self.versions.append(argv[:words])
            commands.append(argv[words:])
        return self.result.returncode, commands

    def test_missing_flavors_are_created_and_all_are_set(self):
        flavors = generate_flavors(POLICY)
        status, commands = self.run_shell(shell.flavor_block(flavors), fail="show")
        self.assertEqual((0, ""), (status, self.result.stderr))
        self.assertEqual(NAMES, [" ".join(argv[:-1]) for argv in commands[:2]])
        commands = commands[2:]
        expected = ["show", "create", "set"] * len(flavors)
        self.assertEqual(expected, [argv[1] for argv in commands])
        for flavor, create, update in zip(
            flavors, commands[1::3], commands[2::3], strict=True
        ):
            parsed = parse(create)
            self.assertEqual(
                (flavor.name, flavor.vcpus, flavor.memory_mb, flavor.root_gb),
                (parsed.name, parsed.vcpus, parsed.ram, parsed.disk),
            )
            self.assertEqual(flavor.name, parse(update).flavor)
            for argv in (create, update):
                self.assertEqual(flavor.extra_specs, parse(argv).properties)
        # nova-api validates: by arguments, as not every client takes variables along.
        validated = ["--os-compute-api-version", "2.86"]
        self.assertEqual(
            [*[["--os-placement-api-version", "1.7"]] * 2, [], validated, validated],
            self.versions[:5],
        )
        # The second time nothing is created.
        status, commands = self.run_shell(shell.flavor_block(flavors))
        self.assertEqual(0, status)
        self.assertEqual(
            ["show", "set"] * len(flavors), [argv[1] for argv in commands[2:]]
        )

    def test_placement_names_that_the_flavors_ask_for(self):
        flavors = generate_flavors(POLICY, isolated_aggregates=True)
        _, commands = self.run_shell(shell.flavor_block(flavors))
        names = ["CUSTOM_PERFVM_SLOT", "CUSTOM_PERFVM_HIGH_PERFORMANCE"]
        self.assertEqual(names, [parse(argv).name for argv in commands[:2]])
        policy = dataclasses.replace(POLICY, placement="none")
        text = shell.flavor_block(generate_flavors(policy))
        self.assertNotIn("placement-api-version", text)

    def test_hostile_texts_arrive_as_they_are(self):
        (flavor, *_) = generate_flavors(POLICY)
        specs = {"a:b": HOSTILE, "c": "d"}
        flavor = dataclasses.replace(flavor, name=HOSTILE, extra_specs=specs)
        _, commands = self.run_shell(shell.flavor_block([flavor]), fail="show")
        show, create, update = map(parse, commands)
        found = [show.flavor, create.name, update.flavor]
        self.assertEqual([HOSTILE] * 3, found)
        arguments = shell.property_arguments(specs)
        _, (argv,) = self.run_shell(f"openstack flavor set {arguments} NAME")
        for parsed in (create, update, parse(argv)):
            self.assertEqual(specs, parsed.properties)

    def test_the_first_failure_is_the_last_command(self):
        """And a terminal into which the lines are pasted stays open."""
        lines = f"{shell.flavor_block(generate_flavors(POLICY))}echo failed: $?\n"
        for fail, last in (
            ("", [NAMES[0]]),
            ("flavor (show|create)", [*NAMES, "flavor show", "flavor create"]),
            ("flavor set", [*NAMES, "flavor show", "flavor set"]),
        ):
            _, commands = self.run_shell(lines, fail=fail)
            called = [" ".join(argv) for argv in commands]
            self.assertEqual(len(last), len(called))
            for command, words in zip(called, last, strict=True):
                self.assertTrue(command.startswith(words), command)
            self.assertEqual("failed: 1", self.result.stdout.splitlines()[-1])

    def test_properties_of_the_image_that_the_environment_names(self):
        properties = generate_image_properties(POLICY)
        lines = shell.image_block(properties)
        status, (argv,) = self.run_shell(lines, IMAGE=HOSTILE)
        self.assertEqual((0, ""), (status, self.result.stderr))
        self.assertEqual(HOSTILE, parse(argv).image)
        self.assertEqual(properties, parse(argv).properties)
        for environment in ({}, {"IMAGE": ""}):
            status, commands = self.run_shell(lines, **environment)
            self.assertNotEqual(0, status)
            self.assertEqual([], commands)
            self.assertIn("set IMAGE to the name or ID", self.result.stderr)
        lines = shell.image_block({})
        self.assertEqual((0, []), self.run_shell(lines))
        self.assertIn("needs no properties", lines)

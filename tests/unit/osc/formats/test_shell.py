# SPDX-License-Identifier: Apache-2.0

import argparse
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import fixtures
import testtools
from openstackclient.compute.v2 import flavor as osc_flavor
from openstackclient.compute.v2 import server as osc_server
from openstackclient.image.v2 import image as osc_image
from osc_placement.resources import resource_class as osc_resource_class
from osc_placement.resources import trait as osc_trait

from nova_perfvm.generate.flavors import generate_flavors, generate_image_properties
from nova_perfvm.generate.properties import Properties
from nova_perfvm.osc.formats import shell
from nova_perfvm.policy import loader

POLICY = loader.load()
HIGH = POLICY.get_class("high-performance")
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
    ("server", "create"): osc_server.CreateServer,
    ("trait", "create"): osc_trait.CreateTrait,
    ("resource", "class"): osc_resource_class.SetResourceClass,
}


NAMES = ["resource class set", "trait create"]


def parse(argv):
    """Let the real client's parser read a command."""
    command = PARSERS[tuple(argv[:2])](mock.Mock(spec=[]), argparse.Namespace())
    words = 3 if argv[0] == "resource" else 2
    return command.get_parser("openstack").parse_args(argv[words:])


class ShellCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = Path(self.useFixture(fixtures.TempDir()).path)
        stub = self.directory / "openstack"
        stub.write_text(STUB.format(python=sys.executable), encoding="utf-8")
        stub.chmod(0o755)
        self.record = self.directory / "record"

    def run_shell(self, text, fail="\0", **environment):
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
                "FAIL": fail if fail != "\0" else "no such words",
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


class FlavorBlockTest(ShellCase):
    def hostile(self):
        """Return one flavor with a hostile name and a hostile extra spec."""

        def acme(policy, vm_class):
            return Properties(flavor={"acme:note": HOSTILE})

        return generate_flavors(
            POLICY,
            class_name="high-performance",
            memory_gb=[64],
            prefix=HOSTILE,
            generators={"acme": acme},
        )

    def test_missing_flavors_are_created_and_all_are_set(self):
        flavors = generate_flavors(POLICY)
        status, commands = self.run_shell(shell.flavor_block(flavors), fail="show")
        self.assertEqual((0, ""), (status, self.result.stderr))
        self.assertEqual(NAMES, [" ".join(argv[:-1]) for argv in commands[:2]])
        commands = commands[2:]
        expected = ["show", "create", "set"] * len(flavors)
        self.assertEqual(expected, [argv[1] for argv in commands])
        for flavor, argv in zip(flavors, commands[1::3], strict=True):
            parsed = parse(argv)
            self.assertEqual(
                (flavor.name, flavor.vcpus, flavor.memory_mb, flavor.root_gb),
                (parsed.name, parsed.vcpus, parsed.ram, parsed.disk),
            )
            self.assertEqual(flavor.extra_specs, parsed.properties)
        for flavor, argv in zip(flavors, commands[2::3], strict=True):
            parsed = parse(argv)
            self.assertEqual(flavor.name, parsed.flavor)
            self.assertEqual(flavor.extra_specs, parsed.properties)

    def test_the_second_time_nothing_is_created(self):
        flavors = generate_flavors(POLICY)
        status, commands = self.run_shell(shell.flavor_block(flavors))
        self.assertEqual(0, status)
        self.assertEqual(
            ["show", "set"] * len(flavors), [argv[1] for argv in commands[2:]]
        )

    def test_placement_names_that_the_flavors_ask_for(self):
        flavors = generate_flavors(POLICY, isolated_aggregates=True)
        _, commands = self.run_shell(shell.flavor_block(flavors))
        self.assertEqual(
            [
                ["resource", "class", "set", "CUSTOM_PERFVM_SLOT"],
                ["trait", "create", "CUSTOM_PERFVM_HIGH_PERFORMANCE"],
            ],
            commands[:2],
        )
        self.assertEqual(
            ["CUSTOM_PERFVM_SLOT", "CUSTOM_PERFVM_HIGH_PERFORMANCE"],
            [parse(argv).name for argv in commands[:2]],
        )
        policy = dataclasses.replace(POLICY, placement="none")
        text = shell.flavor_block(generate_flavors(policy))
        self.assertNotIn("placement-api-version", text)

    def test_hostile_texts_arrive_as_they_are(self):
        (flavor,) = self.hostile()
        status, commands = self.run_shell(shell.flavor_block([flavor]), fail="show")
        self.assertEqual((0, ""), (status, self.result.stderr))
        show, create, update = (parse(argv) for argv in commands[2:])
        name = f"{HOSTILE}hp.20c.64g"
        self.assertEqual([name, name, name], [show.flavor, create.name, update.flavor])
        self.assertEqual(HOSTILE, create.properties["acme:note"])
        self.assertEqual(HOSTILE, update.properties["acme:note"])

    def test_the_first_failure_is_the_last_command(self):
        lines = shell.flavor_block(generate_flavors(POLICY))
        status, commands = self.run_shell(lines, fail="")
        self.assertEqual(1, status)
        self.assertEqual([NAMES[0]], [" ".join(argv[:-1]) for argv in commands])
        status, commands = self.run_shell(lines, fail="flavor (show|create)")
        self.assertEqual(1, status)
        self.assertEqual(["show", "create"], [argv[1] for argv in commands[2:]])
        status, commands = self.run_shell(lines, fail="flavor set")
        self.assertEqual(1, status)
        self.assertEqual(["show", "set"], [argv[1] for argv in commands[2:]])

    def test_nova_api_is_asked_to_validate(self):
        """By arguments, as not every client takes variables along."""
        flavors = generate_flavors(
            POLICY, class_name="high-performance", memory_gb=[64]
        )
        self.run_shell(shell.flavor_block(flavors), fail="show")
        validated = ["--os-compute-api-version", "2.86"]
        self.assertEqual(
            [*[["--os-placement-api-version", "1.7"]] * 2, [], validated, validated],
            self.versions,
        )

    def test_a_terminal_into_which_it_is_pasted_stays_open(self):
        lines = shell.flavor_block(generate_flavors(POLICY))
        self.run_shell(f"{lines}echo still here\n", fail="")
        self.assertEqual("still here", self.result.stdout.splitlines()[-1])


class PropertyArgumentsTest(ShellCase):
    def test_pasted_into_a_command(self):
        arguments = shell.property_arguments({"a:b": HOSTILE, "c": "d"})
        _, (argv,) = self.run_shell(f"openstack flavor set {arguments} NAME")
        self.assertEqual({"a:b": HOSTILE, "c": "d"}, parse(argv).properties)

    def test_nothing(self):
        self.assertEqual("", shell.property_arguments({}))


class ImageBlockTest(ShellCase):
    properties = generate_image_properties(POLICY)

    def test_named_image(self):
        lines = shell.image_block(self.properties, HOSTILE, POLICY.classes)
        status, (argv,) = self.run_shell(lines)
        self.assertEqual((0, ""), (status, self.result.stderr))
        self.assertEqual(HOSTILE, parse(argv).image)
        self.assertEqual(self.properties, parse(argv).properties)

    def test_image_of_the_environment(self):
        lines = shell.image_block(self.properties, None, POLICY.classes)
        _, (argv,) = self.run_shell(lines, IMAGE=HOSTILE)
        self.assertEqual(HOSTILE, parse(argv).image)

    def test_without_an_image_nothing_is_done(self):
        lines = shell.image_block(self.properties, None, ())
        for environment in ({}, {"IMAGE": ""}):
            status, commands = self.run_shell(lines, **environment)
            self.assertNotEqual(0, status)
            self.assertEqual([], commands)
            self.assertIn("set IMAGE to the name or ID", self.result.stderr)

    def test_no_properties(self):
        lines = shell.image_block({}, None, ())
        self.assertEqual((0, []), self.run_shell(lines))
        self.assertIn("needs no properties", lines)

    def test_the_boot_line_is_one_that_the_client_takes(self):
        lines = shell.image_block(self.properties, None, [HIGH]).splitlines()
        command = lines[-1].removeprefix("#   ")
        _, (argv,) = self.run_shell(command)
        self.assertEqual([["--os-compute-api-version", "2.67"]], self.versions)
        (device,) = parse(argv).block_devices
        self.assertEqual(
            {
                "source_type": "image",
                "uuid": "IMAGE_ID",
                "destination_type": "volume",
                "boot_index": "0",
                "volume_size": "40",
                "delete_on_termination": "true",
                "volume_type": "nvme-tcp",
            },
            device,
        )

    def test_a_hostile_volume_type_stays_in_the_comment(self):
        disk = dataclasses.replace(HIGH.disk, volume_type=f"{HOSTILE}\ntouch broken")
        lines = shell.image_block({}, None, [dataclasses.replace(HIGH, disk=disk)])
        self.assertEqual((0, []), self.run_shell(lines))
        self.assertEqual({"#"}, {line[0] for line in lines.splitlines()})

# SPDX-License-Identifier: Apache-2.0

import configparser

from nova_perfvm.osc.tempest import tempest_conf
from nova_perfvm.policy import loader
from tests.unit.osc.test_shell import CommandCase

TWO_PINNED = """\
schema_version: "1.0"
classes:
  large:
    vcpus: 20
    cpu_policy: dedicated
    flavors: {name: L, memory_gb: [64], root_gb: 1}
  small:
    vcpus: 10
    cpu_policy: dedicated
    flavors: {name: "s.{memory_gb}", memory_gb: [32, 16], root_gb: 1}
  general:
    default: true
    flavors: {name: g, sizes: [{vcpus: 1, memory_gb: 1, root_gb: 1}]}
"""


class TempestConfigTest(CommandCase):
    def read(self, text):
        parser = configparser.ConfigParser()
        parser.read_string(text)
        return {name: dict(parser[name]) for name in parser.sections()}

    def test_the_built_in_policy(self):
        self.assertEqual(0, self.run_command("tempest", "config"))
        self.assertEqual(
            {
                "service_available": {"perfvm": "True"},
                "perfvm": {
                    "high_performance_flavor": "hp.20c.64g",
                    "general_flavor": "g.1c.2g",
                    "general_flavor_alt": "g.2c.4g",
                    "vcpus": "20",
                    "max_per_host": "2",
                    "exclusive": "host",
                    "placement": "slots",
                },
            },
            self.read(self.stdout),
        )

    def test_without_a_cap_it_is_what_fits(self):
        policy = loader.load(
            None,
            [
                "host_shape=2x8",
                "classes.high-performance.vcpus=2",
                "classes.high-performance.max_per_host=null",
            ],
        )
        self.assertEqual("8", self.read(tempest_conf(policy))["perfvm"]["max_per_host"])

    def test_what_the_class_shares(self):
        for exclusive in ("host", "cell", "none"):
            policy = loader.load(
                None, [f"classes.high-performance.exclusive={exclusive}"]
            )
            found = self.read(tempest_conf(policy))["perfvm"]
            self.assertEqual(exclusive, found["exclusive"])

    def test_one_of_several_pinned_classes(self):
        found = self.read(tempest_conf(loader.parse(TWO_PINNED), "small"))["perfvm"]
        self.assertEqual(
            ("s.16", "10", "4"),
            (found["high_performance_flavor"], found["vcpus"], found["max_per_host"]),
        )
        # The only general flavor is the other one, too.
        self.assertEqual("g", found["general_flavor_alt"])

    def test_the_other_general_flavor_has_no_smaller_disk(self):
        for disks, expected in (((9, 8, 9), "g.3"), ((9, 8, 7), "g.1")):
            sizes = ", ".join(
                f"{{vcpus: 1, memory_gb: {gb}, root_gb: {disk}}}"
                for gb, disk in enumerate(disks, 1)
            )
            policy = loader.parse(
                TWO_PINNED.replace(
                    "{name: g, sizes: [{vcpus: 1, memory_gb: 1, root_gb: 1}]}",
                    f'{{name: "g.{{memory_gb}}", sizes: [{sizes}]}}',
                )
            )
            with self.subTest(disks):
                found = self.read(tempest_conf(policy, "small"))["perfvm"]
                self.assertEqual("g.1", found["general_flavor"])
                self.assertEqual(expected, found["general_flavor_alt"])

    def test_refused(self):
        path = self.file(TWO_PINNED)
        for words, arguments in (
            ("pinned classes: large, small", ["--policy", path]),
            ("general is not pinned", ["--policy", path, "--class", "general"]),
            ("declares no class 'x'", ["--policy", path, "--class", "x"]),
        ):
            with self.subTest(arguments):
                self.assert_refused(1, words, "tempest", "config", *arguments)
        path = self.file('schema_version: "1.0"\nclasses: {g: {default: true}}\n')
        self.assert_refused(
            1, "pinned classes: none", "tempest", "config", "--policy", path
        )

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
    flavors: {name: "g.{memory_gb}", sizes: [{vcpus: 1, memory_gb: 1, root_gb: 1}]}
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

    def test_what_a_policy_changes(self):
        fast = "classes.high-performance"
        for changes, expected in (
            # Without a cap it is what fits.
            (
                ("host_shape=2x8", f"{fast}.vcpus=2", f"{fast}.max_per_host=null"),
                {"max_per_host": "8"},
            ),
            ((f"{fast}.exclusive=cell",), {"exclusive": "cell"}),
            ((f"{fast}.exclusive=none",), {"exclusive": "none"}),
        ):
            found = self.read(tempest_conf(loader.load(None, changes)))["perfvm"]
            self.assertEqual(found, found | expected)

    def test_one_of_several_pinned_classes(self):
        only = "{vcpus: 1, memory_gb: 1, root_gb: 1}"
        # Of the other general flavors one has no smaller disk, or there is none.
        for sizes, other in (
            ("1 9, 2 8, 3 9", "g.3"),
            ("1 9, 2 8, 3 7", "g.1"),
            ("1 1", "g.1"),
        ):
            listed = ", ".join(
                "{{vcpus: 1, memory_gb: {}, root_gb: {}}}".format(*size.split())
                for size in sizes.split(", ")
            )
            text = TWO_PINNED.replace(only, listed)
            found = self.read(tempest_conf(loader.parse(text), "small"))["perfvm"]
            expected = {
                "high_performance_flavor": "s.16",
                "general_flavor": "g.1",
                "general_flavor_alt": other,
                "vcpus": "10",
                "max_per_host": "4",
            }
            self.assertEqual(found, found | expected)

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

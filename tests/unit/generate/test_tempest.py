# SPDX-License-Identifier: Apache-2.0

import configparser

from nova_perfvm.generate.tempest import tempest_conf
from nova_perfvm.policy import loader
from tests.unit.osc.base import CommandCase
from tests.unit.rules import hosts as rules

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
    flavors:
      name: "g.{memory_gb}"
      sizes:
        - {vcpus: 1, memory_gb: 1, root_gb: 9}
        - {vcpus: 1, memory_gb: 2, root_gb: 8}
        - {vcpus: 1, memory_gb: 3, root_gb: 9}
"""


def policy_of_cells():
    """Return a policy whose pinned classes share hosts."""
    text = TWO_PINNED.replace("dedicated", "dedicated\n    exclusive: none")
    return loader.parse(f"{text}placement: cells\n")


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
        two = loader.parse(TWO_PINNED)
        for policy, name, expected in (
            # Without a cap it is what fits: one on each core of two nodes of 20.
            (rules.policy(vcpus=1, max_per_host=None), None, {"max_per_host": "40"}),
            (rules.policy(exclusive="cell"), None, {"exclusive": "cell"}),
            (
                two,
                "small",
                {
                    "high_performance_flavor": "s.16",
                    "general_flavor": "g.1",
                    # The next one whose disk is not smaller.
                    "general_flavor_alt": "g.3",
                    "vcpus": "10",
                    "max_per_host": "4",
                },
            ),
        ):
            found = self.read(tempest_conf(policy, name))["perfvm"]
            self.assertEqual(found, found | expected)

    def test_sizes_that_share_hosts(self):
        found = self.read(tempest_conf(policy_of_cells(), "small"))["perfvm"]
        self.assertEqual("L", found["high_performance_flavor_alt"])
        self.assertEqual("host", found["exclusive"])

    def test_refused(self):
        path = self.file(TWO_PINNED)
        for words, arguments in (
            ("pinned classes: large, small", ["--policy", path]),
            ("general is not pinned", ["--policy", path, "--class", "general"]),
            ("declares no class 'x'", ["--policy", path, "--class", "x"]),
        ):
            self.assert_refused(1, words, "tempest", "config", *arguments)

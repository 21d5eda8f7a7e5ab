# SPDX-License-Identifier: Apache-2.0

import pathlib

import fixtures
import testtools
from nova import conf as nova_conf
from oslo_config import fixture as config_fixture

from nova_perfvm import conf
from nova_perfvm.policy import loader
from nova_perfvm.scheduler import startup


class ReadPolicyTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(nova_conf.CONF))
        conf.register_opts(nova_conf.CONF)
        self.log = self.useFixture(fixtures.FakeLogger())
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "p.yaml"

    def test_the_built_in_policy(self):
        self.assertEqual(loader.load(), startup.read_policy("PerfVMFilter"))
        self.assertIn("PerfVMFilter enforces the built-in policy", self.log.output)
        self.assertIn(loader.load().digest, self.log.output)

    def test_a_file(self):
        self.path.write_text('schema_version: "1.0"\nmanaged_hosts: labelled\n')
        self.config.config(group="perfvm", policy_file=str(self.path))
        self.assertEqual("labelled", startup.read_policy("x").managed_hosts)
        self.assertIn(str(self.path), self.log.output)

    def test_every_mistake_is_a_line_of_the_log_and_the_process_ends(self):
        self.path.write_text("placement: slot\nmanaged_hosts: nine\n")
        self.config.config(group="perfvm", policy_file=str(self.path))
        error = self.assertRaises(SystemExit, startup.read_policy, "x")
        for words in ("schema_version: missing", "line 1: placement", "'nine'"):
            self.assertIn(words, str(error))
            self.assertEqual(1, self.log.output.count(words))

    def test_an_empty_path_is_not_the_built_in_policy(self):
        for empty in ("", " "):
            self.config.config(group="perfvm", policy_file=empty)
            error = self.assertRaises(SystemExit, startup.read_policy, "x")
            self.assertIn("nova.conf: 1 mistake", str(error))
            self.assertIn("[perfvm]policy_file: is empty: give a path", str(error))

# SPDX-License-Identifier: Apache-2.0

import fixtures
from nova import conf as nova_conf
from oslo_config import cfg

from nova_perfvm import conf
from nova_perfvm.policy import loader
from nova_perfvm.scheduler import startup
from tests.directory import DirectoryCase


class StartupTest(DirectoryCase):
    """What is read and said at the start, by a nova.conf."""

    def setUp(self):
        super().setUp()
        self.policy = self.directory / "perfvm.yaml"
        self.conf = cfg.ConfigOpts()
        conf.register_opts(self.conf)
        self.patch(nova_conf, "CONF", self.conf)
        self.log = self.useFixture(fixtures.FakeLogger(level=20))

    def start(self, *lines):
        path = self.directory / "nova.conf"
        path.write_text("\n".join(["[perfvm]", *lines]))
        self.conf(["--config-file", str(path)])

    def test_the_built_in_policy(self):
        self.start()
        self.assertEqual(loader.load(), startup.read_policy("PerfVMFilter"))
        self.assertIn("PerfVMFilter judges by the built-in policy", self.log.output)
        self.assertIn(loader.load().digest, self.log.output)

    def test_a_file(self):
        self.policy.write_text('schema_version: "1.0"\nmanaged_hosts: labelled\n')
        self.start(f"policy_file = {self.policy}", "mode = observe")
        self.assertEqual("labelled", startup.read_policy("x").managed_hosts)
        self.assertIn(str(self.policy), self.log.output)
        words = "managed_hosts is labelled, [perfvm]mode observe"
        self.assertIn(words, self.log.output)

    def test_every_mistake_is_a_line_of_the_log_and_the_process_ends(self):
        self.policy.write_text("placement: slot\nmanaged_hosts: nine\n")
        for path, expected in (
            (self.policy, ("schema_version: missing", "line 1: placement", "'nine'")),
            # That is not the built-in policy.
            ("", ("[perfvm]policy_file: is empty: give a path",)),
        ):
            self.start(f"policy_file = {path}")
            error = self.assertRaises(SystemExit, startup.read_policy, "x")
            for words in expected:
                self.assertIn(words, str(error))
                self.assertEqual(1, self.log.output.count(words))

    def test_a_mode_that_is_none(self):
        self.start("mode = observer")
        error = self.assertRaises(SystemExit, startup.read_policy, "x")
        self.assertIn("observer", str(error))
        self.assertNotIn("LocationInfo", str(error))
        self.assertIn("option mode from /", str(error))
        self.assertIn("observer", self.log.output)

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import pathlib

import fixtures
import testtools
from nova import conf as nova_conf
from oslo_config import cfg
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
        self.assertIn("PerfVMFilter judges by the built-in policy", self.log.output)
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


class ModeTest(testtools.TestCase):
    """What is said of hosts and mode, with a nova.conf that changes."""

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "n.conf"
        self.conf = cfg.ConfigOpts()
        conf.register_opts(self.conf)
        self.patch(startup.nova_conf, "CONF", self.conf)
        self.log = self.useFixture(fixtures.FakeLogger(level=20))

    def start(self, mode, policy=None):
        self.write(mode)
        self.conf(["--config-file", str(self.path)])
        startup.log_whom_it_judges(policy or loader.load())

    def write(self, mode):
        self.path.write_text(f"[perfvm]\nmode = {mode}\n")

    def test_hosts_and_mode_in_one_line(self):
        labelled = dataclasses.replace(loader.load(), managed_hosts="labelled")
        for mode, policy, words in (
            (
                "enforce",
                loader.load(),
                "judges all hosts (managed_hosts: all), so that",
            ),
            ("observe", labelled, "hosts with a perfvm:class label (managed_hosts: la"),
        ):
            with fixtures.FakeLogger(level=20) as log:
                self.start(mode, policy)
            (line,) = log.output.splitlines()
            self.assertIn(words, line)
            self.assertIn(f"mode is {mode}", line)

    def test_a_mode_that_is_none(self):
        error = self.assertRaises(SystemExit, self.start, "observer")
        self.assertIn("observer", str(error))
        self.assertIn("observer", self.log.output)

    def test_a_change(self):
        self.start("enforce")
        # As each filter of a process does.
        startup.log_whom_it_judges(loader.load())
        for mode, words in (
            ("observe", "mode is observe now: PerfVMFilter logs what it would refuse"),
            ("enforce", "mode is enforce now: PerfVMFilter refuses what runs against"),
            ("off", "PerfVMFilter refuses what runs against the policy until this is"),
        ):
            self.write(mode)
            self.conf.mutate_config_files()
            self.assertEqual(1, self.log.output.count(words), self.log.output)

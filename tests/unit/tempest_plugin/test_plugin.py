# SPDX-License-Identifier: Apache-2.0

import ast
import configparser
import dataclasses
import importlib.metadata
import importlib.util
import pathlib
import shlex
import subprocess
import sys
import unittest
import uuid

import fixtures
import testtools
from oslo_config import cfg

from nova_perfvm import tempest_plugin
from nova_perfvm.generate.tempest import tempest_conf
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.tempest_plugin import config
from tests import documented
from tests.unit.rules import hosts as rules
from tests.unit.test_boundaries import imported

PACKAGE = pathlib.Path(tempest_plugin.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# What Tempest keeps for plugins, see "Stable Tempest APIs" in its documentation.
STABLE = ("tempest.lib", "tempest.config", "tempest.test", "tempest.test_discover")


def tests_of(path):
    """Return the test methods of a module, as the source has them."""
    return [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


class OptionsTest(testtools.TestCase):
    def test_they_take_what_the_command_prints(self):
        policies = [
            dataclasses.replace(rules.POLICY, placement=scheme) for scheme in SCHEMES
        ]
        policies += [rules.policy(exclusive=how) for how in ("cell", "none")]
        for policy in policies:
            text = tempest_conf(policy)
            parser = configparser.ConfigParser()
            parser.read_string(text)
            self.assertEqual(
                {
                    config.SERVICE_GROUP: {config.service_option.name},
                    # One is of policies with several pinned classes.
                    config.group.name: {option.name for option in config.options}
                    - {"high_performance_flavor_alt"},
                },
                {name: set(parser[name]) for name in parser.sections()},
            )
            path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "conf")
            path.write_text(text)
            conf = cfg.ConfigOpts()
            conf.register_opts(config.options, group=config.group.name)
            conf(["--config-file", str(path)])
            self.assertEqual(
                (policy.placement, policy.pinned_classes[0].exclusive),
                (conf.perfvm.placement, conf.perfvm.exclusive),
            )
            self.assertEqual("g.2c.4g", conf.perfvm.general_flavor_alt)


class SourcesTest(testtools.TestCase):
    def test_each_test_has_an_id_of_its_own(self):
        found = []
        for path in MODULES:
            for test in tests_of(path):
                ids = [
                    decorator.args[0].value
                    for decorator in test.decorator_list
                    if ast.unparse(decorator.func) == "decorators.idempotent_id"
                ]
                self.assertEqual(1, len(ids), f"{path.name}: {test.name}")
                found.append(str(uuid.UUID(ids[0])))
        self.assertGreater(len(found), 10)
        self.assertEqual(len(found), len(set(found)))

    def test_only_stable_interfaces(self):
        names = {name for path in MODULES for name in imported(path)}
        used = {name for name in names if name.split(".")[0] == "tempest"}
        self.assertGreater(len(used), 5)
        self.assertEqual(set(), {name for name in used if not name.startswith(STABLE)})

    def test_nothing_of_nova(self):
        names = {name for path in MODULES for name in imported(path)}
        self.assertEqual(set(), {n for n in names if n.split(".")[0] == "nova"})


@unittest.skipUnless(
    importlib.util.find_spec("tempest"),
    "tempest is not installed: pip install '.[tempest]'",
)
class LoadedTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        (found,) = importlib.metadata.entry_points(
            group="tempest.test_plugins", name="nova_perfvm"
        )
        self.plugin = found.load()()

    def test_registers_what_it_lists(self):
        conf = cfg.ConfigOpts()
        self.plugin.register_opts(conf)
        for group, options in self.plugin.get_opt_lists():
            for option in options:
                self.assertEqual(option.default, conf[group][option.name])

    def test_tempest_lists_it(self):
        (command,) = documented.of(self)
        program, *words = shlex.split(command.text)
        done = subprocess.run(
            [pathlib.Path(sys.executable).with_name(program), *words],
            check=True,
            capture_output=True,
            text=True,
        )
        self.assertIn("nova_perfvm", done.stdout)

    def test_every_test_is_found(self):
        directory, top = self.plugin.load_tests()
        discovery = unittest.TestLoader()
        suite = discovery.discover(directory, top_level_dir=top)
        self.assertEqual([], discovery.errors)
        self.assertEqual(
            sum(len(tests_of(path)) for path in MODULES), suite.countTestCases()
        )

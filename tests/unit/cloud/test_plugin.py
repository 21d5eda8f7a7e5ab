# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import argparse
import importlib.metadata
import subprocess
import sys
import types

import testtools

from nova_perfvm.cloud.api import API
from nova_perfvm.osc import plugin


class PluginTest(testtools.TestCase):
    def test_it_costs_the_client_nothing(self):
        code = (
            "import sys, nova_perfvm.osc.plugin\n"
            "heavy = ('openstack', 'keystoneauth1', 'nova', 'yaml', 'cliff')\n"
            "print(*[name for name in heavy if name in sys.modules])"
        )
        result = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        self.assertEqual("\n", result.stdout)

    def test_what_the_client_expects(self):
        self.assertEqual("os_perfvm_api_version", plugin.API_VERSION_OPTION)
        self.assertIn(plugin.DEFAULT_API_VERSION, plugin.API_VERSIONS)
        parser = plugin.build_option_parser(argparse.ArgumentParser())
        self.assertTrue(hasattr(parser.parse_args([]), plugin.API_VERSION_OPTION))
        instance = types.SimpleNamespace(sdk_connection=object())
        self.assertIsInstance(plugin.make_client(instance), API)

    def test_every_command_can_be_loaded(self):
        group = f"openstack.{plugin.API_NAME}.v{plugin.DEFAULT_API_VERSION}"
        commands = importlib.metadata.entry_points(group=group)
        self.assertIn("perfvm_host_enroll", commands.names)
        for command in commands:
            self.assertTrue(command.load().__doc__, command.name)

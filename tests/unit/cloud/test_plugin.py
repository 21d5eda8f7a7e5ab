# SPDX-License-Identifier: Apache-2.0

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
        group = f"openstack.{plugin.API_NAME}.v{plugin.DEFAULT_API_VERSION}"
        commands = importlib.metadata.entry_points(group=group)
        self.assertIn("perfvm_host_enroll", commands.names)

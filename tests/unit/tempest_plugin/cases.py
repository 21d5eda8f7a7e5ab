# SPDX-License-Identifier: Apache-2.0
"""Methods of the plugin's tests, without a cloud."""

import importlib
import importlib.util
import unittest
from types import SimpleNamespace

import fixtures
import testtools
from oslo_config import cfg

from nova_perfvm.tempest_plugin import config

TESTS = "nova_perfvm.tempest_plugin.tests"


@unittest.skipUnless(
    importlib.util.find_spec("tempest"),
    "tempest is not installed: pip install '.[tempest]'",
)
class PluginCase(testtools.TestCase):
    def configure(self, *, resize=True, **options):
        """Set options of [perfvm], and whether the cloud resizes."""
        conf = cfg.ConfigOpts()
        # By name: the group itself would keep the values for other tests.
        conf.register_opts(config.options, group=config.group.name)
        conf([])
        for name, value in options.items():
            conf.set_override(name, value, group=config.group.name)
        self.conf = SimpleNamespace(
            perfvm=conf.perfvm,
            compute=SimpleNamespace(build_timeout=0, build_interval=0),
            compute_feature_enabled={"resize": resize},
        )

    def make(
        self, module="api.test_hosts", name="HostsTest", test="test_cap", **attributes
    ):
        """Return a test of the plugin, as its class's setup would have left it.

        :param module: that of the class, below the package of tests
        :param attributes: what the setup finds in the cloud
        """
        base, module = (
            importlib.import_module(f"{TESTS}.{path}") for path in ("base", module)
        )
        for where in (base, module):
            self.useFixture(fixtures.MonkeyPatch(f"{where.__name__}.CONF", self.conf))
        return type(name, (getattr(module, name),), attributes)(test)

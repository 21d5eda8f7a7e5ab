# SPDX-License-Identifier: Apache-2.0
"""What tests of nova-scheduler's parts share."""

import fixtures
from nova import conf as nova_conf
from oslo_config import fixture as config_fixture

from nova_perfvm import conf
from tests.directory import DirectoryCase


class ConfigCase(DirectoryCase):
    """A test with a nova.conf and a log of its own.

    :cvar LEVEL: of the log
    :ivar config: gives options other values until the test ends
    """

    LEVEL = 20

    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(nova_conf.CONF))
        conf.register_opts(nova_conf.CONF)
        # Other tests run in this process.
        self.config.config(group="perfvm", freeze_objects=False)
        self.log = self.useFixture(fixtures.FakeLogger(level=self.LEVEL))

    def policy_file(self, text):
        """Name a policy file with this text in nova.conf; return its path."""
        path = self.directory / "perfvm.yaml"
        path.write_text(text, encoding="utf-8")
        self.config.config(group="perfvm", policy_file=str(path))
        return str(path)

# SPDX-License-Identifier: Apache-2.0

import testtools
from oslo_config import cfg

from nova_perfvm import conf


class OptionsTest(testtools.TestCase):
    def test_registering_twice_is_harmless(self):
        options = cfg.ConfigOpts()
        conf.register_opts(options)
        conf.register_opts(options)
        options([])
        self.assertIsNone(options.perfvm.policy_file)

    def test_every_option_has_help_in_novas_form(self):
        for group, opts in conf.list_opts():
            self.assertEqual("perfvm", group.name)
            for opt in opts:
                self.assertIn("Possible values:", opt.help)
                self.assertIn("Related options:", opt.help)

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

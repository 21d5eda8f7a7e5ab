# SPDX-License-Identifier: Apache-2.0

import pathlib

import fixtures
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
                # oslo.config lists them itself where each has a meaning.
                listed = bool(getattr(opt.type, "choices", None))
                self.assertEqual(not listed, "Possible values:" in opt.help)
                self.assertIn("Related options:", opt.help)


class ModeTest(testtools.TestCase):
    def options(self, text):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "nova.conf"
        path.write_text(text)
        options = cfg.ConfigOpts()
        conf.register_opts(options)
        options(["--config-file", str(path)])
        return path, options

    def test_it_enforces_unless_told_otherwise(self):
        for text, observes in (
            ("", False),
            ("[perfvm]\nmode = enforce\n", False),
            ("[perfvm]\nmode = observe\n", True),
        ):
            self.assertEqual(observes, conf.observes(self.options(text)[1]), text)

    def test_it_is_read_again_and_a_typo_turns_nothing_off(self):
        path, options = self.options("[perfvm]\nmode = enforce\n")
        for mode, observes in (("observe", True), ("observer", False)):
            path.write_text(f"[perfvm]\nmode = {mode}\n")
            options.mutate_config_files()
            self.assertEqual(observes, conf.observes(options), mode)

# SPDX-License-Identifier: Apache-2.0

import pathlib

import fixtures
import testtools
from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg

from nova_perfvm.documents.config_file import SettingsError, read_settings

# Each says something to oslo.config's parser, or is refused by it.
LINES = (
    "[filter_scheduler]",
    "[DEFAULT]",
    " [workarounds]",
    "[workarounds",
    "enabled_filters = A,B",
    "enabled_filters: C",
    "enabled_filters : a = b",
    "enabled-filters = D",
    "  E,",
    "\tF",
    "enabled_filters =",
    "enabled_filters = '1'",
    'enabled_filters = "',
    "# enabled_filters = 2",
    "  # a value's line",
    "enabled_filters = \x00\x1b[2J",
    "enabled_filters = a\x0bb\x1cc\u2028d",
    "neither",
    "= 4",
    "",
    "  ",
)


class SettingsTest(testtools.TestCase):
    def file(self, text):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "nova.conf"
        path.write_text(text, encoding="utf-8")
        return str(path)

    @given(st.lists(st.sampled_from(LINES)), st.sampled_from(["\n", "\r\n", "\r"]))
    def test_as_oslo_config_reads_it(self, lines, end):
        path = self.file(end.join(lines))
        conf = cfg.ConfigOpts()
        conf.register_opt(cfg.StrOpt("enabled_filters"), "filter_scheduler")
        conf.register_opt(cfg.StrOpt("enabled_filters"))
        try:
            conf([], default_config_files=[path])
        except cfg.ConfigFileParseError:
            self.assertRaises(SettingsError, read_settings, path)
            return
        found = read_settings(path)
        self.assertEqual(
            (conf.enabled_filters, conf.filter_scheduler.enabled_filters),
            (
                found.get(("DEFAULT", "enabled_filters")),
                found.get(("filter_scheduler", "enabled_filters")),
            ),
        )

    def test_what_cannot_be_read(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (directory / "binary").write_bytes(b"[a]\nb = \xff\n")
        for path, words in (
            ("/nonexistent", "No such file"),
            (str(directory), "Is a directory"),
            (str(directory / "binary"), "not UTF-8 text"),
            ("/dev/zero", "longer than 16 MiB"),
            (self.file("no section"), "no configuration file"),
            (self.file("a = 1"), "at line 1"),
        ):
            exc = self.assertRaises(SettingsError, read_settings, path)
            self.assertIn(words, str(exc))
            self.assertIn(path, str(exc))

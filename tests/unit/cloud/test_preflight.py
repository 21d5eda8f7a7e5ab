# SPDX-License-Identifier: Apache-2.0

import pathlib

import fixtures
import testtools

from nova_perfvm.cloud.preflight import SettingsError, read_settings


class SettingsTest(testtools.TestCase):
    def file(self, text):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "nova.conf"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def test_as_nova_reads_it(self):
        path = self.file(
            "# a comment\n[DEFAULT]\ndebug = true\n"
            "[filter_scheduler]\navailable_filters = a\navailable_filters = b\n"
            "[scheduler]\nenable_isolated_aggregate_filtering=True\n"
            "[database]\nconnection = mysql://u:p%40@h/n?a=b\n"
        )
        found = read_settings(path)
        self.assertEqual(
            "True", found["scheduler", "enable_isolated_aggregate_filtering"]
        )
        self.assertEqual("mysql://u:p%40@h/n?a=b", found["database", "connection"])
        self.assertNotIn(("scheduler", "debug"), found)

    def test_what_cannot_be_read(self):
        for path, words in (
            ("/nonexistent", "No such file"),
            (self.file("no section"), "no configuration file"),
        ):
            exc = self.assertRaises(SettingsError, read_settings, path)
            self.assertIn(words, str(exc))

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

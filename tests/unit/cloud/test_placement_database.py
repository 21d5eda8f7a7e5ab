# SPDX-License-Identifier: Apache-2.0
"""Databases of Placement that cannot be asked; tests/sandbox has one that can."""

import pathlib

import fixtures
import testtools

from nova_perfvm.cloud import placement_database

SECRET = "s3cr%40t"  # As URLs have it: s3cr@t


class UnreadTest(testtools.TestCase):
    def read(self, *lines, group="placement_database"):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "placement.conf"
        path.write_text("\n".join([f"[{group}]", *lines, ""]), encoding="utf-8")
        found = placement_database.read(str(path))
        self.assertEqual("", found.isolation_level)
        # The name of the directory is by chance, and may have some of these letters.
        said = found.unread.replace(str(path), path.name)
        for secret in (SECRET, "s3cr", "40t"):
            self.assertNotIn(secret, said)
        return found.unread

    def test_reasons(self):
        for connection, words in (
            (
                f"mysql+pymysql://placement:{SECRET}@127.0.0.1:1/placement",
                "127.0.0.1:1",
            ),
            (f"mysql+pymysql://u:{SECRET}@127.0.0.1:1/p", "OperationalError"),
            ("mysql+pymysql://u:s3cr@t@127.0.0.1/p", "write @ in a password as %40"),
            ("mysql+pymysql://u:s3cr@t:40t@127.0.0.1/p", "is no URL"),
            (f"mysql+pymysql:/u:{SECRET}", "is no URL"),
            (f"mysql+nobody://u:{SECRET}@h/p", "no driver mysql+nobody"),
            (f"mysql+mysqldb://u:{SECRET}@h/p", "MySQLdb is not installed"),
            (f"mysql+pymysql://u@127.0.0.1:1/p?bogus={SECRET}", "TypeError"),
            ("sqlite:////nowhere/placement.sqlite", "sqlite is none of"),
            ("", "no [placement_database]connection"),
        ):
            found = self.read(f"connection = {connection}")
            self.assertIn(words, found, connection)

    def test_no_connection(self):
        self.assertIn("no [placement_database]connection", self.read(group="other"))

    def test_reference_to_nothing(self):
        line = f"connection = mysql+pymysql://u:{SECRET}$nothing@h/p"
        self.assertIn("as Placement reads it (NoSuchOptError)", self.read(line))

    def test_file_that_is_none(self):
        self.assertIn("as Placement reads it", self.read(f"  {SECRET}", group=""))

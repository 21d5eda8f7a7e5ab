# SPDX-License-Identifier: Apache-2.0
"""Databases of Placement that cannot be asked; tests/sandbox has one that can."""

import pathlib

import fixtures
import testtools

from nova_perfvm.cloud import placement_database

SECRET = "s3cr%40t"  # As URLs have it: s3cr@t


class UnreadTest(testtools.TestCase):
    def read(self, text):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "placement.conf"
        path.write_text(text, encoding="utf-8")
        found = placement_database.read(str(path))
        self.assertEqual("", found.isolation_level)
        # The name of the directory is by chance, and may have some of these letters.
        said = found.unread.replace(str(path), path.name)
        for secret in (SECRET, "s3cr", "40t"):
            self.assertNotIn(secret, said)
        return found.unread

    def test_reasons(self):
        for connection, words in (
            (f"mysql+pymysql://placement:{SECRET}@127.0.0.1:1/p", "127.0.0.1:1"),
            (f"mysql+pymysql://u:{SECRET}@127.0.0.1:1/p", "OperationalError"),
            ("mysql+pymysql://u:s3cr@t@127.0.0.1/p", "write @ in a password as %40"),
            ("mysql+pymysql://u:s3cr@t:40t@127.0.0.1/p", "is not a database URL"),
            (f"mysql+pymysql:/u:{SECRET}", "is not a database URL"),
            (f"mysql+nobody://u:{SECRET}@h/p", "no driver mysql+nobody"),
            (f"mysql+mysqldb://u:{SECRET}@h/p", "MySQLdb is not installed"),
            (f"mysql+pymysql://u@127.0.0.1:1/p?bogus={SECRET}", "TypeError"),
            ("sqlite:////nowhere/placement.sqlite", "sqlite is none of"),
            ("", "no [placement_database]connection"),
            (f"mysql+pymysql://u:{SECRET}$nothing@h/p", "reads it (NoSuchOptError)"),
        ):
            found = self.read(f"[placement_database]\nconnection = {connection}\n")
            self.assertIn(words, found, connection)
        self.assertIn("no [placement_database]connection", self.read("[other]\n"))
        self.assertIn("as Placement reads it", self.read(f"[]\n  {SECRET}\n"))

# SPDX-License-Identifier: Apache-2.0
"""What is read from a real MariaDB about Placement's retries, and judged."""

import contextlib
import io
import json
import tempfile
from pathlib import Path
from urllib.parse import quote_plus

import testtools

from nova_perfvm import findings as codes
from nova_perfvm.cloud import placement_database
from nova_perfvm.facts import snapshot
from nova_perfvm.osc import shell
from tests.benchmark.database import Database
from tests.unit.diagnose.audit.test_checks import small

USER, PASSWORD = "odd", "p@s$w/o:r%d"
READ_COMMITTED = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"


class PlacementDatabaseTest(testtools.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.database = cls.enterClassContext(Database(directory))
        cls.database.execute(
            f"CREATE USER '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT ALL ON placement.* TO '{USER}'@'127.0.0.1'",
        )
        cls.conf = Path(directory) / "placement.conf"

    def setUp(self):
        super().setUp()
        self.configure()

    def configure(self, level="REPEATABLE READ", *, snapshot_isolation=False):
        self.database.configure(level, snapshot_isolation=snapshot_isolation)

    def write(self, retries=10, password=PASSWORD, query="", **options):
        """Write placement.conf, with $ as oslo.config has it."""
        port = self.database.settings.ports["mariadb"]
        secret = quote_plus(password).replace("$", "$$")
        connection = f"mysql+pymysql://{USER}:{secret}@127.0.0.1:{port}/placement"
        lines = [
            "[placement]",
            f"allocation_conflict_retry_count = {retries}",
            "[placement_database]",
            f"connection = {connection}{query}",
            *[f"{name} = {value}" for name, value in options.items()],
        ]
        self.conf.write_text("\n".join(lines) + "\n")

    def read(self, **options):
        self.write(**options)
        return placement_database.read(str(self.conf))

    def test_what_server_and_connection_ask_for(self):
        found = self.read()
        self.assertEqual("", found.unread)
        self.assertIn(self.database.version, found.server)
        command = quote_plus(READ_COMMITTED)
        repeatable, committed = "REPEATABLE READ", "READ COMMITTED"
        for level, options, expected in (
            (repeatable, {}, repeatable),
            *((at, {}, at) for at in (committed, "READ UNCOMMITTED", "SERIALIZABLE")),
            (
                repeatable,
                {"query": f"?charset=utf8mb4&init_command={command}"},
                committed,
            ),
            (
                repeatable,
                {"connection_parameters": f"init_command={command}"},
                committed,
            ),
        ):
            self.configure(level)
            found = self.read(**options)
            self.assertEqual(expected, found.isolation_level, options)

    def test_snapshot_isolation(self):
        if not self.database.has_snapshot_isolation:
            self.assertIs(None, self.read().snapshot_isolation)
            return
        self.assertIs(False, self.read().snapshot_isolation)
        self.configure(snapshot_isolation=True)
        self.assertIs(True, self.read().snapshot_isolation)
        off = quote_plus("SET SESSION innodb_snapshot_isolation = OFF")
        self.assertIs(False, self.read(query=f"?init_command={off}").snapshot_isolation)

    def test_wrong_password_is_said_and_not_shown(self):
        found = self.read(password="not" + PASSWORD)

        self.assertEqual("", found.isolation_level)
        self.assertIn("Access denied", found.unread)
        for secret in (PASSWORD, quote_plus(PASSWORD)):
            self.assertNotIn(secret, found.unread)

    def audit(self, **options):
        """Return the code and the evidence that the audit has of placement.conf."""
        self.write(**options)
        saved = self.conf.with_name("snapshot.json")
        saved.write_text(snapshot.dumps(small().snapshot()))
        stdout = io.StringIO()
        command = ["audit", "--snapshot", str(saved), "--format", "json"]
        with contextlib.redirect_stdout(stdout):
            shell.main([*command, "--placement-conf", str(self.conf)])
        rows = json.loads(stdout.getvalue())
        for row in rows:
            self.assertNotIn(PASSWORD, "".join(row.values()))
            self.assertNotIn(quote_plus(PASSWORD), "".join(row.values()))
        return [
            (row["Code"], row["Observed"])
            for row in rows
            if row["Subject"] == "placement.conf"
        ]

    def test_audit_names_the_level(self):
        for level in ("REPEATABLE READ", "READ COMMITTED"):
            self.configure(level)
            self.assertEqual([], self.audit(retries=1))
            [(code, evidence)] = self.audit(retries=10)
            self.assertEqual(codes.RETRY_COUNT, code)
            for words in (level, self.database.version):
                self.assertIn(words, evidence)
        [(code, evidence)] = self.audit(password="wrong" + PASSWORD)
        self.assertEqual(codes.RETRY_COUNT, code)
        self.assertIn("Access denied", evidence)

    def test_audit_is_content_with_snapshot_isolation(self):
        if not self.database.has_snapshot_isolation:
            self.skipTest(f"MariaDB {self.database.version} has none")
        self.configure(snapshot_isolation=True)
        self.assertEqual([], self.audit(retries=10))
        self.configure("READ COMMITTED", snapshot_isolation=True)
        self.assertEqual([codes.RETRY_COUNT], [code for code, _ in self.audit()])

# SPDX-License-Identifier: Apache-2.0
"""When Placement's retries are safe, by what was measured on each database."""

import dataclasses

import testtools

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit, overgranting
from nova_perfvm.facts.placement_database import PlacementDatabase
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.policy import loader

MARIADB = PlacementDatabase(
    server="MariaDB 10.11.19",
    isolation_level="REPEATABLE READ",
    snapshot_isolation=False,
)
SNAPSHOT = dataclasses.replace(MARIADB, snapshot_isolation=True)
MYSQL = dataclasses.replace(MARIADB, server="MySQL 8.4.6", snapshot_isolation=None)
UNREAD = PlacementDatabase(unread="nobody answers")


def at(database, level):
    return dataclasses.replace(database, isolation_level=level)


class JudgeTest(testtools.TestCase):
    def judge(self, value, database):
        found = overgranting.judge(value, database)
        if found:
            self.assertEqual(
                (codes.RETRY_COUNT, "placement.conf"), (found.code, found.subject)
            )
            self.assertRegex(found.remedy, "^(crudini --set .* 1  # and r|mariadb -e )")
        return found

    def test_one_try_is_right_whatever_is_known(self):
        for database in (
            *(MARIADB, SNAPSHOT, MYSQL, UNREAD, None),
            at(MARIADB, "READ COMMITTED"),
            at(MARIADB, "SERIALIZABLE"),
        ):
            self.assertIsNone(self.judge("1", database), database)
        # Where a retry on an old snapshot is an error, more are right, too.
        for value in (None, "10"):
            self.assertIsNone(self.judge(value, SNAPSHOT))

    def test_more_are_wrong(self):
        for database in (
            MARIADB,
            MYSQL,
            at(MARIADB, "READ COMMITTED"),
            # Without a snapshot there is nothing to conflict with.
            at(SNAPSHOT, "READ COMMITTED"),
            at(SNAPSHOT, "SERIALIZABLE"),
        ):
            for value, shown in ((None, "which means 10"), ("10", "is 10")):
                found = self.judge(value, database)
                for words in (shown, database.server, database.isolation_level):
                    self.assertIn(words, found.observed)
                self.assertIn("retry_count 1", found.remedy)
        for database, why in ((None, "it was not read"), (UNREAD, "nobody answers")):
            self.assertIn(why, self.judge("10", database).observed)

    def test_dirty_reads_are_wrong_with_any_number(self):
        for value in (None, "1", "10"):
            for database in (MARIADB, SNAPSHOT, MYSQL):
                found = self.judge(value, at(database, "READ UNCOMMITTED"))
                self.assertIn("SET GLOBAL TRANSACTION ISOLATION", found.remedy)

    def test_preflight_and_audit_say_what_was_judged(self):
        settings = {("placement", "allocation_conflict_retry_count"): "10"}
        for database, expected in ((MARIADB, 1), (SNAPSHOT, 0)):
            subject = audit.Subject(
                loader.load(), Snapshot(""), settings, placement_database=database
            )
            for selection in (audit.Selection.AUDIT, audit.Selection.PREFLIGHT):
                results = dict(audit.run(subject, selection).results)
                found = results["Placement grants what it has"]
                self.assertEqual(expected, len(found))

# SPDX-License-Identifier: Apache-2.0
"""When Placement's retries are safe, by what was measured on each database."""

import dataclasses

import testtools

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit, overgranting
from nova_perfvm.facts.placement_database import PlacementDatabase
from nova_perfvm.policy import loader
from tests.unit.diagnose.audit.test_checks import small

MARIADB = PlacementDatabase(
    server="MariaDB",
    version="10.11.19",
    isolation_level="REPEATABLE READ",
    server_default="REPEATABLE READ",
    snapshot_isolation=False,
)
SNAPSHOT = dataclasses.replace(MARIADB, snapshot_isolation=True)
MYSQL = dataclasses.replace(
    MARIADB, server="MySQL", version="8.4.6", snapshot_isolation=None
)
POSTGRESQL = PlacementDatabase("PostgreSQL", "15.18", "READ COMMITTED")
UNREAD = PlacementDatabase(unread="nobody answers")


def at(database, level):
    return dataclasses.replace(database, isolation_level=level)


class JudgeTest(testtools.TestCase):
    def judge(self, value, database):
        found = overgranting.judge(value, database)
        if found:
            self.assertRegex(found.remedy, "^(crudini --set .* 1  # and r|mariadb -e )")
        return found

    def test_one_try_is_right_whatever_is_known(self):
        for database in (
            *(MARIADB, SNAPSHOT, MYSQL, POSTGRESQL, UNREAD, None),
            at(MARIADB, "READ COMMITTED"),
            at(MARIADB, "SERIALIZABLE"),
            at(POSTGRESQL, "READ UNCOMMITTED"),
        ):
            self.assertIsNone(self.judge("1", database), database)

    def test_more_are_wrong_with_their_cause(self):
        for database, cause in (
            (MARIADB, "cause A"),
            (MYSQL, "cause A"),
            (at(MARIADB, "READ COMMITTED"), "cause B"),
            # Without a snapshot there is nothing to conflict with.
            (at(SNAPSHOT, "READ COMMITTED"), "cause B"),
            (at(MYSQL, "READ COMMITTED"), "cause B"),
            (POSTGRESQL, "cause B"),
            (at(POSTGRESQL, "READ UNCOMMITTED"), "cause B"),
        ):
            for value, shown in ((None, "which means 10"), ("10", "10"), ("2", "2")):
                found = self.judge(value, database)
                self.assertEqual(codes.RETRY_COUNT, found.code, database)
                for words in (cause, f"is {shown}" if value else shown):
                    self.assertIn(words, found.observed)
                for words in (database.version, database.isolation_level):
                    self.assertIn(words, found.observed)
                self.assertIn("retry_count 1", found.remedy)

    def test_snapshot_isolation_makes_more_right_at_repeatable_read_alone(self):
        for value in (None, "10"):
            self.assertIsNone(self.judge(value, SNAPSHOT))
        found = self.judge("10", at(SNAPSHOT, "SERIALIZABLE"))
        self.assertEqual(codes.RETRY_COUNT_UNKNOWN, found.code)

    def test_dirty_reads_are_wrong_with_any_number(self):
        for value in (None, "1", "10"):
            for database in (MARIADB, SNAPSHOT, MYSQL):
                found = self.judge(value, at(database, "READ UNCOMMITTED"))
                self.assertEqual(codes.RETRY_COUNT, found.code)
                self.assertIn("SET GLOBAL TRANSACTION ISOLATION", found.remedy)

    def test_what_nobody_has_seen_fail_is_not_taken_for_right(self):
        for database in (
            at(MARIADB, "SERIALIZABLE"),
            at(POSTGRESQL, "REPEATABLE READ"),
            at(POSTGRESQL, "SERIALIZABLE"),
        ):
            found = self.judge("10", database)
            self.assertEqual(codes.RETRY_COUNT_UNKNOWN, found.code)
            self.assertIn("status 500", found.observed)

    def test_unread_database_is_not_taken_for_right(self):
        for database, why in ((None, "nobody looked"), (UNREAD, "nobody answers")):
            found = self.judge("10", database)
            self.assertEqual(codes.RETRY_COUNT, found.code)
            self.assertIn(why, found.observed)

    def test_level_that_only_placement_has_is_told_apart(self):
        found = self.judge("10", at(MARIADB, "READ COMMITTED"))
        self.assertIn("others REPEATABLE READ", found.observed)
        self.assertNotIn("others", self.judge("10", MARIADB).observed)


class AskedTest(testtools.TestCase):
    def test_preflight_and_audit_say_what_was_judged(self):
        policy = loader.load(None)
        for value, database in (
            ("10", MARIADB),
            ("10", None),
            ("10", at(MARIADB, "SERIALIZABLE")),
            ("10", SNAPSHOT),
            ("1", UNREAD),
        ):
            settings = {("placement", "allocation_conflict_retry_count"): value}
            subject = audit.Subject(
                policy, small().snapshot(), settings, placement_database=database
            )
            judged = overgranting.judge(value, database)
            for selection in (audit.Selection.AUDIT, audit.Selection.PREFLIGHT):
                results = audit.run_selection(selection, subject)
                found = dict(results)["Placement grants what it has"]
                self.assertEqual(() if judged is None else (judged,), found)

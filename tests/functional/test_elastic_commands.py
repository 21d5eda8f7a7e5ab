# SPDX-License-Identifier: Apache-2.0
"""Commands that make hosts elastic, check that, and take it back."""

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.cloud import answers
from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.elastic import PLAIN_GENERAL, PLAIN_HP, ElasticTest


class TestCommands(ClientMixin, ElasticTest):
    def setUp(self):
        super().setUp()
        self.create_plain_flavors()
        self.cloud.start_host("h1")

    def test_enroll_and_unenroll(self):
        self._errors_are_one_line()
        enroll = ["host", "enroll", "h1", *self.policy_file()]

        self.assert_command(0, "would put h1 into aggregate", *enroll, "--dry-run")
        self.assert_command(1, "add --yes", *enroll)
        self.assert_ordinary("h1")
        self.assert_command(0, "h1 is enrolled", *enroll, "--yes")
        self.assert_elastic("h1")
        self.assert_command(0, "h1: nothing to do", *enroll, "--yes")
        server = self.boot(base.GENERAL_2)
        unenroll = ["host", "unenroll", "h1", "--yes"]
        self.assert_command(1, server.name, *unenroll)
        self.servers.delete(server)
        self.assert_command(0, "no longer enrolled", *unenroll)
        self.assert_ordinary("h1")
        aggregates = {found.name for found in answers.aggregates(self.api)}
        self.assertEqual({const.POLICY_AGGREGATE}, aggregates)
        self.assertEqual(0, self.unenroll("h1"))
        self.boot_before(PLAIN_HP)

    def _errors_are_one_line(self):
        enroll = ["host", "enroll", *self.policy_file(), "--yes"]
        member = {"user": "member", "roles": "member,reader"}
        for words, arguments, identity in (
            ("no compute host 'nowhere'", [*enroll, "nowhere"], {}),
            ("rights of an administrator", [*enroll, "h1"], member),
            ("placement: slots", ["host", "enroll", "h1", "--yes"], {}),
            ("gives a host 0 to 2", [*enroll, "h1", "--slots", "3"], {}),
        ):
            with self.subTest(words):
                status, stdout, stderr = self.run_command(*arguments, **identity)
                self.assertEqual((1, ""), (status, stdout))
                self.assertEqual(1, len(stderr.splitlines()), stderr)
                self.assertIn(words, stderr)

    def test_preflight(self):
        server = self.boot(PLAIN_GENERAL)
        nova, placement = self.files(
            "[scheduler]\nenable_isolated_aggregate_filtering = True\n",
            "[placement]\nallocation_conflict_retry_count = 1\n",
        )
        check = ["preflight", *self.policy_file()]
        files = ["--nova-conf", nova, "--placement-conf", placement]

        status, rows, _ = self.run_json(*check, "h1")
        results = {row["Code"]: row for row in rows}
        self.assertEqual(1, status)
        for code, expected, words in (
            (codes.ISOLATION_UNKNOWN, "unknown", "no API shows it"),
            (codes.RETRY_COUNT_UNKNOWN, "unknown", "no API shows it"),
            (codes.TO_BACKFILL, "warning", server.name),
            (codes.FLAVOR_WITHOUT_UNITS, "warning", server.name),
        ):
            row = results[code]
            self.assertEqual(expected, row["Level"])
            self.assertIn(words, f"{row['Subject']}: {row['Observed']}")

        self.servers.delete(server)
        self.enroll("h1")
        # Of either class, and one that no host took.
        self.cloud.start_host("h2")
        self.enroll("h2")
        self.boot(base.GENERAL_2, host="h1")
        self.boot(base.HP_64, host="h2")
        self.boot_refused(base.HP_64, host="h1")
        self.assert_command(0, "policy.", *check, *files)
        _, placement = self.files(
            "",
            "[placement_database]\n"
            "connection = mysql+pymysql://placement:s3cret@127.0.0.1:1/placement\n",
        )
        asked = ["--nova-conf", nova, "--placement-conf", placement]
        status, rows, _ = self.run_json(*check, *asked)
        results = {row["Code"]: row for row in rows}
        retries = results[codes.RETRY_COUNT]
        self.assertEqual((2, "failure"), (status, retries["Level"]))
        self.assertIn("placement:***@127.0.0.1:1/placement", str(rows))
        self.assertNotIn("s3cret", str(rows))
        self.inflate_child(self.view("h1"))
        self.assert_command(2, "failure", *check, *files)

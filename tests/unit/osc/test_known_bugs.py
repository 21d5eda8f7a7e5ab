# SPDX-License-Identifier: Apache-2.0
"""``known-bugs``: lists, and what an upgrade would hit."""

import json

from tests.unit.known_bugs.clouds import OLD, cloud
from tests.unit.osc.base import CommandCase


class KnownBugsTest(CommandCase):
    def listed(self, status, *arguments):
        found = self.run_command("known-bugs", *arguments, "-f", "json")
        self.assertEqual(status, found, self.stderr)
        return json.loads(self.stdout)

    def test_lists(self):
        everything = [row["Bug"] for row in self.listed(0)]
        self.assertEqual(sorted(everything, reverse=True), everything)
        one = [row["Bug"] for row in self.listed(0, "--release", "2026.1")]
        self.assertEqual([2153425, 2152697, 2144660, 2069718, 0], one)
        newest = self.listed(0, "--release", "34.0.0")
        self.assertEqual([2069718, 0], [row["Bug"] for row in newest])

    def test_an_upgrade(self):
        made = cloud("32.2.1")
        made.add_hp("d", "hp2")
        self.save(made)
        rows = self.listed(1, "--to", "33.0.2", "--snapshot", self.path)
        # The host with the fewest comes first.
        where = [(row["Step"], row["Host"], row["Server"]) for row in rows]
        expected = [(1, "hp2", "d (i-d)"), (2, "hp1", "a (i-a)"), (3, "hp1", "b (i-b)")]
        self.assertEqual(expected, where)
        self.assertEqual("after the upgrade of its host", rows[0]["When"])
        self.assertIn("server reboot --hard i-d", rows[0]["Remedy"])
        self.assertIn("LP 2153425: ", self.stderr)
        self.assertEqual([], self.listed(0, "--to", "2026.2", "--snapshot", self.path))

    def test_what_is_to_be_done_before_comes_first(self):
        made = cloud("32.2.1", "2019-01-01T00:00:00Z", OLD)
        self.save(made)
        rows = self.listed(1, "--to", "24.0.0", "--snapshot", self.path)
        self.assertEqual({"before"}, {row["When"] for row in rows})

    def test_mistakes(self):
        self.save(cloud("32.2.1"))
        for words, *arguments in (
            ("expected a release of Nova such as", "--to", "gazpacho"),
            ("a release of Nova from 12 to ", "--to", "99"),
            ("a release of Nova from 12 to ", "--release", "2027.1"),
            ("need --to", "--snapshot", self.path),
            ("there is no cloud here", "--to", "33"),
            ("not allowed with", "--to", "33", "--release", "33"),
        ):
            self.assert_refused(3, words, "known-bugs", *arguments)

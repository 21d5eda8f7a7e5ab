# SPDX-License-Identifier: Apache-2.0
"""The files of known bugs, and the releases that have each."""

import csv
import importlib.util
import io
import pathlib
from importlib import resources

import testtools

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.known_bugs import (
    Release,
    ReleaseError,
    all_bugs,
    model,
    of_release,
    releases,
)
from nova_perfvm.osc import known_bugs

TABLE = pathlib.Path(__file__).parents[3] / "doc/source/admin/known-bugs.csv"
PIN = "2152697"


def text(number=PIN):
    """Return the file of a bug."""
    path = resources.files("nova_perfvm.known_bugs") / f"{number}.yaml"
    return path.read_text()


class FilesTest(testtools.TestCase):
    def test_each_is_read_and_says_what_it_does(self):
        bugs = all_bugs()
        self.assertGreaterEqual(len(bugs), 15)
        folder = resources.files("nova_perfvm.known_bugs")
        names = {f.name for f in folder.iterdir() if f.name.endswith(".yaml")}
        self.assertEqual({f"{bug.number}.yaml" for bug in bugs}, names)
        for bug in bugs:
            # Where nothing tells it, the words say so.
            told_at_all = not bug.told.startswith(("A snapshot", "By the installed"))
            self.assertEqual(told_at_all, bug.told_by is not None, bug.number)
            for words in (bug.does, bug.told, bug.source):
                self.assertNotIn("SERVER", words)

    def test_mistakes_are_named(self):
        for old, new, words in (
            ("rule: started-before", "rule: x", "told_by.rule: found 'x'"),
            ("element: iothreadpin", "x: y", "told_by.parameters: found date"),
            ('since: "33.0.0"', 'since: "x"', "since: found 'x', expected a release"),
            ('since: "33.0.0"', 'since: "35.0.0"', "since: 35.0.0 has the fix"),
            ("moves: [live]\n", "", "fails: expected moves"),
            ("number: 2152697", "number: x", "number: found 'x'"),
            ("title:", "titel:", "did you mean title?"),
        ):
            self.assertIn(old, text())
            changed = text().replace(old, new)
            error = self.assertRaises(
                DocumentError, model.parse, changed, f"{PIN}.yaml"
            )
            self.assertIn(words, str(error))
        wrong = text("2144660").replace("compute.packing", "packing")
        error = self.assertRaises(DocumentError, model.parse, wrong, "2144660.yaml")
        self.assertIn("expected section.option", str(error))

    def test_the_table_of_the_page(self):
        wanted = io.StringIO()
        rows = csv.writer(wanted, lineterminator="\n")
        rows.writerow(
            ("Bug", "What", "Since", "Fixed", "How affected servers are found")
        )
        for bug in all_bugs():
            number, title, since, fixed, _, told, _ = known_bugs.listed(bug)
            link = f"`{number or bug.name} <{bug.url}>`_"
            rows.writerow((link, title, since, fixed, told))
        self.assertEqual(wanted.getvalue(), TABLE.read_text())


class ReleasesTest(testtools.TestCase):
    def test_the_bugs_of_each(self):
        for release, expected in (
            ("31.3.1", {2153425, 2144660}),
            ("32.2.1", {2153425, 2144660}),
            ("33.0.2", {0, 2153425, 2144660, 2152697, 2069718}),
            ("2026.1", {0, 2153425, 2144660, 2152697, 2069718}),
            ("33.0.1", {0, 2153425, 2144660, 2152697, 2069718, 2151252}),
            ("34.0.0", {0, 2069718}),
            ("35.0.0", {0, 2069718}),
        ):
            found = of_release(Release.parse(release))
            self.assertEqual(expected, {bug.number for bug in found}, release)

    def test_fixes_within_a_series(self):
        (bug,) = (bug for bug in all_bugs() if bug.number == 2097359)
        for release, has_it in (
            ("21.2.0", False),
            ("28.3.0", True),
            ("28.3.1", False),
            ("29.2.0", True),
            ("29.2.1", False),
            ("30.0.0", True),
            ("30", False),
        ):
            self.assertEqual(has_it, bug.affects(Release.parse(release)), release)

    def test_names(self):
        for name, expected in (
            ("2023.1", "27"),
            ("2026.1", "33"),
            ("2026.2", "34"),
            ("33.0.2", "33.0.2"),
            ("33.0.2.dev4+distribution", "33.0.2"),
        ):
            self.assertEqual(expected, str(Release.parse(name)))
        for name in ("", "gazpacho", "2026.3", "3", "330"):
            error = self.assertRaises(ReleaseError, Release.parse, name)
            self.assertIn("expected a release of Nova such as", str(error))

    @testtools.skipUnless(importlib.util.find_spec("nova"), "Nova is not installed")
    def test_what_the_installed_nova_says_of_itself(self):
        from importlib import metadata

        from nova.api.openstack import api_version_request
        from nova.objects import service

        series = Release.parse(metadata.version("nova")).major
        told = releases.of_service(service.SERVICE_VERSION)
        self.assertEqual(series, told.major)
        told = releases.of_microversion(api_version_request._MAX_API_VERSION)
        # 31 and 32 have the same.
        self.assertEqual(max(series, 32), told.major)

    def test_what_is_newer_is_not_known(self):
        self.assertIsNone(releases.of_service(999))
        for text_of in ("", "2.999", "x"):
            self.assertIsNone(releases.of_microversion(text_of))

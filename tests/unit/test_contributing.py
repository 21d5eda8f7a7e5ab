# SPDX-License-Identifier: Apache-2.0
"""The worked examples of CONTRIBUTING.rst are what the tree has."""

import pathlib
import re
import textwrap

import testtools

from tests.unit.test_boundaries import ROOMS

ROOT = pathlib.Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.rst").read_text()
EXAMPLES = ("Add a check", "Add a scheme", "Add a release of Nova")


def section(heading):
    """Return what is below a heading, as far as the next one."""
    below = re.split(rf"^{heading}\n[=-]+\n", TEXT, flags=re.MULTILINE)[1]
    return re.split(r"^.+\n[=-]{4,}\n\n", below, flags=re.MULTILINE)[0]


def files(heading):
    """Return the files that the table of an example lists."""
    return re.findall(r"^``(\S+)``  ", section(heading), re.MULTILINE)


class ExamplesTest(testtools.TestCase):
    def test_the_files_of_each_are_there(self):
        for heading in EXAMPLES:
            listed = files(heading)
            self.assertGreater(len(listed), 5, heading)
            for name in listed:
                self.assertTrue((ROOT / name).is_file(), name)

    def test_the_check_is_as_in_its_file(self):
        quoted = re.search(r"(?ms)^   @check_of.+?\n\n", section("Add a check"))
        source = (ROOT / files("Add a check")[0]).read_text()
        self.assertIn(textwrap.dedent(quoted[0]).strip(), source)


class MapTest(testtools.TestCase):
    def test_the_picture_has_every_room(self):
        picture = (ROOT / "doc/source/_images/rooms.svg").read_text()
        words = set(re.findall(r"\w+", picture))
        self.assertEqual(set(), set(ROOMS) - words)

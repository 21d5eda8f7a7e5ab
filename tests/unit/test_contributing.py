# SPDX-License-Identifier: Apache-2.0
"""The worked examples of CONTRIBUTING.rst are what the tree has."""

import pathlib
import re

import testtools

from tests.unit.test_boundaries import ROOMS

ROOT = pathlib.Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.rst").read_text()
# {heading: what every file of the example has, and where no other file has it}.
EXAMPLES = {
    "Add a check": (r"ksm", ("nova_perfvm", "doc/source/admin", "tests")),
    "Add a scheme": (r"\bTOKENS\b|TokensScheme", ("nova_perfvm", "tests")),
    "Add a release of Nova": (
        r"2025\.2",
        ("tox.ini", ".zuul.yaml", "doc/source", "tests"),
    ),
}
# Files that have the word for another reason.
BESIDE = {
    "nova_perfvm/measure/prove/conditions.py",
    "tests/unit/cloud/test_snapshot.py",
    "tests/unit/measure/prove/faults_state.py",
    "tests/unit/measure/prove/sound.py",
    "tests/unit/measure/prove/strangers_faults_machine.py",
    "tests/unit/measure/prove/strangers_variations_machine.py",
    "tests/unit/test_contributing.py",
}
SUFFIXES = {".cfg", ".csv", ".ini", ".py", ".rst", ".txt", ".yaml"}


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

    def test_no_file_is_left_out(self):
        for heading, (word, places) in EXAMPLES.items():
            having = set()
            for place in places:
                root = ROOT / place
                paths = [root] if root.is_file() else root.rglob("*")
                having |= {
                    str(path.relative_to(ROOT))
                    for path in paths
                    if path.suffix in SUFFIXES and re.search(word, path.read_text())
                }
            with self.subTest(heading):
                self.assertEqual(set(), having - {*files(heading), *BESIDE})


class MapTest(testtools.TestCase):
    def test_the_picture_has_every_room(self):
        picture = (ROOT / "doc/source/_images/rooms.svg").read_text()
        words = set(re.findall(r"\w+", picture))
        self.assertEqual(set(), set(ROOMS) - words)

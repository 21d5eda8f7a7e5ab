# SPDX-License-Identifier: Apache-2.0

import pathlib
from xml.etree import ElementTree as ET

import testtools

from tests import terminal

PICTURE = pathlib.Path(__file__).parents[2] / "doc/source/_images/terminal.svg"


class PictureTest(testtools.TestCase):
    def test_it_is_of_what_the_tutorial_shows_today(self):
        self.assertEqual(terminal.picture(), PICTURE.read_text())

    def test_every_line_is_there(self):
        texts = [
            "".join(e.itertext()) for e in ET.parse(PICTURE).iter() if "text" in e.tag
        ]
        drawn = [text for text, _ in terminal.lines() if text]
        self.assertGreater(len(drawn), 15)
        self.assertEqual(drawn, [text for text in texts if text])
